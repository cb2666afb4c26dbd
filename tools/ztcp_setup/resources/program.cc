// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/program.h"

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup {

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Done run_program(Host& host, const std::vector<std::string>& argv, std::chrono::seconds limit) {
  const std::string line = fmt::format("{}", fmt::join(argv, " "));
  const auto result = host.run(argv, limit);
  const auto failed = [&](std::string what) {
    return tl::unexpected(config::Problem{line, std::move(what), "sudo " + line});
  };
  if (!result) return tl::unexpected(problem_of(host, line, result.error(), "sudo " + line));
  if (result->timed_out) return failed(fmt::format("took longer than {} s", limit.count()));
  if (result->exit_status != 0)
    return failed(fmt::format("ended with {}: {}", result->exit_status, last_line(result->output)));
  return {};
}

}  // namespace ztcp::setup
