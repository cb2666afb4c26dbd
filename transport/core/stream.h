// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between TCP and messages. msg/ writes to Streams and hears StreamEvents; tcp/ provides
// them in user space, sockets/ over the kernel, tests in memory. Both sides of the seam run on
// the one thread that owns the NIC, and neither asks for the time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/core/result.h"

namespace ztcp {

// What a line about a connection's end says of its streams. Zero: not known.
struct StreamHealth {
  TimePoint heard{};  // The peer, last.
  Duration srtt{};
  std::uint64_t cwnd_bytes = 0;
  std::uint64_t unacked_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint32_t timeouts = 0;         // The kernel's TCP doesn't tell.
  std::uint64_t delivered_bytes = 0;  // Acknowledged by the peer's TCP.

  // With that of another stream, which came after this one, or ran beside it. One that was never
  // established has nothing to say of the path.
  void add_later(const StreamHealth& other) {
    add_counts(other);
    if (other.srtt == Duration::zero()) return;
    srtt = other.srtt;
    cwnd_bytes = other.cwnd_bytes;
    unacked_bytes = other.unacked_bytes;
  }
  void add_beside(const StreamHealth& other) {
    add_counts(other);
    srtt = std::max(srtt, other.srtt);
    cwnd_bytes += other.cwnd_bytes;
    unacked_bytes += other.unacked_bytes;
  }

 private:
  void add_counts(const StreamHealth& other) {
    heard = std::max(heard, other.heard);
    retransmitted_bytes += other.retransmitted_bytes;
    delivered_bytes += other.delivered_bytes;
    timeouts += other.timeouts;
  }
};

// What holds up the bytes that a stream has given to its TCP.
struct StreamStall {
  // Retransmission timeouts in a row, since the peer's TCP acknowledged anything.
  std::uint32_t timeouts = 0;
  // The peer's TCP answers and takes nothing: its window is closed.
  bool is_shut = false;
  // Its TCP holds every byte, so that only its process is still to read them.
  bool is_acked = false;
  // Since the peer's TCP was heard.
  Duration silence = Duration::max();
};

// A reliable, ordered byte stream in both directions. Owned by the layer that made it; the user
// holds a pointer from connect/accept until on_failed() or on_ended() has returned or it has called
// close() or abort(), after which it must not touch it again. on_closed() ends only the peer's
// direction, finish() only ours.
class Stream {
 public:
  // How many bytes are worth queueing now so that the stream stays busy without hiding a backlog
  // from the scheduler above: about one congestion window beyond what is unacknowledged. Advice:
  // write() takes more while its rings have space.
  virtual std::size_t room() const = 0;

  // Queues `copied` (a record header, or a small payload: copied before write() returns, at most
  // kMaxCopiedBytes) followed by `referenced`, whose memory stays unchanged until on_acked() passes
  // it or the stream has ended. All or nothing: false, and nothing queued, when the rings are full,
  // which never happens while room() > 0. on_acked() tells when to try again.
  static constexpr std::size_t kMaxCopiedBytes = 1024;
  static constexpr std::size_t kMaxReferenced = 4;
  virtual bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) = 0;

  // Sends FIN after everything queued and goes on receiving (RFC 9293 section 3.6, half-close):
  // every event is delivered as before, room() is 0 and write() takes no more. For open streams.
  virtual void finish() = 0;
  // Sends FIN after everything queued, unless finish() did. The stream lives on inside its owner
  // until the FIN is exchanged; no further event is delivered, so no referenced memory may be
  // unacknowledged (then abort() is the right call). What the peer sends from here on is neither
  // taken nor acknowledged, and RST tells it so (SHLD-3): once it has all that was said here, or
  // has ended, too, or a timeout shows that both wait for the other.
  virtual void close() = 0;
  // Sends RST and forgets everything. No further event is delivered.
  virtual void abort() = 0;

