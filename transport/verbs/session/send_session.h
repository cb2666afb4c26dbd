// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending end of a connection. A message goes out once its slot has arrived: as one RDMA write
// with an immediate over each queue pair that carries a piece. It is done when all pieces are
// completed, and then the peer holds the bytes. A message without a slot is not taken; one that is
// taken moves without further calls. When a rail fails, its pieces wait until the receiver has
// fenced it; the pieces that the receiver lacks go out over the other rails (holdings.h).
//
// Pure: the peer's NIC writes the ring, and the owner reports completions. One thread at a time.
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
#include "transport/verbs/session/tally.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

// One of a connection's queue pairs.
struct QueuePairFacts {
  std::uint32_t rail = 0;
  std::uint32_t local_key = 0;     // Index of the rail's key among ours,
  std::uint32_t remote_key = 0;    // and among the peer's, in its slots.
  std::uint32_t rate_mbps = 1;     // Its share of the rail's rate.
  std::uint32_t inline_bytes = 0;  // Limit for inline work.
  // A stream: it carries host memory alone, and has more latency. Its backlog starts with the bytes
  // that it could carry in that time, so it gets no message that would finish sooner elsewhere.
  bool is_tcp = false;
  // A large message is cut over all queue pairs of the rail; else one of them takes the rail's
  // share, in turn.
  bool is_split = true;
  static constexpr std::uint32_t kTcpHeadStartUs = 50;
};

// For the log, when no other rail is left.
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
    const RailKeys* lkeys = nullptr;  // Null: the message has no bytes.
    bool is_host = true;              // A CPU can read it.
  };

  // `ring` is registered, and outlives the session; the peer writes it.
  SendSession(std::vector<QueuePairFacts> queue_pairs, Ring& ring, WorkQueues& queues);

  // Sends the message as `number`; the last message of that number is done. False: the receiver has
  // posted no buffer for it yet, or the queue pairs are full. kTruncated: it is larger than its
  // buffer, as truncated() says; kProtocol: the peer wrote nonsense.
  Result<bool> post(std::uint16_t number, const Message& message);
  Status on_completion(std::uint32_t queue_pair, std::uint64_t id);

  // The destination of rows of slots that arrive over a rail of TCP.
  Result<Landing> place(const StreamRecord& record) const;

  // The rail's queue pairs are gone, and nothing completes on them any more.
  void lose_rail(std::uint32_t rail);
  // The receiver has fenced the rail, and holds these pieces.
  Status hand_over(std::uint32_t rail, const Holdings& held);
  // The pieces completed on it, for a receiver with a failed device.
  Holdings arrivals(std::size_t rail) const { return kept_.empty() ? Holdings() : arrivals_[rail]; }
  // The receiver has closed in order: it holds all that was sent, completed or not.
  void arrived();
  // The rail has new queue pairs, with the numbers of the old ones.
  Status rejoin_rail(std::uint32_t rail);

  bool is_done(std::uint16_t number) const { return unfinished_[number] == 0; }
  // A bit for each piece that is not completed.
  std::uint32_t unfinished(std::uint16_t number) const { return unfinished_[number]; }
  // Calls tell(queue_pair, id, piece) for each piece of the message that post() has just sent.
  template <class Tell>
  void each_posted(std::uint16_t number, Tell&& tell) const {
    for (std::uint32_t i = 0; i < sent_.size(); ++i)
      if (const Piece* const piece = sent_[i].newest();
          piece != nullptr && piece->message == number)
        tell(i, sent_[i].newest_id(), *piece);
  }
  bool is_idle() const { return in_flight() == 0; }

  struct Truncated {
    std::int32_t tag = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t posted_bytes = 0;
  };
  const Truncated& truncated() const { return truncated_; }

  // --- Any thread --------------------------------------------------------------------------------
  std::uint32_t in_flight() const {              // Messages.
    const std::uint64_t done = messages_done();  // Read first, so that it is not the larger one.
    return static_cast<std::uint32_t>(messages_begun() - done);
  }
  std::uint64_t messages_begun() const { return messages_begun_.value(); }
  std::uint64_t messages_done() const { return messages_done_.value(); }
  // Bytes over the rail; pieces that are sent again count again.
  std::uint64_t carried_bytes(std::uint32_t rail) const;
  std::uint64_t backlog_bytes(std::uint32_t rail) const;  // Bytes that are not completed.
  std::uint64_t repeated_bytes() const { return repeated_bytes_.value(); }
  // Whether the last message was not taken, because the receiver has posted no buffer for it.
  bool lacks_slot() const { return lacks_slot_.value() != 0; }
  // How often that began.
  std::uint64_t slot_waits() const { return slot_waits_.value(); }

 private:
  // The data to send a piece of a message again.
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
    std::uint8_t& unfinished = unfinished_[piece.message];
    unfinished = static_cast<std::uint8_t>(unfinished & ~(1U << piece.number));
    if (unfinished == 0) messages_done_.add();
  }
  Status send_piece(std::uint32_t queue_pair, const Message& message, std::uint32_t slot,
                    const Piece& piece);

  const std::vector<QueuePairFacts> queue_pairs_;
  const bool is_lone_;  // There is one queue pair in all.
  // Each rail has one queue pair, or large messages are cut over all of them.
  const bool is_split_;
  Ring& ring_;  // Written by the peer alone.
  WorkQueues& queues_;

  std::array<std::uint8_t, kMessages> unfinished_{};  // By message: a bit for each piece.
  Tally messages_begun_;
  Tally messages_done_;
  Tally repeated_bytes_;
  Tally lacks_slot_;  // 0 or 1.
  Tally slot_waits_;

  std::uint32_t next_post_ = 1;    // The next sequence number.
  std::uint32_t oldest_post_ = 1;  // The oldest post with a slot that no message has taken.
  std::array<std::uint8_t, kPosts> open_{};  // By row: slots that no message has taken.

  std::vector<SentWork> sent_;  // By queue pair.
  std::array<Share, kMaxQueuePairs> shares_{};
  std::uint32_t last_queue_pair_ = 0;  // Used by the last message in one piece.
  std::uint32_t turns_ = 0;            // Messages that were not cut within rails.

  // For connections over several rails.
  std::uint32_t lost_rails_ = 0;    // A bit for each.
  std::vector<Kept> kept_;          // By message.
  std::vector<Holdings> arrivals_;  // By rail.
  bool has_arrived_ = false;        // The peer has received all; later completions are ignored.
  std::vector<Stranded> stranded_;  // Pieces of lost rails, until the receiver has fenced them.
  std::vector<Piece> waiting_;      // Pieces that go out again once there is room.
  Truncated truncated_;
};

}  // namespace ztcp::verbs
