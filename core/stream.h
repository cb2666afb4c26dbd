// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between TCP and messages. msg/ writes to Streams and receives StreamEvents; tcp/
// provides them in user space, sockets/ over the kernel, tests in memory. Both sides of the seam
// run on the one thread that owns the NIC, and neither reads the clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/address.h"
#include "core/clock.h"
#include "core/frame.h"
#include "core/histogram.h"
#include "core/result.h"

namespace ztcp {

class StreamEvents;

// How a stream is dialled.
struct DialSettings {
  std::uint32_t segment_bytes = 0;  // Most payload of a segment, both ways; 0: by the path's MTU.
  std::optional<std::uint8_t> dscp{};  // Absent: the NIC's.
  // Processes of the peer's host share its NIC: only some source ports lead to the right one, and
  // the others are refused. Userspace TCP then tries further ports.
  bool peer_shares_nic = false;
};

// State of streams for the log line about a connection's end. Zero: not known.
struct StreamHealth {
  TimePoint heard{};  // When the peer was last heard.
  Duration srtt{};
  std::uint64_t cwnd_bytes = 0;
  std::uint64_t unacked_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint32_t timeouts = 0;         // Not known for the kernel's TCP.
  std::uint64_t marked_bytes = 0;     // By switches (accurate ECN). Likewise.
  std::uint64_t delivered_bytes = 0;  // Acknowledged by the peer's TCP.

  // Merges the state of another stream: add_later() of one that came after this one, add_beside()
  // of one that ran at the same time. A stream that was never established knows nothing of the
  // path.
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
    marked_bytes += other.marked_bytes;
  }
};

// State of one stream for the statistics page. Zero: not known.
struct StreamStatistics {
  const char* state = "";  // RFC 9293's name.
  Endpoint local;
  Endpoint remote;
  const char* congestion_control = "";  // The algorithm in use.
  std::uint32_t in_flight_bytes = 0;
  std::uint32_t cwnd_bytes = 0;
  std::uint32_t peer_window_bytes = 0;
  std::uint32_t own_window_bytes = 0;
  std::uint32_t mss_bytes = 0;
  Duration rtt_min{};
  Duration rtt{};  // Smoothed.
  // All samples, as long as the stream lives; null: its TCP tells the smoothed one alone.
  const Histogram* rtts = nullptr;
  std::uint64_t unsent_bytes = 0;
  std::uint64_t sent_bytes = 0;  // Without retransmissions.
  std::uint64_t received_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint64_t needless_bytes = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t fast_recoveries = 0;
  std::uint32_t tail_probes = 0;
  std::uint32_t spurious_recoveries = 0;
  std::uint32_t zero_windows = 0;
  Duration zero_window_time{};  // The kernel counts all time limited by the peer's window.
  bool is_window_shut = false;
};

// Why the bytes that a stream has given to its TCP do not progress.
struct StreamStall {
  // Retransmission timeouts in a row, since the last acknowledgement by the peer's TCP.
  std::uint32_t timeouts = 0;
  // The peer's TCP answers but its window is closed.
  bool is_shut = false;
  // The peer's TCP holds every byte; its process has not read them yet.
  bool is_acked = false;
  // Time since the peer's TCP last sent an acknowledgement alone, which answers packets of ours;
  // data may come although the path to the peer is dead. The kernel's TCP counts those with data,
  // too.
  Duration silence = Duration::max();
};

// A reliable, ordered byte stream in both directions. Owned by the layer that made it; the user
// holds a pointer from connect/accept until on_failed() or on_ended() has returned or the user has
// called close() or abort(), and must not touch it afterwards. on_closed() ends only the peer's
// direction, finish() only ours.
class Stream {
 public:
  // How many bytes are worth queueing now, so that the stream stays busy without hiding a backlog
  // from the scheduler above: about one congestion window beyond the unacknowledged bytes. Advice:
  // write() accepts more while its rings have space.
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
  // unacknowledged (then abort() is the right call). Bytes that the peer sends from here on are
  // neither accepted nor acknowledged, and RST tells it so (SHLD-3): once it has received all of
  // ours, or has closed, too, or a timeout shows that both sides wait for each other.
  virtual void close() = 0;
  // Sends RST and drops all state. No further event is delivered.
  virtual void abort() = 0;

  // Asks for on_delivered() until the peer's TCP has acknowledged all that was written. For streams
  // whose on_acked() does not mean that the peer's TCP has the bytes; others need not call it.
  virtual void ask_delivery() {}

