// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NCCL connection as messages over up to four byte streams: wire format version 1 (design notes
// in ARCHITECTURE.md, "Messages"). SendSession is the connecting side and sends messages;
// RecvSession is made by the Acceptor from an incoming handshake and receives them. Credit and
// received counts travel on the reverse direction of the same streams.
//
// Pure: told the time, speaks through Stream, hears through StreamEvents, allocates only at
// construction. Belongs to the thread that owns the streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/core/stream.h"

namespace ztcp::msg {

inline constexpr std::uint32_t kWireVersion = 1;
inline constexpr std::size_t kMaxFlows = 4;
// NCCL's contract: at most this many isends or irecvs outstanding on one connection. Also the
// window by which messages are kept: from the oldest that is not done on, by number modulo this.
inline constexpr std::size_t kMaxOutstanding = 32;

using Cookie = std::array<std::byte, 16>;      // Names a listener; travels in NCCL's handle.
using ClusterKey = std::array<std::byte, 32>;  // HMAC-SHA256 key; all zero: no authentication.

struct SessionSettings {
  std::uint32_t flows = 4;                                // 1-4.
  std::uint32_t multi_flow_threshold_bytes = 128U << 10;  // Larger messages open the other flows.
  std::uint32_t eager_allowance_bytes = 128U
                                        << 10;  // What a receiver takes without a posted buffer.
  std::uint32_t max_chunk_bytes = 256U << 10;   // Multiple of 4096.
  Duration handshake_timeout = std::chrono::seconds(10);
  // A dead flow is dialled again from another port, and again whenever an attempt has gone without
  // an answer for redial_attempt, for redial_window from its death on; then the session fails. So
  // an outage is survived that ends within what TCP takes to notice it plus the window.
  Duration redial_window = std::chrono::seconds(7);
  Duration redial_attempt = std::chrono::milliseconds(1500);
  // And when it came up again this often in a row only to die without having served.
  std::uint32_t max_redials = 3;
  // A receiver whose flows are all gone waits for a resume as long as the sender may take to notice
  // (its TCP's user timeout) and to redial. When the last flow was reset by the peer the former is
  // nothing, for then the sender knows already.
  Duration sender_notices = std::chrono::seconds(8);
  Duration resume_wait(bool sender_knows) const {
    return (sender_knows ? Duration::zero() : sender_notices) + redial_window + redial_attempt;
  }
  // The TCP below acknowledges to its peer only what on_bytes() took (receiver), and on_acked()
  // tells of the peer's acknowledgements (sender). True for tcp/, false for kernel sockets. A send
  // is done by acknowledgement alone only where both sides say so.
  bool ack_is_delivery = true;
  // Sessions of one NIC, those that send and those that receive together.
  std::uint32_t max_sessions = 512;
  // Of this budget each receiver of an acceptor is allowed a 64th of what the others leave, up to
  // eager_allowance_bytes; 4 KiB it has beside. So all allowances together stay below the budget
  // and 4 KiB for each session there may be, whoever comes when, and bounce memory below twice
  // that.
  std::uint32_t eager_budget_bytes = 16U << 20;
};

// Why a session ended, in more words than an Error: what was refused, by whom, and both numbers
// (versions, sizes) where there are two. Text by describe() in reason.h.
enum class Reason : std::uint32_t;
struct FailureDetail {
  Reason reason{};           // Zero: nothing beyond the Error.
  bool from_peer = false;    // The peer told us; false: decided here.
  std::uint64_t ours = 0;    // As seen by the side that decided.
  std::uint64_t theirs = 0;  // The other side's number.
};

// What the owner of a session hears. `token` is what post() was given. Events come from within
// stream events and on_timers(), and from within post(), close() and flush() too (a buffer posted
// for a message that waits in the bounce buffer is done at once). The owner may post, close or
// abort from within an event; it must not destroy the session from within one.
class SessionOwner {
 public:
  virtual void on_ready(TimePoint now) = 0;  // Flow 0 has shaken hands: messages may flow.
  virtual void on_done(std::uint32_t token, std::size_t size_bytes) = 0;
  // The session is dead; every outstanding message is lost and no further event follows.
  virtual void on_session_failed(Error error) = 0;
  // close() has finished: every flow ended. The session may be destroyed.
  virtual void on_session_closed() = 0;

