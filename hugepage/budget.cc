// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "hugepage/budget.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace ztcp::hugepage {

std::string page_name(std::uint32_t page_kib) {
  if (page_kib % (1U << 20U) == 0) return fmt::format("{} GiB", page_kib >> 20U);
  if (page_kib % (1U << 10U) == 0) return fmt::format("{} MiB", page_kib >> 10U);
  return fmt::format("{} KiB", page_kib);
}

std::uint32_t nic_mib(std::uint32_t mtu_bytes, std::uint32_t queues) {
  constexpr std::uint32_t kFrameOverheadBytes = 512;
  constexpr std::uint32_t kHeadersAndRingsMib = 16;
  const std::uint64_t bytes = std::uint64_t{receive_frames(queues) + kCopyFrames} *
                              (std::max<std::uint32_t>(mtu_bytes, 2048) + kFrameOverheadBytes);
  return queues * (kHeadersAndRingsMib + static_cast<std::uint32_t>(bytes >> 20U));
}

std::uint64_t process_limit_mib(std::span<const NicNeed> nics, std::uint32_t per_gpu_mib) {
  std::set<std::string_view> gpus;
  for (const NicNeed& nic : nics)
    if (!nic.gpu.empty()) gpus.insert(nic.gpu);
  return std::max<std::uint64_t>(gpus.size(), 1) * per_gpu_mib;
}

std::uint64_t unlimited_mib(std::span<const NicNeed> nics) {
  std::set<int> nodes;
  std::uint64_t mib = 0;
  for (const NicNeed& nic : nics) {
    if (nodes.insert(std::max(nic.node, 0)).second) mib += kDpdkBaseMib;
    mib += nic_mib(nic.mtu_bytes, nic.queues);
  }
  return mib;
}

std::vector<NodeNeed> process_needs(std::span<const NicNeed> nics, std::uint32_t per_gpu_mib,
                                    std::uint32_t page_kib) {
  std::map<int, std::uint32_t> mib_of_node;
  std::uint64_t left_mib = process_limit_mib(nics, per_gpu_mib);
  for (const NicNeed& nic : nics) {
    std::uint32_t& mib = mib_of_node[std::max(nic.node, 0)];
    const std::uint32_t base_mib = mib == 0 ? kDpdkBaseMib : 0;
    const std::uint32_t want_mib = base_mib + nic_mib(nic.mtu_bytes, nic.queues);
    const auto take_mib = static_cast<std::uint32_t>(std::min<std::uint64_t>(left_mib, want_mib));
    mib += take_mib;
    left_mib -= take_mib;
  }
  // Whole pages: else DPDK takes smaller ones than the fabric says where the machine has both.
  const std::uint32_t page_mib = std::max(page_kib / 1024, 1U);
  std::vector<NodeNeed> needs;
  needs.reserve(mib_of_node.size());
  for (const auto& [node, mib] : mib_of_node)
    needs.push_back({node, (mib + page_mib - 1) / page_mib * page_mib});
  return needs;
}

std::vector<Shortage> missing_pages(const std::vector<NodeNeed>& needs, std::uint32_t page_kib,
                                    const std::vector<NodePages>& offered,
                                    std::optional<std::uint64_t> allowance_bytes) {
  std::vector<Shortage> missing;
  std::uint64_t all = 0;
  for (const NodeNeed& need : needs) {
    const std::uint64_t pages = pages_for(need.mib, page_kib);
    all += pages;
    const auto found = std::find_if(offered.begin(), offered.end(), [&](const NodePages& p) {
      // Node -1 on either side: a machine without nodes.
      return p.page_kib == page_kib && (p.node == need.node || p.node < 0 || need.node < 0);
    });
    if (found == offered.end()) {
      missing.push_back(
          {need.node, pages, 0,
           fmt::format("needs {} x {} hugepages on NUMA node {}, but the kernel has none of that "
                       "size",
                       pages, page_name(page_kib), need.node),
           fmt::format("add hugepagesz={} hugepages={} to the kernel command line",
                       page_kib >= 1U << 20U ? "1G" : "2M", pages)});
      continue;
    }
    if (found->free >= pages) continue;
    missing.push_back(
        {need.node, pages, found->free,
         fmt::format("needs {} x {} hugepages on NUMA node {}, has {} free of {}", pages,
                     page_name(page_kib), need.node, found->free, found->total),
         fmt::format("echo {} > {}/nr_hugepages", found->total + pages - found->free,
                     found->path)});
  }
  const std::uint64_t page_bytes = std::uint64_t{page_kib} * 1024;
  if (allowance_bytes && all * page_bytes > *allowance_bytes) {
    missing.push_back(
        {-1, all, *allowance_bytes / page_bytes,
         fmt::format("needs {} x {} hugepages, the container's cgroup leaves {}", all,
                     page_name(page_kib), *allowance_bytes / page_bytes),
         fmt::format("give the container {} MiB of hugepages-{} (Kubernetes: resources.limits)",
                     all * page_kib / 1024, page_kib >= 1U << 20U ? "1Gi" : "2Mi")});
  }
  return missing;
}

}  // namespace ztcp::hugepage
