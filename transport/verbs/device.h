// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A port of an RDMA device of this host, as NCCL sees it and connections use it; or a kernel
// interface that is merged with such ports, or with other interfaces.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/sockets/kernel/device.h"
#include "transport/verbs/cm_api.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/port_address.h"

namespace ztcp::verbs {

// An open device, shared by its ports; open while any object of it exists.
struct OpenDevice {
  const Api* api = nullptr;
  const CmApi* manager = nullptr;  // iWARP only.
  std::string name;                // "mlx5_0"
  ContextHandle context;
  DomainHandle domain;  // One domain, so that a registration serves all connections.
  // The device has failed for good, according to an event, its descriptor or a command: no object
  // is made on it any more, and nothing waits for it. Any thread.
  std::atomic<bool> is_dead{false};
};

// The errors that commands return for a device that has failed or was removed.
inline bool is_of_dead_device(int sys_errno) {
  return sys_errno == EIO || sys_errno == ENODEV || sys_errno == ENXIO;
}

struct Device {
  static constexpr std::uint32_t kNever = ~0U;

  std::string name;  // The name that NCCL shows: the config's, else the device's.
  // A rail of TCP over the interface of `exchange`. Only its name in `hca`, its speed and its
  // location are used of the members below.
  bool is_tcp = false;
  std::string hca;  // "mlx5_0"
  std::uint8_t port = 1;
  std::shared_ptr<OpenDevice> opened;  // Null: see fault.
  // Why connections over it are refused, for the operator; empty: they are not.
  std::string fault;

  bool is_infiniband = false;
  bool is_iwarp = false;
  bool needs_grh = false;  // InfiniBand: also within the subnet.
  PortAddress address;     // At start; of iWARP its IP address. Then: Rail::address().
  GidRule gid_rule;
  std::uint32_t mtu_bytes = 1024;  // Payload of a packet.
  std::uint32_t speed_mbps = 10000;
  std::uint64_t guid = 0;
  std::string pci_path;
  std::int32_t numa_node = -1;

  bool has_dmabuf = false;
  bool has_peer_memory = false;
  std::string gpu_direct;  // "on (DMA-BUF)", "off: ..."
  std::string gpu_pci;
  std::string gpu_uuid;

  bool may_merge = true;  // If NCCL asks for it.
  std::string merge;      // Devices with the same name are merged into one; empty: not merged.

  int traffic_class = -1;       // -1: the communicator's.
  int slot_traffic_class = -1;  // RoCE: for slots, which receivers send; -1: as for the rest.
  int service_level = -1;       // -1: for InfiniBand the communicator's traffic class, else 0.
  std::uint8_t timeout = 20;
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;
  std::uint16_t pkey_index = 0;
  std::uint32_t queue_pairs = 1;
  // A large message is cut over the queue pairs; else they take messages in turn.
  bool is_split = false;
  bool has_ece = true;     // NICs agree on options of their vendor (ECE).
  bool is_relaxed = true;  // PCIe may reorder payload.
  bool is_flush_disabled = false;
  // Pieces of more bytes are notified separately: a network that routes by load may then bring the
  // rest of them in any order.
  std::uint32_t notified_separately_above = kNever;
  std::string settings;  // Other than the defaults: "ack_timeout 20, NCCL_IB_SL 3".

  sockets::Device exchange;  // The interface for the exchange.
  std::string choice;        // How the device was chosen: "by /etc/ztcp.conf".

  // For log lines: "mlx5_0 port 1", "TCP on eth1".
  std::string place() const {
    return is_tcp ? "TCP on " + hca : hca + " port " + std::to_string(port);
  }
};

}  // namespace ztcp::verbs
