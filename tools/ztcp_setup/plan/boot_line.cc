// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_line.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "transport/core/kernel_release.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kDefaultPageKib = 2048;  // x86-64's, unless default_hugepagesz says more.

// "1G", "2M", "2048K"
std::uint32_t kib_of(std::string_view text) {
  const auto number = static_cast<std::uint32_t>(config::leading_number(text));
  const char unit = text.empty() ? ' ' : text.back();
  if (unit == 'G' || unit == 'g') return number << 20U;
  if (unit == 'M' || unit == 'm') return number << 10U;
  return unit == 'K' || unit == 'k' ? number : number >> 10U;
}

// "50", "0:25,1:25"
std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0;
  for (const std::string_view part : config::split(text, ','))
    sum += config::leading_number(part.substr(part.find(':') + 1));  // npos + 1 is 0.
  return sum;
}

bool takes_node_counts(const std::string& release) {
  return kernel_version(release) >= KernelVersion{5, 16};
}

// The command line of the next boot, as GRUB's menu has it: the kernel that runs now may have been
// started before an undo, or by hand.
std::vector<std::string> line_of_next_boot(Host& host) {
  const std::string menu = config::text_of(host, "/boot/grub/grub.cfg");
  for (const std::string_view line : config::lines_of(menu))
    if (auto words = config::own_words(line); words.size() > 2 && words[0] == "linux") return words;
  return config::own_words(config::text_of(host, "/proc/cmdline"));
}

// The arguments inside our own drop-in: those of an earlier run.
std::vector<std::string> arguments_of_drop_in(Host& host) {
  const std::string text = config::text_of(host, kGrubDropIn);
  const std::string_view start = "$GRUB_CMDLINE_LINUX ";
  const auto at = text.rfind(start);
  if (at == std::string::npos) return {};
  const auto first = at + start.size();
  return config::own_words(text.substr(first, text.find('"', first) - first));
}

std::string drop_in_text(const std::vector<std::string>& arguments) {
  return fmt::format(
      "# Written by ztcp_setup, removed by ztcp_setup --undo.\n"
      "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"\n",
      fmt::join(arguments, " "));
}

bool is_debian(Host& host) {
  const std::string text = config::text_of(host, "/etc/os-release");
  return text.find("debian") != std::string::npos;  // Ubuntu says ID_LIKE=debian.
}

void note(BootPlan& plan, std::string what, std::string mend) {
  plan.notes.push_back({"boot",
                        config::Severity::kWarning,
                        {"kernel command line", std::move(what), std::move(mend)}});
}

}  // namespace

std::vector<std::string> page_arguments(const std::vector<NodePages>& pages, std::uint32_t page_kib,
                                        const std::string& kernel_release) {
  std::uint64_t sum = 0;
  std::vector<std::string> by_node;
  for (const NodePages& node : pages) {
    sum += node.want;
    if (node.node >= 0) by_node.push_back(fmt::format("{}:{}", node.node, node.want));
  }
  if (sum == 0) return {};
  const bool nodes = by_node.size() == pages.size() && takes_node_counts(kernel_release);
  return {fmt::format("hugepagesz={}", page_kib >= 1U << 20U ? "1G" : "2M"),
          nodes ? fmt::format("hugepages={}", fmt::join(by_node, ","))
                : fmt::format("hugepages={}", sum)};
}

std::uint64_t pages_on(const std::vector<std::string>& arguments, std::uint32_t page_kib) {
  std::uint32_t default_kib = kDefaultPageKib;
  for (const std::string& argument : arguments)
    if (argument.starts_with("default_hugepagesz=")) default_kib = kib_of(argument.substr(19));
  std::uint32_t current_kib = default_kib;
  std::uint64_t pages = 0;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("hugepagesz=")) current_kib = kib_of(argument.substr(11));
    // The first count of a size holds.
    if (argument.starts_with("hugepages=") && current_kib == page_kib && pages == 0)
      pages = sum_of(argument.substr(10));
  }
  return pages;
}

bool boots_with(Host& host, const std::string& argument) {
  const auto line = config::own_words(config::text_of(host, "/proc/cmdline"));
  return std::find(line.begin(), line.end(), argument) != line.end();
}

BootPlan plan_boot(Host& host, const std::vector<NodePages>& pages, std::uint32_t page_kib,
                   const std::vector<std::string>& others) {
  BootPlan plan;
  // What stands there without us.
  std::vector<std::string> line = line_of_next_boot(host);
  for (const std::string& ours : arguments_of_drop_in(host))
    if (const auto it = std::find(line.rbegin(), line.rend(), ours); it != line.rend())
      line.erase(std::next(it).base());

  const auto stands = [&](const std::string& argument) {
    return std::find(line.begin(), line.end(), argument) != line.end();
  };
  // A drop-in of ours can be told from the rest; what grubby wrote can't, so that an argument which
  // stands there is wanted all the same: it may be the one that an earlier run applied.
  const bool drop_in = is_debian(host) && host.has_program("update-grub");
  const bool grubby = !drop_in && host.has_program("grubby");
  std::vector<std::string> wanted;
  for (const std::string& argument : others)
    if (grubby || !stands(argument)) wanted.push_back(argument);
  const std::string release = config::read_line(host, "/proc/sys/kernel/osrelease").value_or("");
  const auto page_words = page_arguments(pages, page_kib, release);
  const std::uint64_t there = pages_on(line, page_kib);
  const std::uint64_t needed = pages_on(page_words, page_kib);
  if (there == 0 || (grubby && std::all_of(page_words.begin(), page_words.end(), stands)))
    wanted.insert(wanted.end(), page_words.begin(), page_words.end());
  else if (there < needed)
    // The kernel takes the first count of a size and ignores another.
    note(plan,
         fmt::format("reserves {} pages of {} KiB at boot, wanted {}; a second count would be "
                     "ignored",
                     there, page_kib, needed),
         fmt::format("write {} where the count stands now: grep -r hugepages= /etc/default "
                     "/etc/kernel",
                     fmt::join(page_words, " ")));
  if (wanted.empty()) return plan;

  const std::string text = fmt::format("{}", fmt::join(wanted, " "));
  if (drop_in) {
    plan.resources.push_back({"kernel command line of the next boot: " + text,
                              resource::File{kGrubDropIn, drop_in_text(wanted), 0644, ""}});
    plan.resources.push_back(
        {"the boot loader's menu, written anew", resource::Notice{{"update-grub"}}});
    // GRUB knows nothing of the file system's journal.
    plan.resources.push_back({"the boot loader's menu, where the boot loader reads it",
                              resource::Notice{{"sync", "--file-system", "/boot"}}});
  } else if (grubby) {
    plan.resources.push_back(
        {"kernel command line of the next boot: " + text, resource::BootArguments{wanted}});
  } else {
    note(plan,
         fmt::format("lacks {}, and this machine has neither Debian's update-grub nor grubby, so "
                     "that it lacks them after the next boot as well",
                     text),
         fmt::format("add to the kernel command line by hand, in the boot loader's way: {}", text));
  }
  return plan;
}

}  // namespace ztcp::setup
