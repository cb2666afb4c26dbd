// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What lasts beyond a boot and is kept by programs of the distribution: units, the kernel's command
// line, and what has to be told of changed files.
#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/hands.h"

namespace ztcp::setup {
namespace {

using std::chrono::seconds;

constexpr seconds kUnitLimit{60};
// update-grub looks at every disk; dracut builds images.
constexpr seconds kProgramLimit{300};

// The last line of what a program said.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Done run(Host& host, const std::vector<std::string>& argv, seconds limit) {
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

bool enabled(Host& host, const std::string& unit) {
  const auto result = host.run({"systemctl", "is-enabled", unit}, kUnitLimit);
  return result && result->exit_status == 0 && last_line(result->output) == "enabled";
}

Restored restored_of(const Done& done) {
  Restored restored;
  if (!done) restored.faults.push_back(done.error());
  return restored;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

// By kernel, as grubby tells it: kernel="/boot/vmlinuz-5.14" and args="ro quiet" lines.
std::vector<std::pair<std::string, std::string>> arguments_of_kernels(Host& host) {
  std::vector<std::pair<std::string, std::string>> kernels;
  const auto told = host.run({"grubby", "--info=ALL"}, kUnitLimit);
  if (!told || told->exit_status != 0) return kernels;
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
std::vector<std::string> lacking(const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& have) {
  std::vector<std::string> lacking;
  for (const std::string& word : wanted)
    if (std::find(have.begin(), have.end(), word) == have.end()) lacking.push_back(word);
  return lacking;
}

}  // namespace

void check(Host& host, const wish::Unit& wish, const Earlier&, config::Problems& problems) {
  if (!host.has_program("systemctl"))
    problems.push_back({wish.name, "there is no systemctl to enable it with",
                        "this machine wants set-up at each boot: ztcp_setup --boot"});
}
bool holds(Host& host, const wish::Unit& wish) { return enabled(host, wish.name); }
Read<before::Unit> record(Host&, const wish::Unit&) { return before::Unit{}; }
Done carry_out(Host& host, const wish::Unit& wish, before::Unit&) {
  return run(host, {"systemctl", "enable", wish.name}, kUnitLimit);
}
Restored restore(Host& host, const wish::Unit& wish, const before::Unit&) {
  if (!enabled(host, wish.name)) return {};
  return restored_of(run(host, {"systemctl", "disable", wish.name}, kUnitLimit));
}

void check(Host& host, const wish::BootArguments&, const Earlier&, config::Problems& problems) {
  if (!host.has_program("grubby"))
    problems.push_back({"kernel command line", "there is no grubby to change it with",
                        "install the package grubby"});
}
bool holds(Host& host, const wish::BootArguments& wish) {
  const auto kernels = arguments_of_kernels(host);
  return !kernels.empty() && std::all_of(kernels.begin(), kernels.end(), [&](const auto& kernel) {
    return lacking(wish.arguments, words_of(kernel.second)).empty();
  });
}
Read<before::BootArguments> record(Host& host, const wish::BootArguments&) {
  return before::BootArguments{arguments_of_kernels(host)};
}
Done carry_out(Host& host, const wish::BootArguments& wish, before::BootArguments&) {
  if (Done done = run(host,
                      {"grubby", "--update-kernel=ALL",
                       fmt::format("--args={}", fmt::join(wish.arguments, " "))},
                      kProgramLimit);
      !done)
    return done;
  if (holds(host, wish)) return {};
  return tl::unexpected(config::Problem{
      "kernel command line", fmt::format("lacks {} still", fmt::join(wish.arguments, " ")),
      fmt::format("sudo grubby --update-kernel=ALL --args=\"{}\"",
                  fmt::join(wish.arguments, " "))});
}
Restored restore(Host& host, const wish::BootArguments& wish, const before::BootArguments& before) {
  Restored restored;
  const auto update = [&](std::vector<std::string> argv) {
    argv.insert(argv.begin(), "grubby");
    if (Done done = run(host, argv, kProgramLimit); !done) restored.faults.push_back(done.error());
  };
  const auto on_any = [](const auto& kernels, const std::string& word) {
    return std::any_of(kernels.begin(), kernels.end(), [&](const auto& kernel) {
      return lacking({word}, words_of(kernel.second)).empty();
    });
  };
  // What stood nowhere before goes from ALL, as it came: from kernels that will be installed, too.
  std::vector<std::string> ours;
  for (const std::string& word : wish.arguments)
    if (!on_any(before.arguments_of, word) && on_any(arguments_of_kernels(host), word))
      ours.push_back(word);
  if (!ours.empty())
    update({"--update-kernel=ALL", fmt::format("--remove-args={}", fmt::join(ours, " "))});
  // A kernel installed since keeps the rest: it came from kernels that had it without us.
  for (const auto& [kernel, now] : arguments_of_kernels(host)) {
    const auto known =
        std::find_if(before.arguments_of.begin(), before.arguments_of.end(),
                     [&, name = kernel](const auto& one) { return one.first == name; });
    if (known == before.arguments_of.end()) continue;
    const auto had = words_of(known->second);
    const auto have = words_of(now);
    std::vector<std::string> added;
    for (const std::string& word : lacking(wish.arguments, had))
      if (lacking({word}, have).empty()) added.push_back(word);
    const auto lost = lacking(had, have);
    std::vector<std::string> argv{"--update-kernel=" + kernel};
    if (!added.empty()) argv.push_back(fmt::format("--remove-args={}", fmt::join(added, " ")));
    if (!lost.empty()) argv.push_back(fmt::format("--args={}", fmt::join(lost, " ")));
    if (argv.size() > 1) update(std::move(argv));
  }
  return restored;
}

void check(Host& host, const wish::Notice& wish, const Earlier&, config::Problems& problems) {
  if (!wish.argv.empty() && !host.has_program(wish.argv.front()))
    problems.push_back({wish.argv.front(), "is not installed",
                        fmt::format("install what brings {}", wish.argv.front())});
}
Done give(Host& host, const wish::Notice& wish) { return run(host, wish.argv, kProgramLimit); }

}  // namespace ztcp::setup
