// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A network interface of this host that sockets may use, as NCCL is shown it.
#pragma once

#include <cstdint>
#include <string>

#include "transport/core/address.h"

namespace ztcp::sockets {

enum class SpeedSource : std::uint8_t {
  kGuess,    // Nobody tells.
  kNominal,  // The driver of a virtual interface does, whatever carries its bytes: a pod's veth.
  kTold,
};

// Of an interface of this host.
enum class InterfaceState : std::uint8_t {
  kUp,
  kSetDown,    // By ip link set down.
  kNoCarrier,  // Its cable, its switch port.
  kMissing,
};

struct Device {
  std::string name;       // What NCCL shows: the config's, or the interface's where there is none.
  std::string interface;  // "eth1"
  IpAddress address;      // Bound by listeners, and the source of what is dialled.
  std::uint32_t scope = 0;  // The interface's index for link-local addresses; 0: of no use.
  // Where listeners bind: the first that is free. Both 0: the kernel chooses.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  bool bind_to_device = false;  // Another interface of this host has an address in the subnet.
  std::uint32_t speed_mbps = 10000;
  SpeedSource speed_source = SpeedSource::kGuess;
  std::uint32_t nccl_devices = 0;  // As so many NCCL shall be shown it; 0: plan::nccl_devices().
  std::string pci_path;
  std::int32_t numa_node = -1;
  std::uint32_t mtu_bytes = 1500;
  std::uint32_t rx_queues = 0;  // Of the NICs below it, where it has such; 0: nobody tells.
  std::string gpu_pci;
  std::string gpu_uuid;
  std::string choice;  // How it was chosen: "by NCCL_SOCKET_IFNAME=eth".
};

}  // namespace ztcp::sockets
