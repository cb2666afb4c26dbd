// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The peer's reports of congestion marks on this sender's segments, and how often the sender reacts
// (RFC 3168 section 6.1.2). Owned by a Sender.
#pragma once

#include <cstdint>
#include <utility>

#include "transport/tcp/ecn.h"
#include "transport/tcp/seq_num.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::tcp {

class EcnFeedback {
 public:
  void begin(EcnMode mode) {
    mode_ = mode;
    codepoint_ = mode == EcnMode::kOff ? wire::Ecn::kNotCapable : wire::Ecn::kEct0;
    cwr_ = {};
    is_reduced_ = false;
  }

  bool is_on() const { return mode_ != EcnMode::kOff; }
  // For new data. Retransmissions, bare ACKs and probes are Not-ECT (sections 6.1.4 to 6.1.6).
  wire::Ecn codepoint() const { return codepoint_; }
  // CWR in the first new data after a reduction. A super-segment repeats it in each packet, which
  // at worst takes back a mark of the same super-segment.
  wire::TcpFlags take_cwr() { return std::exchange(cwr_, {}); }

  // An ACK of everything below `una`. True: it reports a mark.
  bool take(wire::TcpFlags flags, SeqNum una) {
    if (is_reduced_ && una.after(reduced_end_)) is_reduced_ = false;
    return flags.has(wire::kEce);
  }

  // Whether this window of data has not yet reduced the congestion window.
  bool may_reduce() const { return !is_reduced_; }
  // The congestion window was reduced, by marks or by a loss, while the bytes below `end` were in
  // flight: their marks report the same congestion.
  void on_reduced(SeqNum end) {
    if (!is_on()) return;
    is_reduced_ = true;
    reduced_end_ = end;
    cwr_ = wire::kCwr;
  }

 private:
  EcnMode mode_ = EcnMode::kOff;
  wire::Ecn codepoint_ = wire::Ecn::kNotCapable;
  wire::TcpFlags cwr_;
  bool is_reduced_ = false;
  SeqNum reduced_end_;
};

}  // namespace ztcp::tcp
