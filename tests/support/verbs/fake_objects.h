// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The library's objects as the provider in memory (fake_fabric.h) has them.
#pragma once

#include <cerrno>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/memory_region.h"
#include "transport/core/address.h"
#include "transport/verbs/api.h"

namespace ztcp::test {

class FakeFabric;

struct FakePort {
  ibv_port_state state = IBV_PORT_ACTIVE;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  ibv_mtu mtu = IBV_MTU_4096;
  std::uint16_t lid = 0;
  std::uint8_t width = 2;           // 4x
  std::uint8_t speed = 32;          // 25 Gb/s a lane.
  std::uint64_t speed_100mbps = 0;  // As ibv_query_port_speed() tells; 0: it does not.
  std::vector<ibv_gid> gids;
  std::vector<std::string> gid_types;  // As sysfs has them; empty: RoCE v1 and v2 by turns.
};

struct FakeDeviceSpec {
  std::string name = "fake0";
  std::vector<FakePort> ports{1};
  std::uint32_t max_inline = 64;
  int max_qp_wr = 8192;
  int max_cqe = 65536;
  std::uint32_t max_sge = 30;
  std::uint8_t max_reads = 16;  // Of a queue pair, under way (max_qp_rd_atom).
  std::uint64_t max_mr_bytes = ~std::uint64_t{0};
  bool has_rc = true;  // Reliable connections.
  // Of a write to memory that allows relaxed ordering some lines arrive before others, in any
  // order, and all before its completion.
  bool scatters_lines = false;
  // Queue pairs that fail are told of by an event, too.
  bool tells_of_pairs = false;
  // A queue pair that has failed takes no work: -EIO.
  bool refuses_after_failure = false;
  bool knows_dmabuf = true;
  bool has_peer_memory = true;  // Registers GPU memory by its address.
  bool may_open = true;
  int open_errno = EACCES;  // Where it may not.
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  // What it agrees upon beyond the standard (ibv_query_ece(3)); of vendor 0: nothing.
  std::uint32_t ece_vendor = 0;
  std::uint32_t ece_options = 0;
  bool is_iwarp = false;
  IpAddress address;  // Of iWARP: its interface's.
};

// What was asked of a device.
struct FakeCounts {
  int works = 0;
  int doorbells = 0;  // Calls that brought them.
  int receives = 0;
  int receive_doorbells = 0;
  int completions = 0;  // That were handed out.
};

struct FakeDevice : ibv_device {
  FakeDeviceSpec spec;
  FakeCounts counts;
  // Its firmware died, or it was pulled: commands fail with EIO, and nothing new is completed, not
  // even flushed. What is in completion queues, the process's own memory, stays to be polled.
  bool is_dead = false;
  ibv_context managers{};  // The connection manager's own.
};

struct FakeContext : ibv_context {
  FakeFabric* fabric = nullptr;
  FakeDevice* fake = nullptr;
  int event_pipe = -1;  // Its writing end; async_fd is the other.
};

struct FakeMemory : ibv_mr {
  unsigned access = 0;
  std::uint64_t iova = 0;
  std::shared_ptr<MemoryRegion> region;  // Of the GPU; null: host memory.
};

struct FakeCompletionQueue : ibv_cq {
  std::deque<ibv_wc> waiting;
  int queue_pairs = 0;  // That use it.
  int events_told = 0;  // As libibverbs counts them: read, and acknowledged.
  int events_acked = 0;
};

struct FakeWork {
  ibv_send_wr request{};
  ibv_sge piece{};
  std::vector<std::byte> bytes;  // When inline.
  int attempts = 0;
  bool is_carried = false;    // And its acknowledgement was lost.
  bool is_scattered = false;  // Some lines of it have arrived.
};

struct FakeReceive {
  std::uint64_t id = 0;
  ibv_sge place{};  // Of no bytes: it takes immediates alone.
};

// One end of a connection of iWARP's, as the connection manager is told.
struct FakeEnd {
  std::uint32_t queue_pair = 0;
  std::uint8_t reads = 0;    // That it may have under way;
  std::uint8_t answers = 0;  // and the peer.
};

struct FakeQueuePair : ibv_qp {
  ibv_qp_cap cap{};
  ibv_qp_attr to{};  // As far as it was set.
  std::deque<FakeWork> sends;
  std::deque<FakeReceive> receives;
  std::optional<std::uint32_t> ece;  // Options that were set; from RTR on, those of both ends.
  // Of iWARP: what is completed and has not arrived. None of it does once the queue pair has
  // failed.
  bool is_iwarp = false;
  std::deque<FakeWork> flying;
  // That the queue holds until a completion of them, or of later ones, was polled.
  std::uint32_t outstanding = 0;
  int events_told = 0;
  int events_acked = 0;
  std::uint32_t unsignalled = 0;  // Carried out since the last signalled one.
};

}  // namespace ztcp::test