 protected:
  ~SessionOwner() = default;
};

// Opens further streams to the same peer; implemented over tcp::Stack and, later, kernel sockets.
class Dialer {
 public:
  virtual Result<Stream*> dial(TimePoint now, StreamEvents& events) = 0;
  // Whether there are streams to spare for a flow that the session can do without. Each session
  // needs one: those still to come must find theirs.
  virtual bool has_spare() const { return true; }
  // The session wants on_timers() by then. Never sooner than it was told is early enough.
  virtual void wake_at(TimePoint) {}

 protected:
  ~Dialer() = default;
};

class SendSession {
 public:
  // `session_id` is unique among this process's sessions and unguessable. Starts dialling flow 0
  // at the first on_timers().
  SendSession(const SessionSettings& settings, const ClusterKey& key, const Cookie& cookie,
              std::uint64_t session_id, Dialer& dialer, SessionOwner& owner);
  ~SendSession();

  // Whether the window has room: kMaxOutstanding messages from the oldest that is not done.
  bool can_post() const;
  // Queues one message; the memory stays unchanged until on_done(token). 0 bytes is legal. False,
  // and nothing queued, when the window is full: ask again.
  [[nodiscard]] bool post(TimePoint now, std::span<const std::byte> bytes, std::uint32_t memory_key,
                          std::uint32_t token);

  // FIN on every flow once all messages are done; then on_session_closed(). abort(): RST on every
  // flow, now, and no further event.
  void close(TimePoint now);
  void abort(TimePoint now);
  // The process ends: tells the receiver so at once, by a new stream where the old ones still refer
  // to messages. From here on no posted memory is read and no message is done.
  void leave(TimePoint now);
  // leave() was called, and the receiver is still to be told.
  bool is_leaving() const;
  // False once the receiver has closed with everything it was sent: its end takes nothing away.
  bool needs_peer() const;

  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

  // Valid once on_session_failed() was told.
  const FailureDetail& failure_detail() const;

  class Impl;  // Internal.

 private:
  std::unique_ptr<Impl> impl_;
};

class RecvSession {
 public:
  ~RecvSession();
  void set_owner(SessionOwner& owner);  // Once, before the first post(); on_ready() is not called.

  // Whether the window has room: kMaxOutstanding messages from the oldest that is not done.
  bool can_post() const;
  // Posts the buffer for the next message in order. on_done() tells the size received; a message
  // larger than `bytes` fails the session with kTruncated. False, and nothing posted, when the
  // window is full: ask again.
  [[nodiscard]] bool post(TimePoint now, std::span<std::byte> bytes, std::uint32_t token);

  // Tells the sender that nothing will be received any more, FIN on every flow, then
  // on_session_closed(). abort(): RST on every flow, now, and no further event.
  void close(TimePoint now);
  void abort(TimePoint now);
  // The process ends: tells the sender so at once. From here on no posted memory is written, what
  // arrives is thrown away, and no event follows.
  void leave(TimePoint now);

  // The acceptor drives these too; calling them besides does no harm.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

  // False once the sender has closed: we hold everything it sent, and its end takes nothing away.
  bool needs_peer() const;
  Endpoint remote() const;
  // Bytes taken, or promised to chunks under way, without a posted buffer: never above the eager
  // allowance.
  std::uint64_t unposted_bytes() const;
  // Valid once on_session_failed() was told.
  const FailureDetail& failure_detail() const;

  class Impl;  // Internal: the acceptor makes it.
  explicit RecvSession(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztcp::msg
