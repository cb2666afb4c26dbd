// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The peer's reports of congestion marks on this sender's segments (RFC 3168 section 6.1.2, RFC
// 9768 section 3.2), and how often the sender reacts. Owned by a Sender.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "transport/tcp/ecn.h"
#include "transport/tcp/ecn_echo.h"
#include "transport/tcp/seq_num.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"
#include "transport/wire/tcp_options.h"

namespace ztcp::tcp {

class EcnFeedback {
 public:
  // `is_changed`: see EcnHandshake. Nothing is sent as capable then.
  void begin(EcnMode mode, bool is_changed) {
    mode_ = is_changed ? EcnMode::kOff : mode;
    codepoint_ = mode_ == EcnMode::kOff ? wire::Ecn::kNotCapable : wire::Ecn::kEct0;
    cwr_ = {};
    is_reduced_ = has_counters_ = false;
    marked_windows_ = 0;
    ace_ = EcnEcho::kFirstPackets;
    ce_bytes_ = 0;
  }

  bool is_on() const { return mode_ != EcnMode::kOff; }
  // Reports tell how many bytes were marked.
  bool is_accurate() const { return mode_ == EcnMode::kAccurate; }
  // For new data. Retransmissions, bare ACKs and probes are Not-ECT (RFC 3168 sections 6.1.4 to
  // 6.1.6).
  wire::Ecn codepoint() const { return codepoint_; }
  // CWR in the first new data after a reduction. A super-segment repeats it in each packet, which
  // at worst takes back a mark of the same super-segment.
  wire::TcpFlags take_cwr() { return std::exchange(cwr_, {}); }

  struct Report {
    wire::TcpFlags flags{};
    bool pure = true;  // No payload.
    SeqNum una;        // Everything below is acknowledged.
    const std::optional<wire::EcnBytes>* counters = nullptr;
    std::uint32_t delivered_bytes = 0;  // By this ACK.
    std::uint32_t mss_bytes = 0;
  };
  // Returns the bytes that an ACK reports as marked; classic ECN reports one of them at least.
  std::uint32_t take(const Report& report) {
    const std::uint32_t ce_bytes = marked_bytes(report);
    if (ce_bytes < report.delivered_bytes) marked_windows_ = 0;
    return ce_bytes;
  }

  // Whether this window of data has not yet reduced the congestion window.
  bool may_reduce() const { return !is_reduced_; }
  // The congestion window was reduced, by marks or by a loss, while the bytes below `end` were in
  // flight: their marks report the same congestion.
  void on_reduced(SeqNum end) {
    if (!is_on()) return;
    is_reduced_ = true;
    reduced_end_ = end;
    if (mode_ == EcnMode::kClassic) cwr_ = wire::kCwr;
  }

  // Marks have reduced the window. A queue delays packets before a switch marks them; if each byte
  // of many windows is marked and none is delayed, something on the path sets or repeats marks, or
  // the peer does. False: the connection goes on without ECN.
  bool is_believable(TimePoint now, bool is_delayed) {
    constexpr std::uint32_t kMostWindows = 64;
    constexpr Duration kMostTime = std::chrono::milliseconds(100);
    if (is_delayed || marked_windows_ == 0) {
      marked_windows_ = is_delayed ? 0 : 1;
      marked_since_ = now;
      return true;
    }
    if (++marked_windows_ < kMostWindows || now - marked_since_ < kMostTime) return true;
    begin(EcnMode::kOff, /*is_changed=*/false);
    return false;
  }

 private:
  std::uint32_t marked_bytes(const Report& report) {
    if (is_reduced_ && report.una.after(reduced_end_)) is_reduced_ = false;
    if (mode_ == EcnMode::kClassic) {
      const bool is_marked = report.flags.has(wire::kEce);
      return is_marked ? std::max<std::uint32_t>(report.delivered_bytes, 1) : 0;
    }
    return take_accurate(report);
  }

  // ACE is read from bare ACKs alone: NICs that cut super-segments clear CWR in all pieces but one
  // (RFC 3168's rule), and a segment of bulk repeats an old ACK. An ACK that delivers nothing may
  // have been overtaken by a later one.
  std::uint32_t take_accurate(const Report& report) {
    std::uint32_t by_packets = 0;
    if (report.pure && report.delivered_bytes > 0) {
      const unsigned ace = wire::ace_of(report.flags);
      by_packets = std::min(((ace - ace_) & 7U) * report.mss_bytes, report.delivered_bytes);
      ace_ = ace;
    }
    if (report.counters == nullptr || !report.counters->has_value())
      return has_counters_ ? 0 : by_packets;
    constexpr std::uint32_t kMask = 0xffffff;
    has_counters_ = true;
    const std::uint32_t more = ((*report.counters)->ce - ce_bytes_) & kMask;
    if (more > kMask / 2) return 0;  // Overtaken.
    ce_bytes_ += more;
    return more;
  }

  EcnMode mode_ = EcnMode::kOff;
  wire::Ecn codepoint_ = wire::Ecn::kNotCapable;
  wire::TcpFlags cwr_;
  bool is_reduced_ = false;
  bool has_counters_ = false;  // The peer sends counters of bytes.
  unsigned ace_ = EcnEcho::kFirstPackets;
  std::uint32_t ce_bytes_ = 0;
  SeqNum reduced_end_;
  std::uint32_t marked_windows_ = 0;  // In a row, each byte marked and none delayed.
  TimePoint marked_since_{};
};

}  // namespace ztcp::tcp
