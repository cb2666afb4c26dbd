// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Agreement on ECN in the handshake (RFC 3168 section 6.1.1). Owned by a Connection.
//
// A firewall may drop SYNs with these flags: the second repetition goes without them, and the
// connection without ECN (section 6.1.1.1). The first repetition still has them, since a SYN is
// also lost to congestion.
#pragma once

#include <cstdint>

#include "transport/wire/tcp_header.h"

namespace ztcp::tcp {

enum class EcnMode : std::uint8_t {
  kOff,
  kClassic,  // RFC 3168: ECE until CWR, one mark per round trip.
};

class EcnHandshake {
 public:
  void begin(bool is_wanted) {
    is_wanted_ = is_wanted;
    mode_ = EcnMode::kOff;
    tries_ = 0;
  }

  EcnMode mode() const { return mode_; }

  // Flags of the next SYN, and of the next SYN-ACK.
  wire::TcpFlags syn_flags() { return may_try() ? wire::kEce | wire::kCwr : wire::TcpFlags{}; }
  wire::TcpFlags syn_ack_flags() {
    return mode_ != EcnMode::kOff && may_try() ? wire::kEce : wire::TcpFlags{};
  }

  // A SYN of the peer, perhaps repeated; the latest counts.
  void take_syn(wire::TcpFlags flags) {
    const bool is_asked = flags.has(wire::kEce | wire::kCwr);
    mode_ = is_wanted_ && is_asked ? EcnMode::kClassic : EcnMode::kOff;
  }
  // A broken peer returns both flags as they were.
  void take_syn_ack(wire::TcpFlags flags) {
    const bool is_agreed = flags.has(wire::kEce) && !flags.has(wire::kCwr);
    mode_ = is_wanted_ && is_agreed ? EcnMode::kClassic : EcnMode::kOff;
  }
  // A simultaneous open goes without: each side has already sent its offer.
  void give_up() {
    is_wanted_ = false;
    mode_ = EcnMode::kOff;
  }

 private:
  static constexpr int kMostTries = 2;
  bool may_try() {
    if (is_wanted_ && tries_++ < kMostTries) return true;
    give_up();
    return false;
  }

  bool is_wanted_ = false;
  EcnMode mode_ = EcnMode::kOff;
  int tries_ = 0;
};

}  // namespace ztcp::tcp
