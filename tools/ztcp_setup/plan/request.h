// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the operator asks of set-up: the command line as values. What is left open follows the
// config that is there already, then the defaults.
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
  kFresh,  // Looks at the machine: which NICs, which GPUs, which addresses.
  kAdd,    // The NICs of the config as they are, and those that came since.
};

// What carries the fabric of a host: ztcp's own TCP, which takes NICs from the kernel, the
// kernel's, or RDMA devices.
enum class Transport : std::uint8_t { kUstack, kSockets, kVerbs };

struct PlanRequest {
  // Every fit NIC, for --nics all.
  static constexpr unsigned kAllNics = 0;

  Mode mode = Mode::kFresh;
  std::string config_path;
  config::Selection selection;
  // Absent: as the config has it; without one ztcp's own, where each GPU can have a NIC.
  std::optional<Transport> transport;
  std::optional<unsigned> nics;         // --nics: so many without GPUs; absent: one for each GPU.
  std::optional<std::uint32_t> queues;  // Of each NIC that is taken; kAutoQueues: by its speed.
  bool no_iommu = false;                // Class B is what the operator wants.
  bool ask_iommu = false;               // Class A from the next boot on; nothing is taken before.
  std::optional<std::uint32_t> page_kib;
  std::optional<std::uint32_t> per_gpu_mib;  // Of each GPU, or of each NIC without one.
  std::optional<std::uint32_t> spare_mib;    // Of the host, beside those.
  std::optional<std::uint32_t> speed_mbps;   // Of each NIC, as NCCL is told.
  // The same of single NICs, by interface, PCI address or device name.
  std::map<std::string, std::uint32_t, std::less<>> speeds_mbps;
  std::string user;  // Who may run jobs; both empty: root.
  std::string group;
};

}  // namespace ztcp::setup