  // Asks for on_delivered() until the peer's TCP has acknowledged all that was written. For streams
  // whose on_acked() says nothing of the peer; others need not tell.
  virtual void ask_delivery() {}

  // The peer's TCP is its kernel's, which may keep an acknowledgement back for a while (RFC 9293
  // section 3.8.6.3): that it does not come at once says nothing of a loss.
  virtual void expect_late_acks() {}

  // Nobody writes any more to what StreamEvents::lend_place() lent; returns when that is so. What
  // is there is told all the same, later: on_placed().
  virtual void settle_place() {}

  // Until it has been let go, and from within on_failed().
  virtual StreamHealth health() const { return {}; }
  // For open streams that make no progress: of the kernel's TCP it is a system call.
  virtual StreamStall stall(TimePoint) const { return {}; }
  // The peer's window has been closed for so long, and its TCP answers: that is no reason to give
  // the stream up. To be repeated while it lasts, and with zero when it is over.
  virtual void tolerate_shut_window(Duration) {}

 protected:
  ~Stream() = default;
};

// Where bytes belong that are still to come.
struct Place {
  std::span<std::byte> bytes;
  bool is_polled = false;  // Somebody may look at them before they are all there.

  // For who puts them there as it likes.
  std::span<std::byte> unpolled() const { return is_polled ? std::span<std::byte>() : bytes; }
};

// What the user of a stream hears. Called from inside the owner's on_frames() / on_timers(); the
// user may write(), close() or abort() the same stream from within.
class StreamEvents {
 public:
  // The connection is established; `stream.room()` is positive.
  virtual void on_open(TimePoint now, Stream& stream) = 0;
  // In-order bytes, each exactly once. The view is valid during the call: copy or consume, or have
  // their memory lent (FrameLoans).
  virtual void on_bytes(TimePoint now, std::span<const std::byte> bytes) = 0;
  // Where the next bytes of the stream belong, if the user knows: whoever makes the stream may put
  // them there itself, from the first on, and then tells how many it was instead of on_bytes():
  // in any order within, but where somebody polls by ordered_copy() alone. Empty: on_bytes() wants
  // them.
  virtual Place place() { return {}; }
  virtual void on_placed(TimePoint, std::size_t) {}
  // What place() just said may be written by another thread until on_placed() (of none or some of
  // the bytes), or until the stream has been let go. False: only here and now.
  virtual bool lend_place() { return false; }
  // Bytes acknowledged since the stream opened, cumulative, whose memory the stream needs no more:
  // of kernel sockets those that the kernel has copied, which says nothing of the peer. Never
  // decreases. Also the moment to write more: room() may have grown. Told after the bytes and the
  // FIN of the same burst.
  virtual void on_acked(TimePoint now, std::uint64_t total_bytes) = 0;
  // After ask_delivery(): so many bytes since the stream opened the peer's TCP has acknowledged.
  // They reach the peer even if this process ends now.
  virtual void on_delivered(TimePoint, std::uint64_t /*total_bytes*/) {}
  // The peer sent FIN: no more bytes will come. Ours may still go out.
  virtual void on_closed(TimePoint now) = 0;
  // After finish(): the peer has ended its direction, too, and acknowledged all of ours. The stream
  // is gone and nothing more will be heard of it.
  virtual void on_ended(TimePoint) {}
  // Reset, timeout, path MTU: the stream is gone and nothing more will be heard of it.
  virtual void on_failed(TimePoint now, Error error) = 0;

 protected:
  ~StreamEvents() = default;
};

// Lends received memory beyond the call of on_bytes() that shows it: for who copies it later, on
// another thread. Of the layer that makes the streams; loans outlive the stream they came by.
class FrameLoans {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Of the bytes that on_bytes() is showing; as often as wanted. kNone: this memory can't be
  // spared.
  virtual std::uint32_t lend() = 0;
  virtual void give_back(std::uint32_t loan) = 0;

 protected:
  ~FrameLoans() = default;
};

}  // namespace ztcp
