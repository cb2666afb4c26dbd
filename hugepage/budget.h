// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How much hugepage memory a host sets aside and a process asks for, and what is missing. Pure:
// compares numbers that config/machine/hugepages.h has read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ztcp::hugepage {

// What the kernel has of one size on one node.
struct NodePages {
  int node = 0;  // -1: the kernel has no NUMA nodes; the machine's count.
  std::uint32_t page_kib = 0;
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::string path;  // The folder of the counts, for the command that changes them.
};

// What set-up reserves unless it is told otherwise: 50 GiB for eight GPUs.
inline constexpr std::uint32_t kMibPerGpu = 5 * 1024;
inline constexpr std::uint32_t kMibPerHost = 10 * 1024;

// Wanted on one node, in pages of one size.
struct NodeNeed {
  int node = 0;
  std::uint32_t mib = 0;
};

constexpr std::uint64_t pages_for(std::uint32_t mib, std::uint32_t page_kib) {
  return (std::uint64_t{mib} * 1024 + page_kib - 1) / page_kib;
}

// DPDK's own needs on each node that it has memory of.
inline constexpr std::uint32_t kDpdkBaseMib = 16;
// Frames of one queue of a NIC on PCI: those being received and held, and copies of sends.
constexpr std::uint32_t receive_frames(std::uint32_t queues) { return queues == 1 ? 8192 : 4096; }
inline constexpr std::uint32_t kCopyFrames = 4096;

// What one NIC takes: its frames, their descriptors, headers and rings, of all its queues.
std::uint32_t nic_mib(std::uint32_t mtu_bytes, std::uint32_t queues = 1);

struct NicNeed {
  int node = -1;
  std::uint32_t mtu_bytes = 0;
  std::string gpu{};  // That it is paired with; empty: none.
  std::uint32_t queues = 1;
};
// What one process takes at its start, by node and in whole pages: room for every NIC that it may
// open, as DPDK can't grow later, but no more than `per_gpu_mib` for each GPU of these NICs. NICs
// that don't know their node are given room on node 0.
std::vector<NodeNeed> process_needs(std::span<const NicNeed> nics, std::uint32_t per_gpu_mib,
                                    std::uint32_t page_kib);
// The most that a process with these NICs takes, and what it would take if that were no limit.
std::uint64_t process_limit_mib(std::span<const NicNeed> nics, std::uint32_t per_gpu_mib);
std::uint64_t unlimited_mib(std::span<const NicNeed> nics);

// One thing that is missing and the command that provides it.
struct Shortage {
  int node = -1;                // -1: of the whole machine or container.
  std::uint64_t needed = 0;     // Pages.
  std::uint64_t available = 0;  // Pages.
  // "needs 1024 x 2 MiB hugepages on NUMA node 1, has 512"
  std::string text;
  // "echo 1536 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
  std::string command;
};

// Everything that keeps `needs` from being met, not only the first thing. `allowance_bytes` is
// what the container may still take.
std::vector<Shortage> missing_pages(const std::vector<NodeNeed>& needs, std::uint32_t page_kib,
                                    const std::vector<NodePages>& offered,
                                    std::optional<std::uint64_t> allowance_bytes);

// "2 MiB", "1 GiB"
std::string page_name(std::uint32_t page_kib);

}  // namespace ztcp::hugepage
