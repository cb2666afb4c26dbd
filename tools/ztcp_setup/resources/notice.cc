// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/notice.h"

#include <fmt/format.h>

#include "tools/ztcp_setup/resources/program.h"

namespace ztcp::setup::resource {

std::string Notice::id() const { return fmt::format("{}", fmt::join(argv, " ")); }

void Notice::check(Host& host, const Others&, config::Problems& problems) const {
  if (!argv.empty() && !host.has_program(argv.front()))
    problems.push_back({argv.front(), "is not installed",
                        fmt::format("install the package with {}", argv.front())});
}

Preview Notice::preview(Host&) const { return {"", "", "", id()}; }

Done Notice::apply(Host& host, Before& before) const {
  Done done = run_program(host, argv, kProgramLimit);
  before.due = !done;
  return done;
}

Reverted Notice::revert(Host& host, const Before&) const {
  return reverted(run_program(host, argv, kProgramLimit));
}

}  // namespace ztcp::setup::resource
