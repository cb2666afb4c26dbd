// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The control path of one ethdev port: attaching it, reading its abilities, setting up its queues
// and frame memory, and tearing all down in the right order. Each queue has a receive and a
// transmit ring; the data path is port_link.h. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/address.h"
#include "core/result.h"
#include "transport/link/mlx5/flow_steering.h"
#include "transport/link/xdp/program.h"
#include "transport/wire/receive_spread.h"

struct rte_mempool;

namespace ztcp::link {

// Room in a buffer of the header pool: the headers and a record header copied behind them.
inline constexpr std::uint16_t kTxHeaderRoomBytes = 256;

struct PortConfig {
  std::string device;       // "net_memif0" or "0000:3b:00.0".
  std::string arguments;    // For a virtual device's driver, made from typed values.
  std::string pci_options;  // For the driver of a NIC on PCI: "vf_nl_en=0".
  std::uint16_t mtu_bytes = 1500;
  std::uint16_t vlan_id = 0;  // VLAN that a filtering device must accept; 0: untagged frames only.
  bool is_ipv6 = false;  // Of received packets: the queue is chosen by its addresses and ports, and
                         // groups are received (neighbour discovery).
  int numa_node = -1;
  std::uint16_t queues = 1;
  bool fewer_queues_will_do = false;  // If the device has fewer queues, or does not spread packets.
  // Receive buffers per queue, held frames included.
  std::uint32_t rx_frames = 4096;
  std::uint16_t rx_room_bytes = 0;  // Bytes per buffer; 0: a frame of the MTU.
  // Requested ring sizes; the driver's limits apply, and larger rings get more buffers.
  std::uint16_t rx_descriptors = 1024;
  std::uint16_t tx_descriptors = 1024;
  std::uint32_t tx_header_frames = 8191;  // Buffers for headers and for in-place fragments.
  std::uint16_t tx_header_room_bytes = kTxHeaderRoomBytes;  // Bytes per buffer; at least
                                                            // kTxHeaderRoomBytes.
  // memif: the driver copies while it transmits, so any memory may be sent in place and nothing is
  // in flight afterwards; and its port accepts frames beyond the MTU that ethdev has.
  bool driver_copies = false;
  // The device reads user memory in place (host class A).
  bool device_reads_user_memory = false;
  // The driver drops a chain that does not fit into the rest of its ring, and counts it as sent
  // (vmxnet3): so there are no more buffers than the ring holds. Set here for drivers known to do
  // it.
  bool drops_at_full_ring = false;
  // The kernel keeps the NIC, its MAC addresses and groups: only these segments come here.
  std::optional<xdp::Steering> steering;
  mlx5::FlowCalls flow_calls;
};

// The longest payload, headers aside, that `buffers` of `buffer_bytes` hold.
constexpr std::uint32_t super_segment_room(std::uint16_t buffers, std::uint32_t buffer_bytes) {
  // A super-segment's headers and payload must fit IP's 16-bit length.
  constexpr std::uint32_t kHeadersBytes = 120;
  const std::uint64_t room = std::uint64_t{buffers} * buffer_bytes;
  if (buffers < 2 || room <= kHeadersBytes) return 0;
  return static_cast<std::uint32_t>((room < UINT16_MAX ? room : UINT16_MAX) - kHeadersBytes);
}

// The port's abilities, as detected and configured.
struct PortAbilities {
  MacAddress mac;
  bool tx_tcp_checksum = false;
  bool tx_ipv4_checksum = false;  // False: the link fills the IPv4 header checksum itself.
  bool rx_checksum = false;
  bool tcp_segmentation = false;
  bool chained_buffers = false;
  std::uint16_t max_segments = 1;        // Buffers per frame that the device accepts.
  std::uint16_t max_super_segments = 1;  // The same for a super-segment.
  // Payload of a super-segment that fits into those buffers when it is copied; 0: can't segment.
  std::uint32_t max_super_segment_bytes = 0;
  // Receive buffers beyond those that the ring, the pool's caches and a burst need, and their size.
  std::uint32_t spare_rx_frames = 0;
  std::uint32_t rx_frame_bytes = 0;
  std::uint32_t speed_mbps = 0;
  std::string driver;  // "net_memif".
};

// Frame memory of a queue. All three pools belong to the port and outlive its frames.
struct PortPools {
  rte_mempool* rx = nullptr;
  rte_mempool* tx_header = nullptr;  // For headers, or attached fragments of user memory.
  rte_mempool* tx_copy = nullptr;    // For whole frames, if payload is copied; null: not needed.
};

class Port {
 public:
  // Attaches and configures; the port is not started yet. EAL must run.
  static Result<Port> open(const PortConfig& config);
  Port(Port&& other) noexcept;
  Port& operator=(Port&&) = delete;
  ~Port();

  // Starts traffic. kNoDevice: a memif client found no server; try again later.
  Status start();
  void stop();
  // Ends the use of the device before the port is destroyed; only pools() may be used afterwards.
  void give_back_device();

  std::uint16_t id() const { return id_; }
  const PortConfig& config() const { return config_; }
  const PortAbilities& abilities() const { return abilities_; }
  std::uint16_t queues() const { return config_.queues; }
  const PortPools& pools(std::uint16_t queue = 0) const { return pools_[queue]; }
  // How the device chooses a queue, as a started one reports it; null: it does not.
  std::shared_ptr<const wire::ReceiveSpread> read_spread() const;
  std::uint16_t tx_ring() const { return tx_ring_; }  // Descriptors, as adjusted by the driver.

 private:
  Port(PortConfig config, std::uint16_t id);
  static Result<Port> attach(const PortConfig& config);
  // Runs a control operation on the thread that its driver requires. False: DPDK has panicked.
  template <class Task>
  static bool control(const PortConfig& config, const Task& task);
  Status configure();
  Status limit_queues(std::uint16_t most, bool spreads);
  Status size_rings();
  std::uint32_t rx_ring_surplus() const;
  std::uint32_t tx_ring_surplus() const;
  Status create_pools();
  bool create_pools_on(int node);
  PortPools create_queue_pools(int node);
  void free_pools();
  std::uint32_t copy_room_bytes() const;
  Status set_up_queues();
  Status admit_vlan();
  void admit_groups();
  mlx5::FlowPort flow_port() const { return {id_, config_.device, config_.flow_calls}; }

  static constexpr std::uint16_t kNoPort = 0xffff;
  PortConfig config_;
  std::uint16_t id_ = kNoPort;
  bool filters_vlans_ = false;
  std::uint16_t rx_ring_ = 0;  // Descriptors, as adjusted by the driver.
  std::uint16_t tx_ring_ = 0;
  PortAbilities abilities_;
  std::vector<PortPools> pools_;  // By queue.
  int node_ = -1;                 // NUMA node of pools and queues.
};

}  // namespace ztcp::link
