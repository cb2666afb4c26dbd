// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving end of a connection: each post of up to 8 buffers is one RDMA write of their slots
// into the sender's ring, and each buffer is filled once the immediates of all pieces of its
// message have come. Posts go out in order and end in any. When a rail fails the rows of the posts
// that are not done are written again over another one, once the sender has fenced it (holdings.h).
//
// Pure: the owner tells of completions. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/verbs/session/holdings.h"
#include "transport/verbs/session/piece_stream.h"
#include "transport/verbs/session/sent_work.h"
#include "transport/verbs/session/slot.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

struct RecvSettings {
  std::vector<std::uint32_t> rails;  // By queue pair.
  std::uint32_t inline_bytes = 0;    // That queue pairs take inline.
  RemoteMemory ring;                 // The peer's.
  RailKeys ring_lkeys{};             // Of our own, which is written from.
};

class RecvSession {
 public:
  // As many immediates as may come at once, and what is posted anew at a time.
  static constexpr std::uint32_t kReceiveBatch = 64;
  static constexpr std::uint32_t kReceiveDepth = kSlots + kReceiveBatch;

  struct Buffer {
    std::uint64_t address = 0;
    const RailKeys* rkeys = nullptr;  // Null: of no bytes.
    std::uint32_t size_bytes = 0;
    std::int32_t tag = 0;
    std::uint32_t flags = Slot::kHost;
  };

  // `ring` is registered and outlives it.
  RecvSession(RecvSettings settings, Ring& ring, WorkQueues& queues);

  // Before the peer may send anything.
  Status begin();

  // The next post is this one's, of 0 to kPosts - 1; its last may not be done yet.
  std::uint16_t next_number() const {
    return static_cast<std::uint16_t>((next_post_ - 1) % kPosts);
  }
  // False: wait for completions.
  bool can_post() const;
  Status post(std::span<const Buffer> buffers);

  // What it sent itself.
  Status on_completion(std::uint32_t queue_pair, std::uint64_t id);
  // What the peer sent, with so many bytes.
  Status on_immediate(std::uint32_t queue_pair, std::uint32_t immediate, std::uint32_t size_bytes);

  // Where bytes of a piece belong that come over a rail of TCP.
  Result<Landing> place(const StreamRecord& record) const;

  Holdings holdings() const;
  // Whether something of a buffer that waits has arrived, by the sender's word, and never came.
  bool lacks(const Holdings& arrived) const;
  // Nothing more is posted to its queue pairs; what has come before they are no more is taken.
  void lose_rail(std::uint32_t rail);
  // The sender has fenced it.
  Status hand_over(std::uint32_t rail);
  // It has new queue pairs, in the places of the old ones, to which nothing is posted yet; the
  // sender may send over them from here on. Slots go over them only once they are proven.
  Status reopen_rail(std::uint32_t rail);
  Status rejoin_rail(std::uint32_t rail);

  bool is_done(std::uint16_t number) const { return posts_[number].unfilled == 0; }
  std::uint32_t received_bytes(std::uint16_t number, std::size_t buffer) const {
    return posts_[number].received_bytes[buffer];
  }
  bool is_idle() const;

  // Buffers that were filled, and what has come over that rail.
  std::uint64_t messages_done() const { return messages_done_; }
  std::uint64_t carried_bytes(std::uint32_t rail) const;

 private:
  struct Post {
    std::uint8_t unfilled = 0;  // Buffers.
    std::uint8_t rail = 0;      // That its row was written over.
    // Written again, which is not completed: the sender may have it before that arrives.
    bool is_rewritten = false;
    std::array<std::uint8_t, kMaxReceives> pieces{};  // That have come: a bit for each.
    std::array<std::uint8_t, kMaxReceives> of{};      // So many, once the first has come.
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
  // Over which slots are written: the first of those whose rails serve, which is of TCP only if
  // there is no other. None: all rails are lost.
  std::uint32_t slot_queue_pair_ = 0;
  std::array<std::uint32_t, kMaxQueuePairs> unsignalled_{};
  std::uint32_t lost_rails_ = 0;      // A bit for each.
  std::uint32_t unproven_rails_ = 0;  // The same: that rejoin.
  std::uint32_t waiting_rows_ = 0;    // The same: that are written again once there is room.
  std::uint64_t messages_done_ = 0;
  std::array<std::uint64_t, kMaxQueuePairs> carried_bytes_{};
  std::array<std::uint32_t, kMaxQueuePairs> consumed_{};  // Receives, since some were posted.
};

}  // namespace ztcp::verbs
