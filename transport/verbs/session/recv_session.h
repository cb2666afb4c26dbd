// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving end of a connection: each post of up to 8 buffers is one RDMA write of their slots
// into the sender's ring, and each buffer is filled once the immediates of all pieces of its
// message have come. Posts go out in order and end in any order. When a rail fails, the rows of
// unfinished posts are written again over another rail, once the sender has fenced the failed one
// (holdings.h).
//
// Pure: the owner reports completions. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/verbs/session/holdings.h"
#include "transport/verbs/session/piece_stream.h"
#include "transport/verbs/session/sent_work.h"
#include "transport/verbs/session/slot.h"
#include "transport/verbs/session/tally.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

struct RecvSettings {
  std::vector<std::uint32_t> rails;  // By queue pair.
  std::uint32_t inline_bytes = 0;    // Limit for inline work.
  RemoteMemory ring;                 // The peer's.
  RailKeys ring_lkeys{};             // For our own ring, from which slots are written.
};

class RecvSession {
 public:
  // The batch in which receives are posted again.
  static constexpr std::uint32_t kReceiveBatch = 64;
  static constexpr std::uint32_t kReceiveDepth = kSlots + kReceiveBatch;

  struct Buffer {
    std::uint64_t address = 0;
    const RailKeys* rkeys = nullptr;  // Null: the buffer has no bytes.
    std::uint32_t size_bytes = 0;
    std::int32_t tag = 0;
    std::uint32_t flags = Slot::kHost;
  };

  // `ring` is registered, and outlives the session.
  RecvSession(RecvSettings settings, Ring& ring, WorkQueues& queues);

  // Called before the peer may send.
  Status begin();

  // The number of the next post, 0 to kPosts - 1. The last post of that number may not be done yet.
  std::uint16_t next_number() const {
    return static_cast<std::uint16_t>((next_post_ - 1) % kPosts);
  }
  // False: wait for completions.
  bool can_post() const;
  Status post(std::span<const Buffer> buffers);

  // A completion of its own work.
  Status on_completion(std::uint32_t queue_pair, std::uint64_t id);
  // An immediate of the peer's, with the size of its piece.
  Status on_immediate(std::uint32_t queue_pair, std::uint32_t immediate, std::uint32_t size_bytes);

  // The destination of a piece that arrives over a rail of TCP.
  Result<Landing> place(const StreamRecord& record) const;

  Holdings holdings() const;
  // Whether the sender saw a piece arrive that a waiting buffer lacks.
  bool lacks(const Holdings& arrived) const;
  // Nothing more is posted to its queue pairs; completions are still accepted until they are
  // destroyed.
  void lose_rail(std::uint32_t rail);
  // The sender has fenced the rail.
  Status hand_over(std::uint32_t rail);
  // The rail has new queue pairs with the numbers of the old ones, without any posted work. The
  // sender may use them from now on; slots go over them once they are proven.
  Status reopen_rail(std::uint32_t rail);
  Status rejoin_rail(std::uint32_t rail);

  bool is_done(std::uint16_t number) const { return posts_[number].unfilled == 0; }
  std::uint32_t received_bytes(std::uint16_t number, std::size_t buffer) const {
    return posts_[number].received_bytes[buffer];
  }
  bool is_idle() const;
  // The queue pair that writes the slots; empty: all rails are lost.
  std::optional<std::uint32_t> slot_queue_pair() const {
    if (slot_queue_pair_ == kNoQueuePair) return std::nullopt;
    return slot_queue_pair_;
  }

  // --- Any thread --------------------------------------------------------------------------------
  std::uint32_t in_flight() const {              // Buffers that are not filled.
    const std::uint64_t done = messages_done();  // Read first, so that it is not the larger one.
    return static_cast<std::uint32_t>(messages_begun() - done);
  }
  // Posted buffers, filled buffers, and bytes received over the rail.
  std::uint64_t messages_begun() const { return messages_begun_.value(); }
  std::uint64_t messages_done() const { return messages_done_.value(); }
  std::uint64_t carried_bytes(std::uint32_t rail) const;

 private:
  struct Post {
    std::uint8_t unfilled = 0;  // Buffers that are not filled.
    std::uint8_t rail = 0;      // The rail that carried its row.
    // The row is written again, and that is not completed: the sender may already have it.
    bool is_rewritten = false;
    std::array<std::uint8_t, kMaxReceives> pieces{};  // Pieces that have arrived: a bit for each.
    // The number of pieces, once the first has arrived.
    std::array<std::uint8_t, kMaxReceives> of{};
    std::array<std::uint32_t, kMaxReceives> received_bytes{};
  };

  static constexpr std::uint32_t kNoQueuePair = kMaxQueuePairs;

  void choose_slot_queue_pair();
  bool is_awaited(const Immediate& told) const;
  Status write_row(std::uint32_t row);
  Status write_waiting();

  const RecvSettings settings_;
  Ring& ring_;
  WorkQueues& queues_;
  std::array<Post, kPosts> posts_{};
  std::uint32_t next_post_ = 1;
  std::vector<SentWork> sent_;  // By queue pair.
  // Writes the slots: the first queue pair on a rail that serves, of TCP only if there is no other.
  // None: all rails are lost.
  std::uint32_t slot_queue_pair_ = 0;
  std::array<std::uint32_t, kMaxQueuePairs> unsignalled_{};
  std::uint32_t lost_rails_ = 0;      // A bit for each.
  std::uint32_t unproven_rails_ = 0;  // Rails that rejoin, likewise.
  std::uint32_t waiting_rows_ = 0;    // Rows that are written again once there is room, likewise.
  Tally messages_begun_;
  Tally messages_done_;
  std::array<Tally, kMaxQueuePairs> carried_bytes_;
  // Receives consumed since the last were posted.
  std::array<std::uint32_t, kMaxQueuePairs> consumed_{};
};

}  // namespace ztcp::verbs
