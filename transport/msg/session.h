// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Types that both ends of a session share: settings, owners, dialling, and failure reasons. A
// session is a NCCL connection as messages over up to eight byte streams, in wire format version 2
// (record.h; design notes in docs/sessions.md): SendSession is the connecting side and sends
// messages, RecvSession is made by the Acceptor from an incoming handshake and receives them.
// Credit and received counts travel on the reverse direction of the same streams.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/address.h"
#include "core/clock.h"
#include "core/host_name.h"
#include "core/result.h"
#include "core/stream.h"

namespace ztcp::msg {

inline constexpr std::uint32_t kWireVersion = 2;
inline constexpr std::size_t kMaxFlows = 8;
// Upper limit of SessionSettings::max_sessions: the config's maximum of max_connections.
inline constexpr std::uint32_t kMostSessions = 32768;
// Messages of one tag of which a receiver accepts bytes, counted from the oldest that is not done.
inline constexpr std::size_t kMessageWindow = 32;
// Messages, of all tags, that may be out without a posted buffer.
inline constexpr std::size_t kMaxUnexpected = 32;

// Tags for which a receiver may have announced buffers without having had a message.
inline constexpr std::size_t kMaxUnusedLanes = 512;

// While messages are outstanding, sessions check now and then whether their flows make progress.
// All sessions of a process do so at the same multiples of this, so that one scan serves them.
inline constexpr Duration kWatchInterval = std::chrono::milliseconds(100);
constexpr TimePoint next_watch(TimePoint now) {
  const Duration since = now.time_since_epoch();
  return TimePoint(since - since % kWatchInterval + kWatchInterval);
}
// After this many retransmission timeouts in a row the peer is asked by another flow.
inline constexpr std::uint32_t kDoubtfulTimeouts = 2;
// This many are no random losses.
inline constexpr std::uint32_t kDeadTimeouts = 3;

using Cookie = std::array<std::byte, 16>;      // Identifies a listener; travels in NCCL's handle.
using ClusterKey = std::array<std::byte, 32>;  // HMAC-SHA256 key; all zero: no authentication.

struct SessionSettings {
  std::uint32_t flows = 4;                                // 1-8.
  std::uint32_t multi_flow_threshold_bytes = 128U << 10;  // Larger messages open the other flows.
  std::uint32_t eager_allowance_bytes = 128U << 10;       // Bytes accepted without a posted buffer.
  std::uint32_t max_chunk_bytes = 256U << 10;             // Multiple of 4096.
  Duration handshake_timeout = std::chrono::seconds(10);
  // A dead flow is dialled again from another port, and again whenever an attempt has gone
  // unanswered for redial_attempt, for redial_window from its death on; then the session fails. So
  // an outage is survived if it ends within the time that TCP takes to notice it plus the window.
  Duration redial_window = std::chrono::seconds(7);
  Duration redial_attempt = std::chrono::milliseconds(1500);
  // The session fails if a flow came up this often in a row and died without having served.
  std::uint32_t max_redials = 3;
  // A receiver whose flows are all gone waits for a resume for the time in which the sender may
  // notice (its TCP's user timeout) and redial. Also when the peer has reset the last flow: a
  // sender that gives flows up before its TCP does has all that time to come back.
  Duration sender_notices = std::chrono::seconds(8);
  Duration resume_wait() const { return sender_notices + redial_window + redial_attempt; }
  // The TCP below acknowledges to its peer only bytes that on_bytes() took (receiver), and
  // on_acked() reports the peer's acknowledgements (sender). True for tcp/, false for kernel
  // sockets. A send is done by acknowledgement alone only where both sides say so.
  bool ack_is_delivery = true;
  // A flow leaves a path that is worse than those of the session's other flows. For streams whose
  // acknowledgement is delivery.
  bool leaves_bad_paths = true;
  // A sender copies messages up to this size and reports them done once no stream refers to their
  // memory, as long as there is room for the copies of messages that the receiver may not hold yet:
  // four such messages, or 64 small ones. 0: none. For transports whose acknowledgement is no
  // delivery: each message would wait for a record of the receiver.
  std::uint32_t kept_message_bytes = 0;
  // Large messages avoid the first flow once others are up, and credit stays on it: a kernel socket
  // is locked while another thread moves its bytes. Then a message is also divided evenly over its
  // flows, so that they finish at the same time.
  bool keeps_first_flow_free = false;
  // Sessions of one lane of a NIC, sending and receiving ones together.
  std::uint32_t max_sessions = 512;
  // Each new receiver of an acceptor gets the remaining budget divided by eager_shares, up to
  // eager_allowance_bytes, plus 4 KiB. So all allowances together stay below the budget plus 4 KiB
  // per possible session, in any order of arrival, and bounce memory stays below twice that.
  std::uint32_t eager_budget_bytes = 16U << 20;
  std::uint32_t eager_shares = 64;
  HostName host{};  // Ours, which peers are told.
};

// Why a session ended, in more detail than an Error: the reason, which side decided, and both
// numbers (versions, sizes) where there are two. Text by describe() in reason.h.
enum class Reason : std::uint32_t;
struct FailureDetail {
  Reason reason{};           // Zero: nothing beyond the Error.
  bool from_peer = false;    // True: the peer decided; false: this side.
  std::uint64_t ours = 0;    // The number of the side that decided.
  std::uint64_t theirs = 0;  // The other side's number.
};

class SendMessage;
class RecvMessage;

// Events for the owner of a session. They come from inside stream events and on_timers(), and from
// inside post() and close() too (a buffer posted for a message that has arrived already is done at
// once). The owner may post, close or abort inside an event, but must not destroy the session
// there. From on_done() on the record is the owner's again; so are those still lent when the
// session fails, has closed or is aborted.
class SendOwner {
 public:
  virtual void on_ready(TimePoint now) = 0;  // The handshake of flow 0 is done: messages may flow.
  virtual void on_done(SendMessage& message) = 0;
  // The session has failed; every outstanding message is lost and no further event follows.
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

// The thing that a session's oldest message waits for.
enum class Awaited : std::uint8_t {
  kNothing,  // No message is out.
  kConnection,
  kPeerData,     // A receive: the sender has sent nothing of the message.
  kPeerReceive,  // A send: the receiver has posted no buffer.
  kNetwork,      // Bytes are under way.
  kApplication,  // A message has arrived, and no buffer is posted here.
};

// Why a peer takes no bytes.
enum class PeerTrouble : std::uint8_t {
  kSilent,      // Its host does not answer.
  kStandsStill  // Its host's kernel answers, its process does nothing.
};

// A flow that was lost and is up again. Ports are ours; 0: not known.
struct Redial {
  Duration lasted{};  // Since it stopped.
  std::uint16_t lost_port = 0;
  std::uint16_t port = 0;
  // Why it left a path that was worse than those of other flows; both zero: it did not.
  std::uint32_t timeouts = 0;
  std::uint32_t marked_percent = 0;

