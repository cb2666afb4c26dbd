// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The library's objects as the in-memory provider (fake_fabric.h) has them.
#pragma once

#include <cerrno>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/address.h"
#include "tests/support/memory_region.h"
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
  std::uint64_t speed_100mbps = 0;  // Answer of ibv_query_port_speed(); 0: it has none.
  std::vector<ibv_gid> gids;
  std::vector<std::string> gid_types;  // As in sysfs; empty: RoCE v1 and v2 in turn.
};

struct FakeDeviceSpec {
  std::string name = "fake0";
  std::vector<FakePort> ports{1};
  std::uint32_t max_inline = 64;
  int max_qp_wr = 8192;
  int max_cqe = 65536;
  std::uint32_t max_sge = 30;
  std::uint8_t max_reads = 16;  // Reads in flight on a queue pair (max_qp_rd_atom).
  std::uint64_t max_mr_bytes = ~std::uint64_t{0};
  bool has_rc = true;  // Reliable connections.
  // A write to memory with relaxed ordering arrives line by line in any order, all before its
  // completion.
  bool scatters_lines = false;
  // A queue pair that fails raises an event, too.
  bool tells_of_pairs = false;
  // A failed queue pair refuses work requests: -EIO.
  bool refuses_after_failure = false;
  bool knows_dmabuf = true;
  bool has_peer_memory = true;  // Registers GPU memory by its address.
  bool may_open = true;
  int open_errno = EACCES;  // The error of opening it, where that is refused.
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  // The ECE it offers (ibv_query_ece(3)); vendor 0: none.
  std::uint32_t ece_vendor = 0;
  std::uint32_t ece_options = 0;
  bool is_iwarp = false;
  IpAddress address;  // iWARP: the address of its interface.
};

// Calls and work requests that a device got.
struct FakeCounts {
  int works = 0;
  int doorbells = 0;  // Calls that posted them.
  int receives = 0;
  int receive_doorbells = 0;
  int completions = 0;  // Completions polled.
};

struct FakeDevice : ibv_device {
  FakeDeviceSpec spec;
  FakeCounts counts;
  // Its firmware died or it was pulled: commands fail with EIO, and nothing new completes, not even
  // as flushed. Completion queues are the process's own memory: their entries stay to be polled.
  bool is_dead = false;
  ibv_context managers{};  // For the connection manager.
};

struct FakeContext : ibv_context {
  FakeFabric* fabric = nullptr;
  FakeDevice* fake = nullptr;
  int event_pipe = -1;  // The writing end; async_fd is the other.
};

struct FakeMemory : ibv_mr {
  unsigned access = 0;
  std::uint64_t iova = 0;
  std::shared_ptr<MemoryRegion> region;  // The GPU's; null: host memory.
};

struct FakeCompletionQueue : ibv_cq {
  std::deque<ibv_wc> waiting;
  int queue_pairs = 0;  // Queue pairs that use it.
  int events_told = 0;  // As libibverbs counts them: read and acknowledged.
  int events_acked = 0;
};

struct FakeWork {
  ibv_send_wr request{};
  ibv_sge piece{};
  std::vector<std::byte> bytes;  // When inline.
  int attempts = 0;
  bool is_carried = false;    // Carried out, but its acknowledgement was lost.
  bool is_scattered = false;  // Some of its lines have arrived.
};

struct FakeReceive {
  std::uint64_t id = 0;
  ibv_sge place{};  // Empty: only for immediates.
};

// One end of an iWARP connection, as the connection manager gets it.
struct FakeEnd {
  std::uint32_t queue_pair = 0;
  std::uint8_t reads = 0;    // Reads it may have in flight;
  std::uint8_t answers = 0;  // and the peer's.
};

struct FakeQueuePair : ibv_qp {
  ibv_qp_cap cap{};
  ibv_qp_attr to{};  // The attributes set so far.
  std::deque<FakeWork> sends;
  std::deque<FakeReceive> receives;
  std::optional<std::uint32_t> ece;  // The options set; from RTR on the negotiated ones.
  // iWARP: completed sends that have not arrived. They are lost when the queue pair fails.
  bool is_iwarp = false;
  std::deque<FakeWork> flying;
  // Sends that occupy the queue until a completion of them, or of later ones, was polled.
  std::uint32_t outstanding = 0;
  int events_told = 0;
  int events_acked = 0;
  std::uint32_t unsignalled = 0;  // Carried out since the last signalled one.
};

}  // namespace ztcp::test
