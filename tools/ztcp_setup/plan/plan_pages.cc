// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "config/machine/hugepages.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "hugepage/budget.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kLargePageKib = 1048576;
constexpr std::uint32_t kSmallPageKib = 2048;
// Memory that a node keeps for other uses at least; with less the kernel stalls.
constexpr std::uint64_t kLeftToOthersMib = 512;

// "Node 0 MemTotal:  16384 kB" or "MemTotal: 16384 kB".
std::uint64_t memory_mib(config::Machine& machine, const std::string& path,
                         std::string_view field) {
  const std::string text = config::text_of(machine, path);
  const auto at = text.find(field);
  if (at == std::string::npos) return 0;
  const auto first = text.find_first_of("0123456789", at + field.size());
  std::uint64_t kib = 0;
  if (first != std::string::npos)
    std::from_chars(text.data() + first, text.data() + text.size(), kib);
  return kib >> 10U;
}

class Pages {
 public:
  Pages(const PlanInput& input, std::vector<config::Check>& notes)
      : input_(input), host_(input.host), offered_(config::read_pages(host_)), notes_(notes) {}

  PagesDecision decide(const std::vector<config::Nic>& nics) {
    const PlanRequest& request = input_.request;
    PagesDecision decision;
    decision.page_kib = choose_size();
    decision.per_gpu_mib = request.per_gpu_mib.value_or(
        input_.existing ? input_.existing->hugepages.per_process_mib : hugepage::kMibPerGpu);
    decision.spare_mib = request.spare_mib.value_or(
        input_.existing ? input_.existing->hugepages.spare_mib : hugepage::kMibPerHost);
    // Each NIC's node gets its GPU's share, and the host's spare is spread over the same nodes.
    std::map<std::int32_t, std::uint32_t> jobs_mib_of_node;
    for (const config::Nic& nic : nics) jobs_mib_of_node[node_of(nic)] += decision.per_gpu_mib;
    if (jobs_mib_of_node.empty()) return decision;
    const bool jobs_may_run = std::any_of(nics.begin(), nics.end(), [&](const config::Nic& nic) {
      return config::link_name(host_, config::pci_folder(nic.pci) + "/driver") == "vfio-pci";
    });
    const auto nodes = static_cast<std::uint32_t>(jobs_mib_of_node.size());
    std::uint64_t wanted = 0;
    std::uint32_t spare_mib = decision.spare_mib / nodes + decision.spare_mib % nodes;
    for (const auto& [node, jobs_mib] : jobs_mib_of_node) {
      const hugepage::NodePages there = pool_of(node, decision.page_kib);
      const NodePages pages{node, hugepage::pages_for(jobs_mib + spare_mib, decision.page_kib),
                            there.total};
      spare_mib = decision.spare_mib / nodes;
      decision.pages.push_back(pages);
      wanted += pages.want;
      judge_memory(pages, decision.page_kib);
      // Pages used by a job of ztcp were reserved for it.
      if (!jobs_may_run)
        judge_pages_in_use(there, pages.want, hugepage::pages_for(jobs_mib, decision.page_kib));
    }
    judge_sysctl(decision.page_kib, wanted);
    return decision;
  }

 private:
  // vm.nr_hugepages counts all pages of the default size on all nodes: each `sysctl --system` frees
  // pages beyond it. At boot the unit runs after it.
  void judge_sysctl(std::uint32_t page_kib, std::uint64_t wanted) {
    const std::string meminfo = config::text_of(host_, "/proc/meminfo");
    const auto at = meminfo.find("Hugepagesize:");
    const std::uint64_t default_kib =
        at == std::string::npos
            ? kSmallPageKib
            : config::leading_number(meminfo.substr(meminfo.find_first_of("0123456789", at)));
    if (default_kib != page_kib) return;
    // By file name; files in /etc replace others of the same name; the last setting counts.
    std::map<std::string, std::string> files;
    for (const char* folder : {"/usr/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"})
      for (const std::string& name : host_.list(folder))
        if (name.ends_with(".conf")) files[name] = std::string(folder) + "/" + name;
    files["~"] = "/etc/sysctl.conf";
    std::string where;
    std::uint64_t pages = 0;
    for (const auto& [name, file] : files) {
      const std::string text = config::text_of(host_, file);
      for (std::string_view line : config::lines_of(text)) {
        while (line.starts_with(' ') || line.starts_with('-')) line.remove_prefix(1);
        const auto equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        const auto key = config::own_words(line.substr(0, equals));
        const auto value = config::own_words(line.substr(equals + 1));
        if (key.size() != 1 || value.size() != 1 ||
            (key[0] != "vm.nr_hugepages" && key[0] != "vm/nr_hugepages"))
          continue;
        where = file;
        pages = config::leading_number(value[0]);
      }
    }
    if (where.empty() || pages >= wanted) return;
    note(config::Severity::kWarning, where,
         fmt::format("sets vm.nr_hugepages to {}: each time it is applied, only {} pages of {} "
                     "stay; ztcp needs {}",
                     pages, pages, hugepage::page_name(page_kib), wanted),
         fmt::format("set it to at least {} there, more with other programs", wanted));
  }

