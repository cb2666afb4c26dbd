// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending end of a connection: a message whose slot has come goes out as one RDMA write over
// each queue pair that carries a piece of it, with an immediate, and is done when all pieces are
// completed: then the peer holds the bytes. One without a slot is not taken: once it is, nobody
// needs to ask for its bytes to move. When a rail fails its pieces wait until the receiver has
// fenced it, and what it lacks of them goes out over the other rails (holdings.h).
//
// Pure: the peer's NIC writes the ring, and the owner tells of completions. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/verbs/session/cut.h"
#include "transport/verbs/session/holdings.h"
#include "transport/verbs/session/piece_stream.h"
#include "transport/verbs/session/sent_work.h"
#include "transport/verbs/session/slot.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

// One of a connection's queue pairs.
struct QueuePairFacts {
  std::uint32_t rail = 0;
  std::uint32_t local_key = 0;     // Which of our keys the rail's are,
  std::uint32_t remote_key = 0;    // and which of the peer's, in its slots.
  std::uint32_t rate_mbps = 1;     // Its share of its rail's.
  std::uint32_t inline_bytes = 0;  // That it takes inline.
  // A stream: it carries host memory alone, and its first byte takes longer. So it begins with what
  // it could carry in that time as its backlog, and takes no message that is through before.
  bool is_tcp = false;
  // A large message is cut over it and the others of its rail; else one of them takes a rail's
  // share, each in its turn.
  bool is_split = true;
  static constexpr std::uint32_t kTcpHeadStartUs = 50;
};

// Where nothing else is left, for the log.
inline constexpr const char* kOnlyTcpIsLeft =
    "GPU memory with no RDMA rail left: TCP carries host memory alone, to which "
    "NCCL_NET_GDR_LEVEL=LOC on all hosts keeps NCCL";

class SendSession {
 public:
  // NCCL has 32 requests of up to 8 messages each at most.
  static constexpr std::uint32_t kMessages = kSlots;

  struct Message {
    std::span<const std::byte> bytes;
    std::int32_t tag = 0;
    const RailKeys* lkeys = nullptr;  // Null: of no bytes.
    bool is_host = true;              // A CPU can read it.
  };

  // `ring` is registered, and outlives it; the peer writes it.
  SendSession(std::vector<QueuePairFacts> queue_pairs, Ring& ring, WorkQueues& queues);

  // Sends it as `number`, of which the last message is done. False: the receiver has posted no
  // buffer for it yet, or the queue pairs are full. kTruncated: it is larger than its buffer, as
  // truncated() says; kProtocol: the peer wrote nonsense.
  Result<bool> post(std::uint16_t number, const Message& message);
  Status on_completion(std::uint32_t queue_pair, std::uint64_t id);

  // Where rows of slots belong that come over a rail of TCP.
  Result<Landing> place(const StreamRecord& record) const;

  // Its queue pairs are no more, and nothing is completed on them.
  void lose_rail(std::uint32_t rail);
  // The receiver has fenced it, and holds this.
  Status hand_over(std::uint32_t rail, const Holdings& held);
  // What was completed on it, for a receiver whose device has failed.
  Holdings arrivals(std::size_t rail) const { return kept_.empty() ? Holdings() : arrivals_[rail]; }
  // The receiver has closed in peace: it holds all that was sent, completed or not.
  void arrived();
  // It has new queue pairs, in the places of the old ones.
  Status rejoin_rail(std::uint32_t rail);

  bool is_done(std::uint16_t number) const { return unfinished_[number] == 0; }
  bool is_idle() const { return in_flight_ == 0; }

  struct Truncated {
    std::int32_t tag = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t posted_bytes = 0;
  };
  const Truncated& truncated() const { return truncated_; }
  // In all, and over that rail, what was sent again counted again.
  std::uint64_t messages_done() const { return messages_done_; }
  std::uint64_t carried_bytes(std::uint32_t rail) const;

 private:
  // What is needed to send a piece of a message again.
  struct Kept {
    Message message;
    std::uint32_t slot = 0;
    std::uint32_t sequence = 0;
  };
  struct Stranded {
    Piece piece;
    std::uint32_t rail = 0;
  };

  Status absorb();
  std::uint32_t find_slot(std::int32_t tag) const;
  void take_slot(std::uint32_t slot);
  std::span<const Share> shares(bool is_host);
  void leave_one_of_each_rail(std::uint64_t size_bytes);
  Status reach(bool is_host) const;
  bool is_host(const Kept& kept) const {
    return kept.message.is_host && (ring_[kept.slot].flags & Slot::kHost) != 0;
  }
  Status send(std::uint16_t number, const Message& message, std::uint32_t slot, const Cut& cut);
  Status send_again();
  void note_arrival(std::uint32_t queue_pair, const Piece& piece);
  void finish(const Piece& piece) {
    if (--unfinished_[piece.message] != 0) return;
    --in_flight_;
    ++messages_done_;
  }
  Status send_piece(std::uint32_t queue_pair, const Message& message, std::uint32_t slot,
                    const Piece& piece);

  const std::vector<QueuePairFacts> queue_pairs_;
  const bool is_lone_;   // One queue pair of the one rail.
  const bool is_split_;  // A rail has one queue pair, or large messages are cut over all it has.
  Ring& ring_;           // Which the peer alone writes.
  WorkQueues& queues_;

  std::array<std::uint8_t, kMessages> unfinished_{};  // Pieces of each message.
  std::uint32_t in_flight_ = 0;                       // Messages.
  std::uint64_t messages_done_ = 0;

  std::uint32_t next_post_ = 1;              // The sequence number that comes next.
  std::uint32_t oldest_post_ = 1;            // With a slot that no message has taken.
  std::array<std::uint8_t, kPosts> open_{};  // By row: slots that no message has taken.

  std::vector<SentWork> sent_;  // By queue pair.
  std::array<Share, kMaxQueuePairs> shares_{};
  std::uint32_t last_queue_pair_ = 0;  // Of the last message in one piece.
  std::uint32_t turns_ = 0;            // Messages of which each rail's share was left to one.

  // Of connections over several rails.
  std::uint32_t lost_rails_ = 0;    // A bit for each.
  std::vector<Kept> kept_;          // By message.
  std::vector<Holdings> arrivals_;  // By rail.
  bool has_arrived_ = false;        // All of it; what is completed now is no news.
  std::vector<Stranded> stranded_;  // Pieces of lost rails, until the receiver has fenced them.
  std::vector<Piece> waiting_;      // That go out again once there is room.
  Truncated truncated_;
};

}  // namespace ztcp::verbs
