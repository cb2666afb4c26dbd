// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DCTCP (RFC 8257): reduces the window by the share of bytes that switches marked, so that queues
// stay near a low marking threshold while the line stays full. For networks whose switches mark
// that early, and peers that report marked bytes (RFC 9768).
//
// Three additions serve many senders to one receiver, whose windows of one segment each can already
// overfill a shallow queue: the window may fall below a segment, and then segments are short; a
// sender that resumes after idle time begins with the window of the last reduction, since the one
// of the last, emptier round trips would meet those of all others; and the initial window of large
// segments is RFC 6928's.
#pragma once

#include <cstdint>

#include "transport/tcp/congestion_control.h"

namespace ztcp::tcp {

class Dctcp final : public CongestionControl {
 public:
  explicit Dctcp(SeqNum first) : round_end_(first) {}

  void begin(Window& window) override;
  void on_restart(TimePoint now, Window& window) override;
  void on_ack(TimePoint now, const Ack& ack, Window& window) override;
  std::uint32_t on_loss(const Window& window) override;
  std::uint32_t on_mark(const Window& window) override;
  void on_timeout(SeqNum) override {}
  // Losses leave the share of marked bytes as it is.
  void save() override {}
  void undo() override {}
  const char* name() const override { return "dctcp"; }

  double alpha() const { return alpha_; }

 private:
  static constexpr double kGain = 1.0 / 16;  // Section 4.2.

  double alpha_ = 1;  // Average share of marked bytes. 1: the first mark halves the window.
  SeqNum round_end_;
  // In this round.
  std::uint64_t acked_bytes_ = 0;
  std::uint64_t ce_bytes_ = 0;
  TimePoint last_ack_{};
  Duration srtt_{};
};

}  // namespace ztcp::tcp