  void note(config::Severity severity, std::string where, std::string what, std::string mend) {
    notes_.push_back({"hugepages", severity, {std::move(where), std::move(what), std::move(mend)}});
  }

  // Prefers large pages: the NIC's page table needs one entry for 1 GiB.
  std::uint32_t choose_size() {
    const auto offers = [&](std::uint32_t kib) {
      return config::exists(host_, fmt::format("/sys/kernel/mm/hugepages/hugepages-{}kB", kib));
    };
    std::uint32_t kib = offers(kLargePageKib) ? kLargePageKib : kSmallPageKib;
    if (input_.existing && input_.existing->hugepages.page_kib != 0)
      kib = input_.existing->hugepages.page_kib;
    kib = input_.request.page_kib.value_or(kib);
    if (!offers(kib))
      note(config::Severity::kFault, "hugepages",
           fmt::format("this machine has no pages of {}: {}", hugepage::page_name(kib),
                       kib == kLargePageKib ? "its CPU lacks pdpe1gb, or its kernel support"
                                            : "its kernel lacks support"),
           kib == kLargePageKib ? "ztcp_setup --pages 2M" : "a kernel with CONFIG_HUGETLBFS");
    return kib;
  }

  // A process allocates memory for a NIC without a known node on node 0 (hugepage::process_needs),
  // unless the kernel has no NUMA nodes.
  std::int32_t node_of(const config::Nic& nic) const {
    const bool knows_nodes = std::any_of(offered_.begin(), offered_.end(),
                                         [](const auto& pool) { return pool.node >= 0; });
    return nic.numa_node < 0 && knows_nodes ? 0 : nic.numa_node;
  }

  hugepage::NodePages pool_of(std::int32_t node, std::uint32_t page_kib) const {
    for (const auto& pool : offered_)
      if (pool.page_kib == page_kib && pool.node == node) return pool;
    return {node, page_kib, 0, 0, ""};
  }

  static std::string place_of(std::int32_t node) {
    return node < 0 ? std::string("memory") : fmt::format("NUMA node {}", node);
  }

  // Pages in use by another program count as its own: it may have reserved them first.
  void judge_pages_in_use(const hugepage::NodePages& there, std::uint64_t want,
                          std::uint64_t jobs_want) {
    const std::uint64_t in_use = there.total - std::min(there.total, there.free);
    const std::uint64_t total = std::max(there.total, want);
    if (in_use == 0 || total >= in_use + jobs_want) return;
    note(config::Severity::kWarning, place_of(there.node),
         fmt::format("other programs use {} of {} pages: of {} pages {} will be free, and jobs "
                     "may take {}",
                     in_use, hugepage::page_name(there.page_kib), total, total - in_use, jobs_want),
         fmt::format("stop them, or echo {} | sudo tee {}/nr_hugepages, and the same wherever "
                     "their pages are reserved at boot",
                     want + in_use, there.path));
  }

  // The total must fit the node's memory; the free memory decides only how soon.
  void judge_memory(const NodePages& pages, std::uint32_t page_kib) {
    const std::string meminfo =
        pages.node < 0 ? std::string("/proc/meminfo")
                       : fmt::format("/sys/devices/system/node/node{}/meminfo", pages.node);
    const std::string where = place_of(pages.node);
    if (pages.node >= 0 && !config::exists(host_, meminfo)) {
      note(config::Severity::kFault, where,
           "a NIC is on this node, but the machine does not have it",
           "ls /sys/devices/system/node lists the nodes");
      return;
    }
    const std::uint64_t total = memory_mib(host_, meminfo, "MemTotal:");
    const std::uint64_t free = memory_mib(host_, meminfo, "MemFree:");
    const std::uint64_t want = pages.want * page_kib >> 10U;
    const std::uint64_t more = (pages.want - std::min(pages.want, pages.have)) * page_kib >> 10U;
    if (total == 0) return;  // Not readable: the kernel will report a shortage.
    if (want + kLeftToOthersMib > total)
      note(config::Severity::kFault, where,
           fmt::format("{} MiB of hugepages wanted, but the memory is {} MiB, and {} MiB of it "
                       "stay reserved for other uses",
                       want, total, kLeftToOthersMib),
           "reserve less for each GPU and the host: ztcp_setup --per-gpu 1G --spare 0");
    else if (free > 0 && more > free)
      note(config::Severity::kWarning, where,
           fmt::format("{} MiB more of hugepages wanted, {} MiB of memory free now: the kernel may "
                       "give less before the next boot",
                       more, free),
           "stop programs that use memory, or reboot after set-up");
  }

  const PlanInput& input_;
  Host& host_;
  const std::vector<hugepage::NodePages> offered_;
  std::vector<config::Check>& notes_;
};

}  // namespace

PagesDecision decide_pages(const PlanInput& input, const std::vector<config::Nic>& nics,
                           std::vector<config::Check>& notes) {
  return Pages(input, notes).decide(nics);
}

}  // namespace ztcp::setup
