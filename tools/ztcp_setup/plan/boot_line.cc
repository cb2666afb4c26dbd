// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_line.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "core/kernel_release.h"
#include "tools/ztcp_setup/plan/boot_loader.h"
#include "tools/ztcp_setup/resources/kernel_words.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kDefaultPageKib = 2048;  // x86-64's, unless default_hugepagesz differs.

// Parses "1G", "2M", "2048K".
std::uint32_t kib_of(std::string_view text) {
  const auto number = static_cast<std::uint32_t>(config::leading_number(text));
  const char unit = text.empty() ? ' ' : text.back();
  if (unit == 'G' || unit == 'g') return number << 20U;
  if (unit == 'M' || unit == 'm') return number << 10U;
  return unit == 'K' || unit == 'k' ? number : number >> 10U;
}

// Parses "50", "0:25,1:25".
std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0;
  for (const std::string_view part : config::split(text, ','))
    sum += config::leading_number(part.substr(part.find(':') + 1));  // npos + 1 is 0.
  return sum;
}

bool takes_node_counts(const std::string& release) {
  return kernel_version(release) >= KernelVersion{5, 16};
}

// The arguments in our own drop-in, from an earlier run.
std::vector<std::string> arguments_of_drop_in(Host& host) {
  const std::string text = config::text_of(host, kGrubDropIn);
  auto at = text.rfind("=\"$GRUB_CMDLINE_LINUX");
  if (at == std::string::npos) return {};
  at = std::min(text.find(' ', at), text.size());
  return config::own_words(text.substr(at, text.find('"', at) - at));
}

// GRUB appends GRUB_CMDLINE_LINUX_DEFAULT: after a size of ours the operator's "hugepages=512"
// there would count pages of that size, and be dropped as a second count.
std::string drop_in_text(const std::vector<std::string>& arguments) {
  return fmt::format(
      "# Written by ztcp_setup, removed by ztcp_setup --undo.\n"
      "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {}\"\n",
      fmt::join(arguments, " "));
}

// The file to write the arguments to; null: a program knows where.
const char* file_of(BootLoader loader) {
  if (loader == BootLoader::kGrub) return kGrubDropIn;
  return loader == BootLoader::kProxmox || loader == BootLoader::kKernelInstall ? kKernelCommandLine
                                                                                : nullptr;
}

std::string by_hand(BootLoader loader) {
  if (loader == BootLoader::kSystemdBoot)
    return "this machine boots by systemd-boot, and has neither kernel-install with " +
           std::string(kKernelCommandLine) + " nor proxmox-boot-tool";
  return "this machine has neither Debian's update-grub nor grubby";
}

void note(BootPlan& plan, std::string what, std::string mend,
          config::Severity severity = config::Severity::kWarning) {
  plan.notes.push_back(
      {"boot", severity, {"kernel command line", std::move(what), std::move(mend)}});
}

// Reports arguments that were in the file before this boot, but not given to the kernel: another
// reboot would not help.
void judge_effect(Host& host, BootLoader loader, const std::vector<std::string>& wanted,
                  const std::vector<std::string>& others, BootPlan& plan) {
  const char* const file = file_of(loader);
  if (file == nullptr || !is_older_than_boot(host, file)) return;
  const auto written = loader == BootLoader::kGrub ? arguments_of_drop_in(host)
                                                   : config::own_words(config::text_of(host, file));
  if (!lacking_words(wanted, written).empty()) return;
  const auto lacking =
      lacking_words(wanted, config::own_words(config::text_of(host, "/proc/cmdline")));
  if (lacking.empty()) return;
  const bool asked_for = lacking_words(others, lacking).size() < others.size();
  note(plan,
       fmt::format("{} was in {} before this boot, but the running kernel was not given it: this "
                   "machine boots by another boot loader, or another of its entries",
                   fmt::join(lacking, " "), file),
       fmt::format("bootctl status, or efibootmgr, shows which one; add it to the kernel command "
                   "line there, and reboot: {}",
                   fmt::join(lacking, " ")),
       asked_for ? config::Severity::kFault : config::Severity::kWarning);
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
    // The kernel uses the first count of a size.
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
  const BootLoader loader = boot_loader(host);
  // The line without our arguments.
  std::vector<std::string> line = line_of_next_boot(host, loader);
  if (loader == BootLoader::kGrub)
    for (const std::string& ours : arguments_of_drop_in(host))
      if (const auto it = std::find(line.rbegin(), line.rend(), ours); it != line.rend())
        line.erase(std::next(it).base());

  // A drop-in of ours is separate from the rest. In a shared line our words can't be told from
  // others, so an argument already there is wanted all the same: an earlier run may have added it.
  const bool is_mixed = loader != BootLoader::kGrub && loader != BootLoader::kUnknown &&
                        loader != BootLoader::kSystemdBoot;
  std::vector<std::string> wanted;
  for (const std::string& argument : others)
    if (is_mixed || !lacking_words({argument}, line).empty()) wanted.push_back(argument);
  const std::string release = config::read_line(host, "/proc/sys/kernel/osrelease").value_or("");
  const auto page_words = page_arguments(pages, page_kib, release);
  const std::uint64_t there = pages_on(line, page_kib);
  const std::uint64_t needed = pages_on(page_words, page_kib);
  if (there == 0 || (is_mixed && lacking_words(page_words, line).empty()))
    wanted.insert(wanted.end(), page_words.begin(), page_words.end());
  else if (there < needed)
    // The kernel uses the first count of a size and ignores others.
    note(plan,
         fmt::format("reserves {} pages of {} KiB at boot, wanted {}; a second count would be "
                     "ignored",
                     there, page_kib, needed),
         fmt::format("write {} where the count is set now: grep -r hugepages= /etc/default "
                     "/etc/kernel",
                     fmt::join(page_words, " ")));
  if (wanted.empty()) return plan;
  judge_effect(host, loader, wanted, others, plan);

  const std::string text = fmt::format("{}", fmt::join(wanted, " "));
  const std::string why = "kernel command line of the next boot: " + text;
  const auto programs = loader_programs(host, loader);
  if (loader == BootLoader::kGrubby) {
    plan.resources.push_back({why, resource::BootArguments{wanted}});
  } else if (programs.empty()) {
    note(plan,
         fmt::format("lacks {}, and {}, so it will also lack them after the next boot", text,
                     by_hand(loader)),
         fmt::format("add to the kernel command line by hand, as the boot loader requires: {}",
                     text));
  } else {
    if (loader == BootLoader::kGrub)
      plan.resources.push_back({why, resource::File{kGrubDropIn, drop_in_text(wanted), 0644, ""}});
    else
      plan.resources.push_back({why, resource::CommandLineFile{kKernelCommandLine, wanted}});
    for (const std::vector<std::string>& program : programs)
      plan.resources.push_back({program.front() == "sync"
                                    ? "the boot loader's menu, copied to where it is read"
                                    : "the boot loader's menu, regenerated",
                                resource::Notice{program}});
  }
  return plan;
}

}  // namespace ztcp::setup