  bool has_left_bad_path() const { return timeouts != 0 || marked_percent != 0; }
};

// Rare events of a session's peer, for an operator.
class PathEvents {
 public:
  // Bytes have been waiting for the peer for `lasted`. Once each time.
  virtual void on_trouble(TimePoint, Endpoint, PeerTrouble, Duration /*lasted*/) {}
  // That trouble is over.
  virtual void on_trouble_over(TimePoint, Endpoint, PeerTrouble, Duration /*lasted*/) {}
  virtual void on_redialled(TimePoint, Endpoint, const Redial&) {}
  // A flow is up whose segments carry at most `segment_bytes`, since larger ones did not arrive.
  virtual void on_small_segments(TimePoint, Endpoint, std::uint32_t /*segment_bytes*/) {}

 protected:
  ~PathEvents() = default;
};

// Opens further streams to the same peer, like the first one (StreamSource).
class Dialer {
 public:
  virtual Result<Stream*> dial(TimePoint now, StreamEvents& events) = 0;
  // The same, with segments of at most `segment_bytes`: larger ones were lost on the last flows.
  virtual Result<Stream*> dial_small(TimePoint now, StreamEvents& events,
                                     std::uint32_t /*segment_bytes*/) {
    return dial(now, events);
  }
  virtual PathEvents* path_events() { return nullptr; }  // Null: not wanted.
  virtual Endpoint remote() const { return {}; }
  // Whether the peer has acknowledged something of another session after `since`. To be called
  // again at the next check: the first call asks.
  virtual bool is_peer_answering_since(TimePoint, TimePoint /*since*/) { return false; }
  // Whether a stream is left for a flow that the session can do without. Each session needs one,
  // and sessions still to come must find theirs.
  virtual bool has_spare() const { return true; }
  // The session wants on_timers() at that time. An earlier request stays in force.
  virtual void wake_at(TimePoint) {}
  // See StreamSource.
  virtual Endpoint listening() const { return {}; }
  virtual bool shares_nic() const { return false; }

 protected:
  ~Dialer() = default;
};

// The source of all streams.
class StreamSource {
 public:
  // A source without a limit for segments ignores that setting.
  virtual Result<Stream*> dial(TimePoint now, Endpoint remote, StreamEvents& events,
                               const DialSettings& settings) = 0;
  virtual PathEvents* path_events() { return nullptr; }
  // Whether, after one more dial, a stream is left for each session that may still come.
  virtual bool has_spare_stream() const = 0;
  // Address at which this process listens, as long as it lives.
  virtual Endpoint listening() const = 0;
  // Other processes of this host share the NIC: see DialSettings::peer_shares_nic.
  virtual bool shares_nic() const { return false; }

 protected:
  ~StreamSource() = default;
};

}  // namespace ztcp::msg
