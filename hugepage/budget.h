// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The hugepage memory that a host reserves and a process asks for, and the shortage if any. Pure:
// compares numbers that config/machine/hugepages.h has read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ztcp::hugepage {

// The kernel's pages of one size on one node.
struct NodePages {
  int node = 0;  // -1: the kernel has no NUMA nodes; the machine's count.
  std::uint32_t page_kib = 0;
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::string path;  // The directory of the counts, for the command that changes them.
};

// Reserved by set-up by default: 50 GiB for eight GPUs.
inline constexpr std::uint32_t kMibPerGpu = 5 * 1024;
inline constexpr std::uint32_t kMibPerHost = 10 * 1024;

// Pages of one size needed on one node.
struct NodeNeed {
  int node = 0;
  std::uint32_t mib = 0;
};

constexpr std::uint64_t pages_for(std::uint32_t mib, std::uint32_t page_kib) {
  return (std::uint64_t{mib} * 1024 + page_kib - 1) / page_kib;
}

// DPDK's own memory on each node it uses.
inline constexpr std::uint32_t kDpdkBaseMib = 16;
// Frames of one queue of a PCI NIC: received and held ones, and copies of sent ones.
constexpr std::uint32_t receive_frames(std::uint32_t queues) { return queues == 1 ? 8192 : 4096; }
inline constexpr std::uint32_t kCopyFrames = 4096;

// Memory of one NIC: frames, descriptors, headers and rings of all its queues.
std::uint32_t nic_mib(std::uint32_t mtu_bytes, std::uint32_t queues = 1);

struct NicNeed {
  int node = -1;
  std::uint32_t mtu_bytes = 0;
  std::string gpu{};  // The GPU it is paired with; empty: none.
  std::uint32_t queues = 1;
};
// The memory one process takes at its start, by node and in whole pages: enough for every NIC that
// it may open, as DPDK cannot grow later, but at most `per_gpu_mib` for each GPU of these NICs.
// NICs without a known node are counted on node 0.
std::vector<NodeNeed> process_needs(std::span<const NicNeed> nics, std::uint32_t per_gpu_mib,
                                    std::uint32_t page_kib);
// The most memory that a process with these NICs takes, and its need without that limit.
std::uint64_t process_limit_mib(std::span<const NicNeed> nics, std::uint32_t per_gpu_mib);
std::uint64_t unlimited_mib(std::span<const NicNeed> nics);

// One shortage and the command that removes it.
struct Shortage {
  int node = -1;                // -1: the whole machine or container.
  std::uint64_t needed = 0;     // Pages.
  std::uint64_t available = 0;  // Pages.
  // "needs 1024 x 2 MiB hugepages on NUMA node 1, has 512"
  std::string text;
  // "echo 1536 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
  std::string command;
};

// Every shortage for `needs`, not only the first. `allowance_bytes` is the amount the container may
// still take.
std::vector<Shortage> missing_pages(const std::vector<NodeNeed>& needs, std::uint32_t page_kib,
                                    const std::vector<NodePages>& offered,
                                    std::optional<std::uint64_t> allowance_bytes);

// "2 MiB", "1 GiB"
std::string page_name(std::uint32_t page_kib);

}  // namespace ztcp::hugepage
