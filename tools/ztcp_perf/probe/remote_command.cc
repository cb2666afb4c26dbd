// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/remote_command.h"

#include <unistd.h>

#include <fmt/format.h>

#include "core/shell_word.h"

namespace ztcp::perf::probe {

bool is_for_plugin(std::string_view name) {
  // A secret is not for command lines, and ranks are numbered anew.
  if (name.starts_with("ZTCP_PERF_") || name == "ZTCP_LOCAL_RANK") return false;
  return name.starts_with("ZTCP_") || name.starts_with("NCCL_");
}

std::vector<std::string> agent_command(const ProbeOptions& options, const std::string& program) {
  std::vector<std::string> words = {"env"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (is_for_plugin(text.substr(0, text.find('=')))) words.emplace_back(text);
  }
  words.insert(words.end(), {program, "probe", "--agent"});
  const auto add = [&](const char* option, std::string value) {
    words.insert(words.end(), {option, std::move(value)});
  };
  if (!options.plugin.empty()) add("--plugin", options.plugin);
  if (!options.config.empty()) add("--config", options.config);
  if (options.abi != 0) add("--abi", std::to_string(options.abi));
  for (const int device : options.devices) add("--device", std::to_string(device));
  if (options.log != LogLevel::kWarn)
    add("--log", options.log == LogLevel::kInfo ? "info" : "none");
  return words;
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + shell_word(word);
  return command;
}

}  // namespace ztcp::perf::probe
