// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A message on its way in, as a posted receive or as an unexpected message: bytes that came before
// their buffer did.
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

// What has come of a message. A plain value; RecvSession keeps its rules.
struct Arrival {
  bool has_begun;      // A chunk has come: all below is valid.
  bool wants_receipt;  // The sender waits until it is received.
  UnitSize unit;
  std::uint64_t total;
  std::uint64_t held_bytes;  // Of the units in `held`.
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
  // Units that are whole once bytes [.., end) of a chunk have come.
  std::uint64_t units_below(std::uint64_t end) const {
    return end == total ? unit.count(total) : unit.index(end);
  }
};

// A posted receive. The record belongs to the owner of the RecvSession, is lent to the session from
// post() until on_done(), or until the session has ended, and may then be used again.
class RecvMessage : private Arrival {
 public:
  // The owner's, before each post(): the session alone writes to the buffer until the message is
  // done.
  void start(std::span<std::byte> buffer, std::uint32_t tag, bool is_polled = true) {
    buffer_ = buffer.data();
    capacity_bytes_ = buffer.size();
    tag_ = tag;
    is_polled_ = is_polled;
    copies_out_ = 0;
    has_begun = false;
  }
  std::size_t size_bytes() const { return total; }  // Of what was received. Once done.
  std::uint32_t tag() const { return tag_; }

  // --- The session's ---
  Arrival& arrival() { return *this; }
  static RecvMessage& of(Arrival& arrival) { return static_cast<RecvMessage&>(arrival); }
  std::byte* buffer() const { return buffer_; }
  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  // Somebody may look at it before it is done: only the ordered copy writes there.
  bool is_polled() const { return is_polled_; }
  // Its pieces that are with workers (CopyJobs).
  std::uint32_t copies_out() const { return copies_out_; }
  void note_copy_given() { ++copies_out_; }
  void note_copied() { --copies_out_; }
  // The next that waits for its lane's window.
  void set_next(RecvMessage* next) { next_ = next; }
  RecvMessage* next() const { return next_; }

 private:
  // Set by start(); a record that was never used has not been touched.
  std::byte* buffer_;
  std::uint64_t capacity_bytes_;
  RecvMessage* next_;
  std::uint32_t tag_;
  std::uint32_t copies_out_;
  bool is_polled_;
};

// What came before its buffer was posted.
struct UnexpectedMessage : Arrival {
  std::uint64_t reserved_bytes;  // In Bounce, by chunks begun.
  std::uint64_t eager_bytes;     // Of units in Bounce, to be released by the post.
  Bounce::Table pages;

  static UnexpectedMessage& of(Arrival& arrival) {
    return static_cast<UnexpectedMessage&>(arrival);
  }
};

// The messages of one tag: what is posted, and what has come.
struct RecvLane {
  std::uint32_t tag;
  std::uint32_t done_beyond;  // Bit i: message received + i is done.
  // received <= posted <= received + 32; chunks of [received, received + 32) are taken.
  std::uint64_t posted;
  std::uint64_t received;
  std::uint64_t told_posted;  // By the newest credit.
  std::uint64_t begun;        // All of 0..begun-1, by the sender, in order.
  bool is_small;              // As the message begun last (record.h, "When credit is told").
  bool wants_receipt;         // For one of those that are done and not counted as received.
  bool is_listed;             // In the list of those with credit to tell (LaneList).
  RecvLane* list_before;
  RecvLane* list_after;
  // Posted beyond that window, in order.
  RecvMessage* waiting_first;
  RecvMessage* waiting_last;
  // Of each number in the window: what is posted (below `posted`), or unexpected, or null.
  std::array<Arrival*, kMessageWindow> arrivals;

  Arrival*& arrival(std::uint64_t number) { return arrivals[number % kMessageWindow]; }
  bool is_posted(std::uint64_t number) const { return number < posted; }
  bool is_in_window(std::uint64_t number) const { return number < received + kMessageWindow; }
  // It knows of less than half of the buffers that are there for messages to come, of a lane where
  // it matters (record.h, "When credit is told").
  bool is_sender_short() const {
    if (is_small || posted <= begun) return false;
    const std::uint64_t known = told_posted > begun ? told_posted - begun : 0;
    return 2 * known < posted - begun;
  }
  // Only for numbers in the window.
  bool is_finished(std::uint64_t number) const {
    return number < received || (done_beyond >> (number - received) & 1) != 0;
  }
  // Of what is posted and not finished.
  std::uint64_t number_of(const Arrival& posted_one) const {
    std::uint64_t number = received;
    while (arrivals[number % kMessageWindow] != &posted_one) ++number;
    return number;
  }
  // Messages of which all has come, and some is being copied.
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

// A session's unexpected messages: no more than may be out without a posted buffer.
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
  std::uint32_t free_ = ~0U;  // One bit each.
  static_assert(kMaxUnexpected == 32);
  std::array<UnexpectedMessage, kMaxUnexpected> messages_;  // Not touched before they are taken.
};

}  // namespace ztcp::msg
