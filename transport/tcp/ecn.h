// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Agreement on ECN in the handshake: accurate ECN (RFC 9768 section 3.1), else classic ECN (RFC
// 3168 section 6.1.1). Owned by a Connection.
//
// A firewall may drop SYNs with these flags: the second repetition goes without them, and the
// connection without ECN. The first repetition still has them, since a SYN is also lost to
// congestion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::tcp {

enum class EcnMode : std::uint8_t {
  kOff,
  kClassic,   // RFC 3168: ECE until CWR, one mark per round trip.
  kAccurate,  // RFC 9768: counters of marked packets and bytes.
};

// RFC 9768 section 3.1.1 and 3.2.2.1: ACE in a SYN-ACK, and in the ACK of a SYN-ACK, is the
// codepoint that the acknowledged packet arrived with.
constexpr unsigned ace_of_codepoint(wire::Ecn ecn) {
  constexpr std::array<unsigned, 4> kAce = {2, 3, 4, 6};
  return kAce[static_cast<std::size_t>(ecn)];
}

class EcnHandshake {
 public:
  void begin(bool is_wanted) {
    is_wanted_ = is_wanted;
    mode_ = EcnMode::kOff;
    came_with_ = wire::Ecn::kNotCapable;
    is_changed_ = false;
    tries_ = 0;
  }

  EcnMode mode() const { return mode_; }
  // The codepoint of the peer's SYN or SYN-ACK. Peers send Not-ECT, so another was changed.
  wire::Ecn came_with() const { return came_with_; }
  // The path changed the codepoint of our SYN or SYN-ACK, or took a flag from the last ACK: reports
  // of marks can't be believed (RFC 9768 section 3.2.2.3).
  bool is_changed() const { return is_changed_; }

  // Flags of the next SYN, and of the next SYN-ACK.
  wire::TcpFlags syn_flags() { return may_try() ? wire::ace_flags(7) : wire::TcpFlags{}; }
  wire::TcpFlags syn_ack_flags() {
    if (mode_ == EcnMode::kOff || !may_try()) return {};
    return mode_ == EcnMode::kClassic ? wire::kEce : wire::ace_flags(ace_of_codepoint(came_with_));
  }

  // A SYN of the peer, perhaps repeated; the latest counts. Flags that are not defined yet ask for
  // accurate ECN or its successor.
  void take_syn(wire::TcpFlags flags, wire::Ecn ecn) {
    came_with_ = ecn;
    const unsigned ace = wire::ace_of(flags);
    constexpr unsigned kClassicSyn = 3;
    if (!is_wanted_ || ace == 0)
      mode_ = EcnMode::kOff;
    else
      mode_ = ace == kClassicSyn ? EcnMode::kClassic : EcnMode::kAccurate;
  }
  void take_syn_ack(wire::TcpFlags flags, wire::Ecn ecn) {
    came_with_ = ecn;
    mode_ = is_wanted_ ? mode_of_syn_ack(wire::ace_of(flags)) : EcnMode::kOff;
    is_changed_ = mode_ == EcnMode::kAccurate &&
                  wire::ace_of(flags) != ace_of_codepoint(wire::Ecn::kNotCapable);
  }
  // The ACK of our SYN-ACK. Values without a meaning are those of later segments, which may
  // overtake it.
  void take_last_ack(wire::TcpFlags flags) {
    const unsigned ace = wire::ace_of(flags);
    is_changed_ = mode_ == EcnMode::kAccurate && (ace == 0 || ace == 3 || ace == 4 || ace == 6);
  }
  // A simultaneous open goes without: each side has already sent its offer.
  void give_up() {
    is_wanted_ = false;
    mode_ = EcnMode::kOff;
  }

 private:
  // RFC 9768 table 2. 7: a broken peer returns the flags as they were.
  static EcnMode mode_of_syn_ack(unsigned ace) {
    if (ace == 0 || ace == 7) return EcnMode::kOff;
    return ace == 1 || ace == 5 ? EcnMode::kClassic : EcnMode::kAccurate;
  }
  static constexpr int kMostTries = 2;
  bool may_try() {
    if (is_wanted_ && tries_++ < kMostTries) return true;
    give_up();
    return false;
  }

  bool is_wanted_ = false;
  EcnMode mode_ = EcnMode::kOff;
  wire::Ecn came_with_ = wire::Ecn::kNotCapable;
  bool is_changed_ = false;
  int tries_ = 0;
};

}  // namespace ztcp::tcp
