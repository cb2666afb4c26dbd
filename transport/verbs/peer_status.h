// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether the peer of a connection is alive. This class is the one place of the transport that
// decides it. Its evidence comes from three sides: the peer's close records and the ends of its TCP
// connections, which the control thread reads; events of our own device; and, while TCP to the peer
// is silent, answers of the peer's NIC (peer_probe.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/clock.h"
#include "core/result.h"

namespace ztcp::verbs {

// An event of the peer, or of our device.
enum class PeerEvent : std::uint8_t {
  kNone,
  kClosed,      // The peer closes the connection in order.
  kGivenUp,     // The peer can't go on, and says why.
  kDied,        // The peer's process ended without a close record.
  kDeviceLost,  // Our device has failed.
  // TCP to the peer is silent, which proves nothing about its process: its NIC is probed. The only
  // event that another may follow, kNone included.
  kSilent,
};

// A TCP connection to the peer that has ended, or was not established.
struct PathEnd {
  Error error;
  bool is_joined = false;  // Both ends had agreed that it belongs to the connection.
  bool is_cut = false;     // Closed by this end, or by the peer after it had said so.
  // How long the peer had sent nothing, and how long the kernel waits before it gives up.
  Duration silence{};
  Duration user_timeout{};
  bool may_redial = false;  // The connection is open, and its sender can dial again.
  bool is_last = false;     // No other path of the connection is left.
};

enum class PathVerdict : std::uint8_t {
  kOthersServe,  // Nothing follows for the peer: another path tells of it.
  kSilent,       // The last path has ended, and nothing says that the peer did.
  kAwaitRedial,  // The kernel has reset the last path; a living sender dials again.
  kDied,
};
PathVerdict judge(const PathEnd& ended);

class PeerStatus {
 public:
  // The action for a comm that makes no progress.
  enum class Advice : std::uint8_t { kContinue, kProbe, kFail };

  // --- The control thread ------------------------------------------------------------------------
  // The first event is kept.
  void report(PeerEvent event, Errc code, const std::string& text);
  void set_silent(bool is_silent);
  // No path to the peer is left, and nothing more can be told to it. Under the control thread's
  // lock.
  void report_unreachable() { is_unreachable_ = true; }
  bool is_unreachable() const { return is_unreachable_; }

  // --- Any thread --------------------------------------------------------------------------------
  PeerEvent event() const { return event_.load(std::memory_order_acquire); }
  // An event other than silence: it is final.
  bool has_ended() const {
    const PeerEvent now = event();
    return now != PeerEvent::kNone && now != PeerEvent::kSilent;
  }
  // Once has_ended().
  Errc code() const { return code_; }
  std::string text() const;
  const char* subject() const {
    return event() == PeerEvent::kDeviceLost ? "our device" : "the peer";
  }

  // --- The comm's thread -------------------------------------------------------------------------
  // `waits_for_peer`: the comm needs the peer to act, not only the NICs to complete work.
  // `may_arrive_late`: bytes may arrive after the peer's work is complete (iWARP).
  Advice advise(bool waits_for_peer, bool may_arrive_late, TimePoint now);

 private:
  std::mutex mutex_;
  std::atomic<PeerEvent> event_{PeerEvent::kNone};
  Errc code_ = Errc::kPeerClosed;
  std::string text_;
  bool is_unreachable_ = false;
  // When the comm's thread first saw the final event. Work that the NIC has taken may still end.
  TimePoint seen_at_ = kNever;
};

}  // namespace ztcp::verbs
