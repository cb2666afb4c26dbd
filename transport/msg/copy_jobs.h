// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Workers copy received payload from frames, which are lent until the copy is done, to posted
// buffers. One object for all receiving sessions of a NIC's lane.
//
// GPUs poll lines of 128 bytes, and the bytes of a line must become visible in ascending order. So
// a message is cut into aligned stretches, and all pieces of a stretch go to the same worker, in
// order, or are all copied here. A message is done when all its units have arrived and no worker
// has any of its bytes; before a session or its owner gives up memory, the copies into it are
// waited for.
//
// Belongs to the thread that owns the NIC, except work(), which a worker calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/job_ring.h"
#include "core/stream.h"

namespace ztcp::msg {

class RecvMessage;

struct CopySettings {
  std::size_t workers = 0;  // Limit.
  // Smaller messages are copied here: waking a worker takes as long as copying them.
  std::uint64_t least_message_bytes = 128U << 10;
  // Smaller pieces are copied here: giving away a piece of 1448 bytes takes as long as copying it.
  std::size_t least_piece_bytes = 4096;
  std::uint64_t stretch_bytes = 16U << 10;  // A multiple of 128.
};

// The owner of messages to copy: a receiving session.
class CopyClient {
 public:
  // Whether workers have pieces of its messages.
  bool has_copies_out() const { return copies_out_ != 0; }
  // A piece of the message has been copied.
  virtual void on_copied(TimePoint now, RecvMessage& message) = 0;

  // --- Called by CopyJobs ---
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
  // For the giver. The client is null once it must not be told any more.
  CopyClient* client;
  RecvMessage* message;
};

// The current stretch of a flow, and its worker.
struct CopyTrack {
  static constexpr std::uint8_t kHere = 0xff;

  std::uint64_t end = 0;  // Offset in the message.
  std::uint8_t worker = kHere;
  bool is_begun = false;  // The worker has pieces of it.
};

class CopyJobs {
 public:
  static constexpr std::size_t kMaxWorkers = 16;

  // Both outlive this.
  CopyJobs(const CopySettings& settings, Workers& workers, FrameLoans& loans);

  bool is_for(std::uint64_t message_bytes) const {
    return message_bytes >= settings_.least_message_bytes;
  }
  // Copies bytes that on_bytes() is showing to the message, from byte `at` on: now, or later.
  void copy(CopyClient& client, RecvMessage& message, CopyTrack& track, std::uint64_t at,
            std::span<const std::byte> bytes);
  // Publishes the given jobs to the workers: at the end of a burst.
  void publish();
  // Takes back finished jobs and tells the clients. True: there were some.
  bool collect(TimePoint now);
  bool is_idle() const { return out_ == 0; }

  // Returns when no worker uses memory of the client any more (false: the wait was given up, and a
  // worker may).
  bool wait_for(const CopyClient& client);
  // Waits likewise, and tells it (and others) of the finished jobs.
  void settle(TimePoint now, CopyClient& client);
  // Waits likewise, and never tells it of its jobs.
  void forget(CopyClient& client);

  // --- The worker's thread -----------------------------------------------------------------------
  //
  // Does its next job; false: there is none.
  bool work(std::size_t worker);

 private:
  // A few times the jobs of a NIC's burst.
  using Ring = JobRing<CopyJob, 256>;
  // Room for all pieces of a stretch, unless they are tiny.
  static constexpr std::uint32_t kRoomForStretch = 32;
  // In stretches. The next worker is woken when the ones before have kEnough to do; when all have
  // kTooMuch, the giver copies, too.
  static constexpr std::uint64_t kEnough = 2;
  static constexpr std::uint64_t kTooMuch = 16;

  struct Worker {
    Ring ring;
    std::uint64_t out_bytes = 0;  // Bytes not known to be done.
    void reap() {
      ring.reap([this](const CopyJob& job) { out_bytes -= job.size_bytes; });
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
