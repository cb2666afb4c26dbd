// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What both ends of a session share: its settings, who hears of it, who dials, and why it ended.
// A session is a NCCL connection as messages over up to eight byte streams, in wire format version
// 1 (record.h; design notes in docs/sessions.md): SendSession is the connecting side and
// sends messages, RecvSession is made by the Acceptor from an incoming handshake and receives them.
// Credit and received counts travel on the reverse direction of the same streams.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/core/stream.h"

namespace ztcp::msg {

inline constexpr std::uint32_t kWireVersion = 1;
inline constexpr std::size_t kMaxFlows = 8;
// That SessionSettings::max_sessions may be: the config's maximum of max_connections.
inline constexpr std::uint32_t kMostSessions = 32768;
// Messages of one tag of which a receiver takes bytes: so many from the oldest that is not done on.
inline constexpr std::size_t kMessageWindow = 32;
// Messages, of all tags, that may be out without a posted buffer.
inline constexpr std::size_t kMaxUnexpected = 32;

// Tags for which a receiver may have told buffers, and that no message has had yet.
inline constexpr std::size_t kMaxUnusedLanes = 512;

// While something is outstanding sessions look now and then whether their flows make progress. All
// of a process do at the same multiples of this, so that one scan serves them.
inline constexpr Duration kWatchInterval = std::chrono::milliseconds(100);
constexpr TimePoint next_watch(TimePoint now) {
  const Duration since = now.time_since_epoch();
  return TimePoint(since - since % kWatchInterval + kWatchInterval);
}
// So many retransmission timeouts in a row are no chance losses.
inline constexpr std::uint32_t kDeadTimeouts = 3;

using Cookie = std::array<std::byte, 16>;      // Names a listener; travels in NCCL's handle.
using ClusterKey = std::array<std::byte, 32>;  // HMAC-SHA256 key; all zero: no authentication.

struct SessionSettings {
  std::uint32_t flows = 4;                                // 1-8.
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
  // (its TCP's user timeout) and to redial. Also when the peer has reset the last flow: a sender
  // that gives flows up before its TCP does has all that time to come back.
  Duration sender_notices = std::chrono::seconds(8);
  Duration resume_wait() const { return sender_notices + redial_window + redial_attempt; }
  // The TCP below acknowledges to its peer only what on_bytes() took (receiver), and on_acked()
  // tells of the peer's acknowledgements (sender). True for tcp/, false for kernel sockets. A send
  // is done by acknowledgement alone only where both sides say so.
  bool ack_is_delivery = true;
  // A sender copies messages up to this size and calls them done once no stream refers to their
  // memory, as long as there is room for the copies of those that the receiver may not hold yet:
  // four such messages, or 64 that are small. 0: none. For where an acknowledgement is no delivery:
  // each message would wait for a record of the receiver's.
  std::uint32_t kept_message_bytes = 0;
  // Large messages stay off the first flow once others are up, and credit keeps to it: of kernel
  // sockets those that other threads move bytes of are locked meanwhile. Then also a message is cut
  // evenly for its flows, so that each is done when the others are.
  bool keeps_first_flow_free = false;
  // Sessions of one queue of a NIC, those that send and those that receive together.
  std::uint32_t max_sessions = 512;
  // Of this budget each receiver of an acceptor is allowed one of so many shares of what the others
  // leave, up to eager_allowance_bytes; 4 KiB it has beside. So all allowances together stay below
  // the budget and 4 KiB for each session there may be, whoever comes when, and bounce memory below
  // twice that.
  std::uint32_t eager_budget_bytes = 16U << 20;
  std::uint32_t eager_shares = 64;
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

class SendMessage;
class RecvMessage;

// What the owner of a session hears. Events come from within stream events and on_timers(), and
// from within post() and close() too (a buffer posted for a message that has arrived already is
// done at once). The owner may post, close or abort from within an event; it must not destroy the
// session from within one. From on_done() on the record is the owner's again; those still lent when
// the session fails, has closed or is aborted are as well.
class SendOwner {
 public:
  virtual void on_ready(TimePoint now) = 0;  // Flow 0 has shaken hands: messages may flow.
  virtual void on_done(SendMessage& message) = 0;
  // The session is dead; every outstanding message is lost and no further event follows.
  virtual void on_session_failed(Error error) = 0;
  // close() has finished: every flow ended. The session may be destroyed.
  virtual void on_session_closed() = 0;

 protected:
  ~SendOwner() = default;
};

class RecvOwner {
 public:
  virtual void on_done(RecvMessage& message) = 0;
  virtual void on_session_failed(Error error) = 0;
  virtual void on_session_closed() = 0;

 protected:
  ~RecvOwner() = default;
};

// Why a peer takes nothing.
enum class PeerTrouble : std::uint8_t {
  kSilent,      // Its host answers nothing.
  kStandsStill  // Its host's kernel answers, its process does nothing.
};

// What a session tells of its peer, for an operator. Seldom.
class PathEvents {
 public:
  // Something waits for the peer, and has for `lasted`. Once each time.
  virtual void on_trouble(TimePoint, Endpoint, PeerTrouble, Duration /*lasted*/) {}
  // The same is over.
  virtual void on_trouble_over(TimePoint, Endpoint, PeerTrouble, Duration /*lasted*/) {}
  // A flow that was lost is up again, after so long.
  virtual void on_redialled(TimePoint, Endpoint, Duration /*lasted*/) {}
  // A flow is up whose segments have at most so much payload, for larger ones did not arrive.
  virtual void on_small_segments(TimePoint, Endpoint, std::uint32_t /*segment_bytes*/) {}

 protected:
  ~PathEvents() = default;
};

// Opens further streams to the same peer, over whatever made the first (StreamSource).
class Dialer {
 public:
  virtual Result<Stream*> dial(TimePoint now, StreamEvents& events) = 0;
  // The same with segments of at most so much payload: on the last flows larger ones were lost.
  virtual Result<Stream*> dial_small(TimePoint now, StreamEvents& events,
                                     std::uint32_t /*segment_bytes*/) {
    return dial(now, events);
  }
  virtual PathEvents* path_events() { return nullptr; }  // Null: nobody wants to know.
  virtual Endpoint remote() const { return {}; }
  // Whether there are streams to spare for a flow that the session can do without. Each session
  // needs one: those still to come must find theirs.
  virtual bool has_spare() const { return true; }
  // The session wants on_timers() by then. Never sooner than it was told is early enough.
  virtual void wake_at(TimePoint) {}
  // See StreamSource.
  virtual Endpoint listening() const { return {}; }

 protected:
  ~Dialer() = default;
};

// Where all streams come from.
class StreamSource {
 public:
  virtual Result<Stream*> dial(TimePoint now, Endpoint remote, StreamEvents& events) = 0;
  // See Dialer.
  virtual Result<Stream*> dial_small(TimePoint now, Endpoint remote, StreamEvents& events,
                                     std::uint32_t /*segment_bytes*/) {
    return dial(now, remote, events);
  }
  virtual PathEvents* path_events() { return nullptr; }
  // There will be a stream left for each session that may still come when one more is dialled.
  virtual bool has_spare_stream() const = 0;
  // Where whoever dials finds this process, as long as it lives.
  virtual Endpoint listening() const = 0;

 protected:
  ~StreamSource() = default;
};

}  // namespace ztcp::msg
