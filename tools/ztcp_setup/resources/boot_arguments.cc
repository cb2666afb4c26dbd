// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/boot_arguments.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "config/machine/text.h"
#include "tools/ztcp_setup/resources/program.h"

namespace ztcp::setup::resource {
namespace {

using Words = std::vector<std::string>;
constexpr const char* kWhere = "kernel command line";
using ArgumentsOf = std::vector<std::pair<std::string, std::string>>;

// By kernel, as grubby tells it: kernel="/boot/vmlinuz-5.14" and args="ro quiet" lines.
Read<ArgumentsOf> arguments_of_kernels(Host& host) {
  ArgumentsOf kernels;
  const auto told = host.run({"grubby", "--info=ALL"}, kUnitLimit);
  if (!told || told->exit_status != 0)
    return tl::unexpected(
        config::Problem{kWhere,
                        fmt::format("grubby does not tell it: {}",
                                    told ? last_line(told->output) : "it could not be run"),
                        "sudo grubby --info=ALL"});
  std::istringstream lines(told->output);
  std::string kernel;
  for (std::string line; std::getline(lines, line);) {
    const auto value = [&](std::string_view key) -> std::optional<std::string> {
      if (!line.starts_with(key)) return std::nullopt;
      std::string text = line.substr(key.size());
      std::erase(text, '"');
      return text;
    };
    if (auto path = value("kernel=")) kernel = *path;
    if (auto arguments = value("args=")) kernels.emplace_back(kernel, *arguments);
  }
  return kernels;
}

// Words of `wanted` that `have` lacks.
Words lacking(const Words& wanted, const Words& have) {
  Words lacking;
  for (const std::string& word : wanted)
    if (std::find(have.begin(), have.end(), word) == have.end()) lacking.push_back(word);
  return lacking;
}

bool has(const std::string& arguments, const std::string& word) {
  return lacking({word}, config::own_words(arguments)).empty();
}

bool any_has(const ArgumentsOf& kernels, const std::string& word) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const auto& kernel) { return has(kernel.second, word); });
}

Words update_all(const Words& arguments) {
  return {"grubby", "--update-kernel=ALL", fmt::format("--args={}", fmt::join(arguments, " "))};
}

}  // namespace

void BootArguments::check(Host& host, const Others&, config::Problems& problems) const {
  if (!host.has_program("grubby"))
    problems.push_back(
        {kWhere, "there is no grubby to change it with", "install the package grubby"});
}

bool BootArguments::holds(Host& host) const {
  const auto kernels = arguments_of_kernels(host);
  if (!kernels || kernels->empty()) return false;
  return std::all_of(kernels->begin(), kernels->end(), [&](const auto& kernel) {
    return lacking(arguments, config::own_words(kernel.second)).empty();
  });
}

Read<BootArguments::Before> BootArguments::before(Host& host) const {
  auto kernels = arguments_of_kernels(host);
  if (!kernels) return tl::unexpected(std::move(kernels.error()));
  return Before{std::move(*kernels)};
}

Preview BootArguments::preview(Host& host) const {
  const std::string text = fmt::format("{}", fmt::join(arguments, " "));
  // grubby may tell only root.
  return {"", arguments_of_kernels(host) ? "without" : "unknown", text,
          fmt::format("grubby --update-kernel=ALL --args=\"{}\"", text)};
}

Done BootArguments::apply(Host& host, Before&) const {
  if (Done done = run_program(host, update_all(arguments), kProgramLimit); !done) return done;
  if (holds(host)) return {};
  return tl::unexpected(config::Problem{
      kWhere, fmt::format("lacks {} still", fmt::join(arguments, " ")),
      fmt::format("sudo grubby --update-kernel=ALL --args=\"{}\"", fmt::join(arguments, " "))});
}

std::string BootArguments::restored(const Before&) const {
  return fmt::format("{} go from the kernels that lacked them", fmt::join(arguments, " "));
}

Reverted BootArguments::revert(Host& host, const Before& before) const {
  const std::string text = fmt::format("{}", fmt::join(arguments, " "));
  if (!host.has_program("grubby"))
    return {{}, {{kWhere, "there is no grubby any more to take this off: " + text, ""}}};
  const auto now = arguments_of_kernels(host);
  if (!now) return {{now.error()}, {}};
  Reverted reverted;
  const auto update = [&](Words argv) {
    argv.insert(argv.begin(), "grubby");
    if (Done done = run_program(host, argv, kProgramLimit); !done)
      reverted.faults.push_back(done.error());
  };
  // What stood nowhere before goes from ALL, as it came: from kernels that will be installed, too.
  Words ours;
  for (const std::string& word : arguments)
    if (!any_has(before.arguments_of, word) && any_has(*now, word)) ours.push_back(word);
  if (!ours.empty())
    update({"--update-kernel=ALL", fmt::format("--remove-args={}", fmt::join(ours, " "))});
  const auto left = arguments_of_kernels(host);
  if (!left) {
    reverted.faults.push_back(left.error());
    return reverted;
  }
  // A kernel installed since keeps the rest: it came from kernels that had it without us.
  for (const auto& [kernel, line] : *left) {
    const auto known =
        std::find_if(before.arguments_of.begin(), before.arguments_of.end(),
                     [&, name = kernel](const auto& one) { return one.first == name; });
    if (known == before.arguments_of.end()) continue;
    const auto had = config::own_words(known->second);
    const auto have = config::own_words(line);
    Words added;
    for (const std::string& word : lacking(arguments, had))
      if (lacking({word}, have).empty()) added.push_back(word);
    const auto lost = lacking(had, have);
    Words argv{"--update-kernel=" + kernel};
    if (!added.empty()) argv.push_back(fmt::format("--remove-args={}", fmt::join(added, " ")));
    if (!lost.empty()) argv.push_back(fmt::format("--args={}", fmt::join(lost, " ")));
    if (argv.size() > 1) update(std::move(argv));
  }
  return reverted;
}

}  // namespace ztcp::setup::resource
