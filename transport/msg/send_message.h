// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One outgoing message: the flow that each of its units was sent on, so that units of a dead flow
// can be found. The record belongs to the owner of the SendSession, is lent to the session from
// post() until on_done(), or until the session has ended, and may then be used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/intrusive_list.h"
#include "core/stream.h"
#include "transport/msg/chunk_map.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

struct SendLane;

class SendMessage : public ListHook<> {
 public:
  // A piece that may be sent next: bytes [offset, offset + size_bytes).
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };

  // Called by the owner before each post(): the bytes stay unchanged until the message is done. 0
  // bytes is legal. `memory_key` is the link's key of the memory.
  void start(std::span<const std::byte> bytes, std::uint32_t tag, std::uint32_t memory_key);
  std::size_t size_bytes() const { return total_; }
  std::uint32_t tag() const { return tag_; }

  // --- Called by the session ---
  void set_place(SendLane& lane, std::uint64_t number) {
    lane_ = &lane;
    number_ = number;
  }
  SendLane& lane() const { return *lane_; }
  // `data` holds the same bytes.
  void move_to(const std::byte* data, std::uint32_t memory_key) {
    data_ = data;
    memory_key_ = memory_key;
  }
  std::uint64_t number() const { return number_; }
  const std::byte* data() const { return data_; }
  std::uint64_t total() const { return total_; }
  UnitSize unit() const { return unit_; }
  std::uint32_t memory_key() const { return memory_key_; }

  bool is_handed_out() const { return handed_out_; }  // Once, as a whole.
  Piece next_new() const { return {handed_bytes_, total_ - handed_bytes_}; }
  bool has_lost() const { return lost_units_ != 0; }
  Piece next_lost() const;  // The first run of lost units. Only if has_lost().
  // Bytes of the lost units in `piece` that had been sent eagerly.
  std::uint64_t eager_bytes(Piece piece) const;

  // `piece` was sent on `flow` and ends at byte `stream_end` of its stream.
  void hand_out(Piece piece, std::size_t flow, bool eager, std::uint64_t stream_end);

  // Every byte sent on `flow` lies below this byte of its stream; 0: none is in doubt.
  std::uint64_t stream_end(std::size_t flow) const { return stream_end_[flow]; }
  // The flow died: the units it carried are in doubt until forget() or resolve().
  static constexpr std::uint64_t kInDoubt = std::numeric_limits<std::uint64_t>::max();
  void doubt(std::size_t flow) { stream_end_[flow] = kInDoubt; }
  void forget(std::size_t flow) { stream_end_[flow] = 0; }
  // The peer holds `held` of the units (none if null); other units that `flow` carried are lost.
  void resolve(std::size_t flow, const ChunkMap* held);

 private:
  // State of a unit. Values 1 to kMaxFlows: sent on that flow (plus one).
  static constexpr std::uint8_t kLost = 0x7e;
  static constexpr std::uint8_t kHeld = 0x7f;
  static constexpr std::uint8_t kEager = 0x80;  // Added to a flow, or to kLost.
  static constexpr bool is_lost(std::uint8_t unit) { return (unit & ~kEager) == kLost; }

  // An empty message has one unit of no bytes, for its chunk.
  std::uint64_t handed_units() const {
    return handed_out_ && total_ == 0 ? 1 : unit_.count(handed_bytes_);
  }
  std::uint64_t unit_bytes(std::uint64_t unit) const;

  // Set by start() and by the session; the memory of an unused record is never touched.
  const std::byte* data_;
  std::uint64_t total_;
  std::uint64_t handed_bytes_;
  SendLane* lane_;
  std::uint64_t number_;  // In its lane.
  std::uint32_t tag_;
  std::uint32_t memory_key_;
  std::uint32_t lost_units_;
  UnitSize unit_;
  bool handed_out_;
  std::array<std::uint64_t, kMaxFlows> stream_end_;
  std::array<std::uint8_t, ChunkMap::kMaxUnits> units_;  // Valid below handed_bytes_.
};

}  // namespace ztcp::msg
