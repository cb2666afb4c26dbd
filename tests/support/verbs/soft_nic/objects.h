// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The library's objects as a software NIC has them. Under the NIC's lock, except atomics.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/support/verbs/soft_nic/packet.h"
#include "transport/verbs/api.h"

namespace ztcp::soft_nic {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

struct Device : ibv_device {
  std::uint32_t index = 0;
  bool is_up = true;
  TimePoint comes_up_at = TimePoint::max();

  std::uint16_t lid() const { return static_cast<std::uint16_t>(index + 1); }
};

struct Context : ibv_context {
  int event_pipe = -1;  // The writing end; async_fd is the other.
};

struct CompletionQueue : ibv_cq {
  struct Waiting {
    ibv_wc completion;
    std::uint32_t sends = 0;  // Sends for which the queue pair has room again.
  };
  std::deque<Waiting> waiting;
  std::atomic<std::size_t> count{0};  // Completions: polling an empty queue takes no lock.
  int queue_pairs = 0;                // Queue pairs that use it.
};

struct Receive {
  std::uint64_t id = 0;
  ibv_sge place{};  // Empty: only for immediates.
};

// Operations that consume a receive at the peer.
inline bool is_message(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND;
}

// An unacknowledged work request and its packets.
struct Work {
  ibv_send_wr request{};
  ibv_sge piece{};
  std::vector<std::byte> bytes;  // When inline.
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 1;
  bool is_begun = false;
  // Its status once all requests before it are done; IBV_WC_SUCCESS: it is sent.
  ibv_wc_status fate = IBV_WC_SUCCESS;

  std::uint32_t last_psn() const { return first_psn + packets - 1; }
};

struct QueuePair : ibv_qp {
  Device& device() const { return static_cast<Device&>(*context->device); }
  bool has_to_send() const {
    return state == IBV_QPS_RTS && next_work < sends.size() &&
           sends[next_work].fate == IBV_WC_SUCCESS;
  }
  bool waits_for_answer() const { return state == IBV_QPS_RTS && is_after(sent_psn(), acked_psn); }
  std::uint32_t sent_psn() const {
    const bool is_all = next_work == sends.size();
    return (is_all ? next_psn : sends[next_work].first_psn + next_packet) - 1;
  }

  ibv_qp_cap cap{};
  ibv_qp_attr to{};  // The attributes set so far.

  std::deque<Work> sends;
  std::size_t next_work = 0;  // Index in `sends`, and the packet of it, to go out next.
  std::uint32_t next_packet = 0;
  std::uint32_t next_psn = 0;  // The next work request's.
  std::uint32_t acked_psn = 0;
  // Time of the peer's last packet, or of the first packet sent when no answer was due.
  TimePoint heard_at{};
  TimePoint resumes_at{};
  int retries_left = 0;
  int not_ready_left = 0;
  // Sends that occupy the queue until a completion of them, or of later ones, was polled.
  std::uint32_t outstanding = 0;
  std::uint32_t unsignalled = 0;  // Carried out since the last signalled one.

  std::uint32_t expected_psn = 0;
  std::deque<Receive> receives;
};

}  // namespace ztcp::soft_nic
