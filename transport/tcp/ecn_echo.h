// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A receiver's reports of congestion marks: classic (RFC 3168 section 6.1.3) or accurate (RFC 9768
// section 3.2). Owned by a Receiver.
//
// Accurate: each segment carries the number of marked packets, modulo 8. One ACK answers a burst,
// which may have more marks than that, so an ACK after new marks carries the number of bytes as
// well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/tcp/ecn.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"
#include "transport/wire/tcp_options.h"

namespace ztcp::tcp {

class EcnEcho {
 public:
  // Number of marked packets that both ends begin with (RFC 9768 section 3.2.1).
  static constexpr std::uint32_t kFirstPackets = 5;

  // `came_with`: the codepoint of the peer's SYN or SYN-ACK. `answers`: the next segment is the ACK
  // of a SYN-ACK.
  void begin(EcnMode mode, wire::Ecn came_with, bool answers) {
    mode_ = mode;
    flags_ = {};
    is_echoing_ = false;
    bytes_ = {};
    told_bytes_ = 0;
    if (mode != EcnMode::kAccurate) return;
    packets_ = kFirstPackets + (came_with == wire::Ecn::kCongestion ? 1U : 0U);
    flags_ = wire::ace_flags(answers ? ace_of_codepoint(came_with) : packets_);
  }
  // The ACK of a SYN-ACK was sent.
  void end_handshake() {
    if (mode_ == EcnMode::kAccurate) flags_ = wire::ace_flags(packets_);
  }

  // Flags of each segment that is sent.
  wire::TcpFlags flags() const { return flags_; }
  // Whether the next bare ACK must carry option().
  bool has_report() const { return told_bytes_ != at(wire::Ecn::kCongestion); }
  wire::EcnBytes option() const {
    constexpr std::uint32_t kMask = 0xffffff;
    return {.ect0 = (at(wire::Ecn::kEct0) + 1) & kMask,
            .ce = at(wire::Ecn::kCongestion) & kMask,
            .ect1 = (at(wire::Ecn::kEct1) + 1) & kMask};
  }
  void on_option_sent() { told_bytes_ = at(wire::Ecn::kCongestion); }

  // An acceptable segment with payload. True: on_segment() must be called; nearly no segment is
  // marked.
  bool count(wire::Ecn ecn, std::uint32_t payload_bytes) {
    bytes_[static_cast<std::size_t>(ecn)] += payload_bytes;
    return ecn == wire::Ecn::kCongestion || is_echoing_;
  }
  // CWR first: it answers earlier marks.
  void on_segment(wire::Ecn ecn, wire::TcpFlags flags) {
    const bool is_marked = ecn == wire::Ecn::kCongestion;
    if (mode_ == EcnMode::kAccurate) {
      flags_ = wire::ace_flags(packets_ += is_marked ? 1 : 0);
    } else if (mode_ == EcnMode::kClassic) {
      is_echoing_ = is_marked || (is_echoing_ && !flags.has(wire::kCwr));
      flags_ = is_echoing_ ? wire::kEce : wire::TcpFlags{};
    }
    if (mode_ != EcnMode::kAccurate) on_option_sent();  // None is ever due.
  }

 private:
  std::uint32_t at(wire::Ecn ecn) const { return bytes_[static_cast<std::size_t>(ecn)]; }

  wire::TcpFlags flags_;
  EcnMode mode_ = EcnMode::kOff;
  bool is_echoing_ = false;
  std::uint32_t packets_ = kFirstPackets;
  std::uint32_t told_bytes_ = 0;          // Marked bytes in the latest option.
  std::array<std::uint32_t, 4> bytes_{};  // By codepoint.
};

}  // namespace ztcp::tcp
