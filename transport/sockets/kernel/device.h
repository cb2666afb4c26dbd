// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A network interface of this host that the sockets transport uses, and its properties.
#pragma once

#include <cstdint>
#include <string>

#include "core/address.h"

namespace ztcp::sockets {

enum class SpeedSource : std::uint8_t {
  kGuess,    // Neither the config nor the driver gives one.
  kNominal,  // The constant of a virtual interface's driver, such as veth's; no real speed.
  kTold,     // By the config, or by the driver of a card.
};

enum class InterfaceState : std::uint8_t {
  kUp,
  kSetDown,    // By ip link set down.
  kNoCarrier,  // The cable or the switch port.
  kMissing,    // The interface no longer exists.
};

struct Device {
  std::string name;         // Shown by NCCL: the config's name, else the interface's.
  std::string interface;    // "eth1"
  IpAddress address;        // Listeners and outgoing connections bind to it.
  std::uint32_t scope = 0;  // The interface's index, if `address` is link-local IPv6; else 0.
  // A listener binds to the first free port of these. Both 0: the kernel chooses.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  std::uint8_t dscp = 0;           // Its sockets send packets with it.
  std::string congestion_control;  // Its sockets have it; empty: the kernel's.
  bool bind_to_device = false;     // Needed if another interface is in the same network.
  std::uint32_t speed_mbps = 10000;
  SpeedSource speed_source = SpeedSource::kGuess;
  std::uint32_t nccl_devices = 0;  // NCCL devices it is exposed as; 0: plan::nccl_devices().
  std::string pci_path;
  std::int32_t numa_node = -1;
  std::uint32_t mtu_bytes = 1500;
  std::uint32_t rx_queues = 0;  // Those of the lower interfaces, if any, else its own; 0: unknown.
  std::string gpu_pci;
  std::string gpu_uuid;
  std::string choice;  // How it was chosen: "by NCCL_SOCKET_IFNAME=eth".
};

}  // namespace ztcp::sockets
