// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/boot_arguments.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "config/machine/text.h"
#include "tools/ztcp_setup/resources/kernel_words.h"
#include "tools/ztcp_setup/resources/program.h"

namespace ztcp::setup::resource {
namespace {

using Words = KernelWords;
constexpr const char* kWhere = "kernel command line";
using ArgumentsOf = std::vector<std::pair<std::string, std::string>>;

// The arguments of each kernel, from grubby's lines kernel="/boot/vmlinuz-5.14" and args="ro
// quiet".
Read<ArgumentsOf> arguments_of_kernels(Host& host) {
  ArgumentsOf kernels;
  const auto told = host.run({"grubby", "--info=ALL"}, kUnitLimit);
  if (!told || told->exit_status != 0)
    return tl::unexpected(
        config::Problem{kWhere,
                        fmt::format("grubby does not list it: {}",
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

bool has(const std::string& arguments, const std::string& word) {
  return lacking_words({word}, config::own_words(arguments)).empty();
}

bool any_has(const ArgumentsOf& kernels, const std::string& word) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const auto& kernel) { return has(kernel.second, word); });
}

Words update(const std::string& kernel, const Words& arguments) {
  return {"grubby", "--update-kernel=" + kernel,
          fmt::format("--args={}", fmt::join(arguments, " "))};
}

// grubby identifies an argument by its name: "hugepages=20" would replace another program's
// "hugepages=512". So it gets all page words, the others' first.
Words with_words_of_others(const Words& ours, const std::string& line) {
  Words words;
  Words pages;
  for (const std::string& word : ours) (is_page_word(word) ? pages : words).push_back(word);
  if (!pages.empty())
    for (const std::string& word : page_words_of_others(config::own_words(line), ours))
      words.push_back(word);
  words.insert(words.end(), pages.begin(), pages.end());
  return words;
}

}  // namespace

void BootArguments::check(Host& host, const Others&, config::Problems& problems) const {
  if (!host.has_program("grubby"))
    problems.push_back(
        {kWhere, "grubby, which changes it, is not installed", "install the package grubby"});
}

bool BootArguments::holds(Host& host) const {
  const auto kernels = arguments_of_kernels(host);
  if (!kernels || kernels->empty()) return false;
  return std::all_of(kernels->begin(), kernels->end(), [&](const auto& kernel) {
    return lacking_words(arguments, config::own_words(kernel.second)).empty();
  });
}

Read<BootArguments::Before> BootArguments::before(Host& host) const {
  return Before{ZTCP_TRY(arguments_of_kernels(host))};
}

Preview BootArguments::preview(Host& host) const {
  const std::string text = fmt::format("{}", fmt::join(arguments, " "));
  // grubby may answer only root.
  return {"", arguments_of_kernels(host) ? "without" : "unknown", text,
          fmt::format("grubby --update-kernel=ALL --args=\"{}\"", text)};
}

Done BootArguments::apply(Host& host, Before& before) const {
  const ArgumentsOf& had = before.arguments_of;
  const Words all = with_words_of_others(arguments, had.empty() ? "" : had.front().second);
  if (Done done = run_program(host, update("ALL", all), kProgramLimit); !done) return done;
  for (const auto& [kernel, line] : had) {
    const Words own = with_words_of_others(arguments, line);
    if (own == all) continue;
    if (Done done = run_program(host, update(kernel, own), kProgramLimit); !done) return done;
  }
  if (holds(host)) return {};
  return tl::unexpected(config::Problem{
      kWhere, fmt::format("still lacks {}", fmt::join(arguments, " ")),
      fmt::format("sudo grubby --update-kernel=ALL --args=\"{}\"", fmt::join(arguments, " "))});
}

std::string BootArguments::restored(const Before&) const {
  return fmt::format("{} are removed from the kernels that lacked them", fmt::join(arguments, " "));
}

Reverted BootArguments::revert(Host& host, const Before& before) const {
  const std::string text = fmt::format("{}", fmt::join(arguments, " "));
  if (!host.has_program("grubby"))
    return {{}, {{kWhere, "grubby is no longer installed, so this stays: " + text, ""}}};
  const auto now = arguments_of_kernels(host);
  if (!now) return {{now.error()}, {}};
  Reverted reverted;
  const auto run = [&](Words argv) {
    argv.insert(argv.begin(), "grubby");
    if (Done done = run_program(host, argv, kProgramLimit); !done)
      reverted.faults.push_back(done.error());
  };
  // Words that no kernel had before are removed from ALL, as they were added: also for future
  // kernels.
  Words ours;
  for (const std::string& word : arguments)
    if (!any_has(before.arguments_of, word) && any_has(*now, word)) ours.push_back(word);
  if (!ours.empty())
    run({"--update-kernel=ALL", fmt::format("--remove-args={}", fmt::join(ours, " "))});
  const auto left = arguments_of_kernels(host);
  if (!left) {
    reverted.faults.push_back(left.error());
    return reverted;
  }
  // A kernel installed since keeps the others: it copied them from kernels that had them before
  // set-up.
  for (const auto& [kernel, line] : *left) {
    const auto known =
        std::find_if(before.arguments_of.begin(), before.arguments_of.end(),
                     [&, name = kernel](const auto& one) { return one.first == name; });
    if (known == before.arguments_of.end()) continue;
    const auto had = config::own_words(known->second);
    const auto have = config::own_words(line);
    Words added;
    for (const std::string& word : lacking_words(arguments, had))
      if (lacking_words({word}, have).empty()) added.push_back(word);
    Words lost = lacking_words(had, have);
    // Page words are restored together, in their order.
    if (std::any_of(lost.begin(), lost.end(), is_page_word)) {
      std::erase_if(lost, is_page_word);
      std::copy_if(had.begin(), had.end(), std::back_inserter(lost), is_page_word);
    }
    Words argv{"--update-kernel=" + kernel};
    if (!added.empty()) argv.push_back(fmt::format("--remove-args={}", fmt::join(added, " ")));
    if (!lost.empty()) argv.push_back(fmt::format("--args={}", fmt::join(lost, " ")));
    if (argv.size() > 1) run(std::move(argv));
  }
  return reverted;
}

}  // namespace ztcp::setup::resource
