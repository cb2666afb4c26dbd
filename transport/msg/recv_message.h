// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An incoming message: a posted receive, or an unexpected message, whose bytes came before its
// buffer was posted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/msg/bounce.h"
#include "transport/msg/chunk_map.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

// The received part of a message. A plain value; RecvSession keeps its rules.
struct Arrival {
  bool has_begun;      // A chunk has arrived: the members below are valid.
  bool wants_receipt;  // The sender waits until it is received.
  UnitSize unit;
  std::uint64_t total;
  std::uint64_t held_bytes;  // In the units of `held`.
  ChunkMap held;

  void begin(std::uint64_t total_bytes) {
    has_begun = true;
    wants_receipt = false;
    unit = UnitSize(total_bytes);
    total = total_bytes;
    held_bytes = 0;
    held.clear_first(unit.count(total_bytes));
  }
  bool is_whole() const { return has_begun && held_bytes == total; }
  std::uint64_t bytes_of(std::uint64_t first_unit, std::uint64_t last_unit) const {
    return std::min(unit.offset(last_unit), total) - unit.offset(first_unit);
  }
  // Number of units that are complete once bytes [.., end) of a chunk have arrived.
  std::uint64_t units_below(std::uint64_t end) const {
    return end == total ? unit.count(total) : unit.index(end);
  }
};

// A posted receive. The record belongs to the owner of the RecvSession, is lent to the session from
// post() until on_done(), or until the session has ended, and may then be used again.
class RecvMessage : private Arrival {
 public:
  // Called by the owner before each post(): the session alone writes to the buffer until the
  // message is done.
  void start(std::span<std::byte> buffer, std::uint32_t tag, bool is_polled = true) {
    buffer_ = buffer.data();
    capacity_bytes_ = buffer.size();
    tag_ = tag;
    is_polled_ = is_polled;
    copies_out_ = 0;
    has_begun = false;
  }
  std::size_t size_bytes() const { return total; }  // Received bytes. Valid once done.
  std::uint32_t tag() const { return tag_; }

  // --- Called by the session ---
  Arrival& arrival() { return *this; }
  static RecvMessage& of(Arrival& arrival) { return static_cast<RecvMessage&>(arrival); }
  std::byte* buffer() const { return buffer_; }
  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  // The buffer may be polled before the message is done: only ordered_copy() writes there.
  bool is_polled() const { return is_polled_; }
  // Pieces that workers are copying (CopyJobs).
  std::uint32_t copies_out() const { return copies_out_; }
  void note_copy_given() { ++copies_out_; }
  void note_copied() { --copies_out_; }
  // The next message that waits for its lane's window.
  void set_next(RecvMessage* next) { next_ = next; }
  RecvMessage* next() const { return next_; }

 private:
  // Set by start(); the memory of an unused record is never touched.
  std::byte* buffer_;
  std::uint64_t capacity_bytes_;
  RecvMessage* next_;
  std::uint32_t tag_;
  std::uint32_t copies_out_;
  bool is_polled_;
};

// A message that arrived before its buffer was posted.
struct UnexpectedMessage : Arrival {
  std::uint64_t reserved_bytes;  // In Bounce, by chunks begun.
  std::uint64_t eager_bytes;     // For units in Bounce; the post releases them.
  Bounce::Table pages;

  static UnexpectedMessage& of(Arrival& arrival) {
    return static_cast<UnexpectedMessage&>(arrival);
  }
};

// The messages of one tag: posted ones, and arrived ones.
struct RecvLane {
  std::uint32_t tag;
  std::uint32_t done_beyond;  // Bit i: message received + i is done.
  // received <= posted <= received + 32; chunks of [received, received + 32) are accepted.
  std::uint64_t posted;
  std::uint64_t received;
  std::uint64_t told_posted;  // By the newest credit.
  std::uint64_t begun;        // Messages 0..begun-1 were begun by the sender, in order.
  bool is_small;              // Whether the message begun last is small (record.h, "When credit is
                              // told").
  bool wants_receipt;         // Set by a message that is done and not counted as received.
  bool is_listed;             // In the list of lanes with credit to tell (LaneList).
  RecvLane* list_before;
  RecvLane* list_after;
  // Posted beyond that window, in order.
  RecvMessage* waiting_first;
  RecvMessage* waiting_last;
  // By number in the window: the posted record (below `posted`), the unexpected one, or null.
  std::array<Arrival*, kMessageWindow> arrivals;

  Arrival*& arrival(std::uint64_t number) { return arrivals[number % kMessageWindow]; }
  bool is_posted(std::uint64_t number) const { return number < posted; }
  bool is_in_window(std::uint64_t number) const { return number < received + kMessageWindow; }
  // Whether the sender knows of fewer than half of the buffers for messages to come, in a lane
  // where that matters (record.h, "When credit is told").
  bool is_sender_short() const {
    if (is_small || posted <= begun) return false;
    const std::uint64_t known = told_posted > begun ? told_posted - begun : 0;
    return 2 * known < posted - begun;
  }
  // Only for numbers in the window.
  bool is_finished(std::uint64_t number) const {
    return number < received || (done_beyond >> (number - received) & 1) != 0;
  }
  // Number of a record that is posted and not finished.
  std::uint64_t number_of(const Arrival& posted_one) const {
    std::uint64_t number = received;
    while (arrivals[number % kMessageWindow] != &posted_one) ++number;
    return number;
  }
  // Messages that have arrived completely and are still being copied.
  std::size_t count_copying() const {
    std::size_t count = 0;
    for (std::uint64_t number = received; number < posted; ++number) {
      Arrival* const m = arrivals[number % kMessageWindow];
      if (!is_finished(number) && m->is_whole()) ++count;
    }
    return count;
  }
  bool has_room() const { return posted - received < kMessageWindow && waiting_first == nullptr; }
  void wait(RecvMessage& message) {
    message.set_next(nullptr);
    if (waiting_first == nullptr)
      waiting_first = &message;
    else
      waiting_last->set_next(&message);
    waiting_last = &message;
  }
};

// A session's unexpected messages: as many as may be out without a posted buffer.
class UnexpectedPool {
 public:
  // Null when all are taken.
  UnexpectedMessage* take() {
    if (free_ == 0) return nullptr;
    UnexpectedMessage& message = messages_[static_cast<std::size_t>(std::countr_zero(free_))];
    free_ &= free_ - 1;
    message.has_begun = false;
    message.reserved_bytes = message.eager_bytes = 0;
    message.pages.clear();
    return &message;
  }
  void give_back(UnexpectedMessage& message) {
    free_ |= 1U << static_cast<unsigned>(&message - messages_.data());
  }
  std::size_t count_whole() const {
    std::size_t count = 0;
    for (std::uint32_t taken = ~free_; taken != 0; taken &= taken - 1)
      if (messages_[static_cast<std::size_t>(std::countr_zero(taken))].is_whole()) ++count;
    return count;
  }

 private:
  std::uint32_t free_ = ~0U;  // One bit per message.
  static_assert(kMaxUnexpected == 32);
  std::array<UnexpectedMessage, kMaxUnexpected> messages_;  // Their memory is not touched before
                                                            // they are taken.
};

}  // namespace ztcp::msg
