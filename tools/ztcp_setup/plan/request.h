// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The operator's request: the command line as values. Open choices follow the present config, then
// the defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/topology/topology.h"

namespace ztcp::setup {

enum class Mode : std::uint8_t {
  kFresh,  // Plans NICs, GPUs and addresses from the machine.
  kAdd,    // The config's NICs unchanged, and NICs attached since.
};

// The transport of a host's fabric: ztcp's own TCP, which takes NICs from the kernel, or goes past
// it with AF_XDP or DPDK's driver of ConnectX NICs; the kernel's TCP; or RDMA devices.
enum class Transport : std::uint8_t { kUstack, kXdp, kMlx5, kSockets, kVerbs };

struct PlanRequest {
  // All fit NICs: --nics all.
  static constexpr unsigned kAllNics = 0;

  Mode mode = Mode::kFresh;
  std::string config_path;
  config::Selection selection;
  // Absent: as in the config; without one ztcp's own, where each GPU can have a NIC.
  std::optional<Transport> transport;
  std::optional<unsigned> nics;         // --nics: number without GPUs; absent: one for each GPU.
  std::optional<std::uint32_t> queues;  // Per taken NIC; kAutoQueues: by its speed.
  bool no_iommu = false;                // The operator accepts class B.
  bool ask_iommu = false;               // Class A from the next boot on; takes nothing before.
  std::optional<std::uint32_t> page_kib;
  std::optional<std::uint32_t> per_gpu_mib;  // Per GPU, or per NIC without one.
  std::optional<std::uint32_t> spare_mib;    // For the host, beside those.
  std::optional<std::uint32_t> speed_mbps;   // Told to NCCL for every NIC.
  // The same for single NICs, by interface, PCI address or device name.
  std::map<std::string, std::uint32_t, std::less<>> speeds_mbps;
  std::string user;  // Account that may run jobs; both empty: root.
  std::string group;
};

}  // namespace ztcp::setup