  // The peer uses its kernel's TCP, which may delay an acknowledgement (RFC 9293 section 3.8.6.3):
  // a late one does not mean a loss.
  virtual void expect_late_acks() {}

  // Sends a packet that the peer's TCP answers: StreamStall::silence shows the answer.
  virtual void ask_peer() {}
  // Events go to `events` from now on. Not from inside an event. For streams whose acknowledgement
  // is delivery.
  virtual void hand_over(StreamEvents& /*events*/) {}

  // DSCP of the packets sent from now on, 0-63; until then they have the NIC's.
  virtual void set_dscp(std::uint8_t) {}

  // Returns once no thread writes any more to the place that StreamEvents::lend_place() lent. Bytes
  // already written there are reported later by on_placed().
  virtual void settle_place() {}

  // Valid until the stream is closed or aborted, and inside on_failed().
  virtual StreamHealth health() const { return {}; }
  // For open streams that make no progress: with the kernel's TCP it is a system call.
  virtual StreamStall stall(TimePoint) const { return {}; }
  // For a living stream; with the kernel's TCP it is three system calls.
  virtual StreamStatistics stream_statistics(TimePoint) const { return {}; }
  // The peer's window has been closed for this long while its TCP answers: no reason to give the
  // stream up. To be repeated while it lasts, and with zero when it is over.
  virtual void tolerate_shut_window(Duration) {}

 protected:
  ~Stream() = default;
};

// Destination of bytes that are still to come.
struct Place {
  std::span<std::byte> bytes;
  bool is_polled = false;  // The memory may be polled before all bytes are there.

  // For code that writes the bytes in any order.
  std::span<std::byte> unpolled() const { return is_polled ? std::span<std::byte>() : bytes; }
};

// Events for the user of a stream. Called from inside the owner's on_frames() / on_timers(); the
// user may write(), close() or abort() the same stream from within.
class StreamEvents {
 public:
  // The connection is established; `stream.room()` is positive.
  virtual void on_open(TimePoint now, Stream& stream) = 0;
  // In-order bytes, each exactly once. The view is valid during the call: copy or consume the
  // bytes, or have their memory lent (FrameLoans).
  virtual void on_bytes(TimePoint now, std::span<const std::byte> bytes) = 0;
  // Destination of the stream's next bytes, if the user knows it. The stream may write them there
  // itself, from the first on, and then calls on_placed() with their number instead of on_bytes().
  // It may write in any order, but with ordered_copy() alone where the memory is polled. Empty: use
  // on_bytes().
  virtual Place place() { return {}; }
  virtual void on_placed(TimePoint, std::size_t) {}
  // Whether another thread may write to the last place() until on_placed() (with any number of the
  // bytes, also none), or until the stream is closed or aborted. False: only here and now.
  virtual bool lend_place() { return false; }
  // Bytes acknowledged since the stream opened, cumulative, whose memory the stream needs no more.
  // For kernel sockets: the bytes that the kernel has copied, which says nothing of the peer. Never
  // decreases. Also the moment to write more: room() may have grown. Called after the bytes and the
  // FIN of the same burst.
  virtual void on_acked(TimePoint now, std::uint64_t total_bytes) = 0;
  // After ask_delivery(): bytes since the stream opened that the peer's TCP has acknowledged. They
  // reach the peer even if this process ends now.
  virtual void on_delivered(TimePoint, std::uint64_t /*total_bytes*/) {}
  // The peer sent FIN: no more bytes will come. Ours may still go out.
  virtual void on_closed(TimePoint now) = 0;
  // After finish(): the peer has closed its direction, too, and acknowledged all of ours. The
  // stream is gone, and no further event is delivered.
  virtual void on_ended(TimePoint) {}
  // Reset, timeout, path MTU: the stream is gone, and no further event is delivered.
  virtual void on_failed(TimePoint now, Error error) = 0;

 protected:
  ~StreamEvents() = default;
};

// Lends received memory beyond the call of on_bytes() that shows it, so that another thread can
// copy it later. Provided by the layer that makes the streams; a loan outlives its stream.
class FrameLoans {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Lends the bytes that on_bytes() is showing; may be called several times. kNone: this memory
  // can't be lent.
  virtual std::uint32_t lend() = 0;
  virtual void give_back(std::uint32_t loan) = 0;

 protected:
  ~FrameLoans() = default;
};

}  // namespace ztcp
