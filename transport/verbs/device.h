// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A port of an RDMA device of this host, as NCCL is shown it and as connections use it; or an
// interface of the kernel's that is merged with such, or with others.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/sockets/device.h"
#include "transport/verbs/cm_api.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/port_address.h"

namespace ztcp::verbs {

// One for all ports of a device, and open as long as anything of it lives.
struct OpenDevice {
  const Api* api = nullptr;
  const CmApi* manager = nullptr;  // Of iWARP.
  std::string name;                // "mlx5_0"
  ContextHandle context;
  DomainHandle domain;  // One: a registration serves all connections.
  // It has failed for good, as its event, its descriptor or a command said: nothing is made on it
  // any more, and nothing of it is waited for. Any thread.
  std::atomic<bool> is_dead{false};
};

// What commands say of a device that has failed, or was taken out.
inline bool is_of_dead_device(int sys_errno) {
  return sys_errno == EIO || sys_errno == ENODEV || sys_errno == ENXIO;
}

struct Device {
  static constexpr std::uint32_t kNever = ~0U;

  std::string name;  // What NCCL shows: the config's, or the device's where there is none.
  // A rail of TCP over the interface that `exchange` is: of what follows it has its name in `hca`,
  // its speed, and where it lies.
  bool is_tcp = false;
  std::string hca;  // "mlx5_0"
  std::uint8_t port = 1;
  std::shared_ptr<OpenDevice> opened;  // Null: see fault.
  // Why connections over it are refused, for the operator; empty: they are not.
  std::string fault;

  bool is_infiniband = false;
  bool is_iwarp = false;
  bool needs_grh = false;  // Of InfiniBand: within its subnet, too.
  PortAddress address;     // At start; of iWARP its IP address. Then: Rail::address().
  GidRule gid_rule;
  std::uint32_t mtu_bytes = 1024;  // Of a packet's payload.
  std::uint32_t speed_mbps = 10000;
  std::uint64_t guid = 0;
  std::string pci_path;
  std::int32_t numa_node = -1;

  bool has_dmabuf = false;
  bool has_peer_memory = false;
  std::string gpu_direct;  // "on (DMA-BUF)", "off: ..."
  std::string gpu_pci;
  std::string gpu_uuid;

  bool may_merge = true;  // Where NCCL asks for it.
  std::string merge;      // With the others that have the same it is shown as one; empty: alone.

  int traffic_class = -1;       // -1: the communicator's.
  int slot_traffic_class = -1;  // Of RoCE: that of slots, which receivers send; -1: as the rest.
  int service_level = -1;       // -1: of InfiniBand the communicator's traffic class, else 0.
  std::uint8_t timeout = 20;
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;
  std::uint16_t pkey_index = 0;
  std::uint32_t queue_pairs = 1;
  bool is_split = false;   // A large message is cut over them; else they take messages in turn.
  bool has_ece = true;     // The two NICs agree on more than the standard has (ECE).
  bool is_relaxed = true;  // PCIe may reorder payload.
  bool is_flush_disabled = false;
  // Pieces of more bytes are told of apart: a network that routes by load may then bring the rest
  // of them in any order.
  std::uint32_t notified_separately_above = kNever;
  std::string settings;  // Those of them that somebody said: "ack_timeout 20, NCCL_IB_SL 3".

  sockets::Device exchange;  // Over which queue pairs are agreed upon.
  std::string choice;        // How it was chosen: "by /etc/ztcp.conf".

  // For log lines: "mlx5_0 port 1", "TCP on eth1".
  std::string place() const {
    return is_tcp ? "TCP on " + hca : hca + " port " + std::to_string(port);
  }
};

}  // namespace ztcp::verbs
