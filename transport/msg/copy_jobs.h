// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Has received payload copied by workers: from frames, which are lent until it is done, to posted
// buffers. One for all receiving sessions of a NIC's queue.
//
// What GPUs poll is lines of 128 bytes, whose bytes must become visible in ascending order. So a
// message is cut into stretches, aligned in it, and all pieces of a stretch are one worker's, in
// order, or all are copied here. A message is done when all its units have come and none of its
// bytes is with a worker; what a session or its owner may not touch any more is waited for.
//
// Belongs to the thread that owns the NIC, but for work(), which is a worker's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/core/clock.h"
#include "transport/core/job_ring.h"
#include "transport/core/stream.h"

namespace ztcp::msg {

class RecvMessage;

struct CopySettings {
  std::size_t workers = 0;  // At most.
  // Of smaller messages nothing is given away: to wake somebody takes as long as to copy them.
  std::uint64_t least_message_bytes = 128U << 10;
  // Nor where frames are small: to give a piece of 1448 bytes away takes as long as to copy it.
  std::size_t least_piece_bytes = 4096;
  std::uint64_t stretch_bytes = 16U << 10;  // A multiple of 128.
};

// Whose messages are copied: a receiving session.
class CopyClient {
 public:
  // Pieces that are with workers.
  bool has_copies_out() const { return copies_out_ != 0; }
  // One of the message's has been copied.
  virtual void on_copied(TimePoint now, RecvMessage& message) = 0;

  // CopyJobs'.
  void note_given() { ++copies_out_; }
  void note_back() { --copies_out_; }
  void note_forgotten() { copies_out_ = 0; }

 protected:
  ~CopyClient() = default;

 private:
  std::size_t copies_out_ = 0;
};

struct CopyJob {
  std::byte* to;
  const std::byte* from;
  std::uint32_t size_bytes;
  std::uint32_t loan;
  // The giver's. The client is null once it wants to hear no more of it.
  CopyClient* client;
  RecvMessage* message;
};

// The stretch that a flow is at: who copies it.
struct CopyTrack {
  static constexpr std::uint8_t kHere = 0xff;

  std::uint64_t end = 0;  // In the message.
  std::uint8_t worker = kHere;
  bool is_begun = false;  // The worker has pieces of it.
};

class CopyJobs {
 public:
  static constexpr std::size_t kMaxWorkers = 16;

  // Both outlive it.
  CopyJobs(const CopySettings& settings, Workers& workers, FrameLoans& loans);

  bool is_for(std::uint64_t message_bytes) const {
    return message_bytes >= settings_.least_message_bytes;
  }
  // Bytes that on_bytes() is showing, for the message from byte `at` on: copied now, or later.
  void copy(CopyClient& client, RecvMessage& message, CopyTrack& track, std::uint64_t at,
            std::span<const std::byte> bytes);
  // Lets the workers see what was given: at the end of a burst.
  void publish();
  // Takes back what is done, and tells the clients. True: there was some.
  bool collect(TimePoint now);
  bool is_idle() const { return out_ == 0; }

  // Returns when nobody touches memory for the client any more (false: some worker may, and none is
  // waited for any longer)...
  bool wait_for(const CopyClient& client);
  // ...having told it (and others meanwhile) what was done;
  void settle(TimePoint now, CopyClient& client);
  // ...and without a word to it, now or later.
  void forget(CopyClient& client);

  // --- The worker's thread -----------------------------------------------------------------------
  // Does its next job; false: there is none.
  bool work(std::size_t worker);

 private:
  // As many jobs as a NIC's burst makes, a few times over.
  using Ring = JobRing<CopyJob, 256>;
  // A stretch finds room for all its pieces, if they are not tiny.
  static constexpr std::uint32_t kRoomForStretch = 32;
  // In stretches. One worker after the other is woken: the next when those before have so much to
  // do; and when all have too much the giver copies, too.
  static constexpr std::uint64_t kEnough = 2;
  static constexpr std::uint64_t kTooMuch = 16;

  struct Worker {
    Ring ring;
    std::uint64_t out_bytes = 0;  // Not known to be done.
    void look() {
      ring.look([this](const CopyJob& job) { out_bytes -= job.size_bytes; });
    }
  };

  std::size_t count() const { return std::min(rings_.size(), workers_.count()); }
  void begin_stretch(CopyTrack& track, std::uint64_t at, bool is_worth_it);
  std::uint8_t choose_worker();
  std::uint8_t least_busy() const;
  bool give(CopyClient& client, RecvMessage& message, std::uint8_t to, std::uint64_t at,
            std::span<const std::byte> bytes);
  void publish(std::size_t worker);
  bool wait_until_done(std::size_t worker, std::uint32_t position);

  const CopySettings settings_;
  Workers& workers_;
  FrameLoans& loans_;
  std::vector<std::unique_ptr<Worker>> rings_;
  std::size_t out_ = 0;  // Jobs given and not taken back.
};

}  // namespace ztcp::msg
