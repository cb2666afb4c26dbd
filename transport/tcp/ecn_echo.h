// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A receiver's reports of congestion marks (RFC 3168 section 6.1.3). Owned by a
// Receiver.
#pragma once

#include <cstdint>

#include "transport/tcp/ecn.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::tcp {

class EcnEcho {
 public:
  void begin(EcnMode mode) {
    mode_ = mode;
    flags_ = {};
  }

  // Flags of each segment that is sent.
  wire::TcpFlags flags() const { return flags_; }

  // Whether on_segment() must be called: in nearly all segments nothing is marked.
  bool concerns(wire::Ecn ecn) const {
    return ecn == wire::Ecn::kCongestion || flags_ != wire::TcpFlags{};
  }
  // A segment with payload, acceptable. CWR first: it answers earlier marks.
  void on_segment(wire::Ecn ecn, wire::TcpFlags flags) {
    if (mode_ == EcnMode::kOff) return;
    if (flags.has(wire::kCwr)) flags_ = {};
    if (ecn == wire::Ecn::kCongestion) flags_ = wire::kEce;
  }

 private:
  EcnMode mode_ = EcnMode::kOff;
  wire::TcpFlags flags_;
};

}  // namespace ztcp::tcp
