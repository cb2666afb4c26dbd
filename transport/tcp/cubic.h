// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// CUBIC (RFC 9438) with HyStart++ (RFC 9406): the default algorithm.
#pragma once

#include <cstdint>

#include "transport/tcp/congestion_control.h"
#include "transport/tcp/cubic_curve.h"
#include "transport/tcp/hystart.h"

namespace ztcp::tcp {

class Cubic final : public CongestionControl {
 public:
  explicit Cubic(SeqNum first) { hystart_.begin(first); }

  void on_ack(TimePoint now, const Ack& ack, Window& window) override;
  std::uint32_t on_loss(const Window& window) override;
  std::uint32_t on_mark(const Window& window) override;
  void on_timeout(SeqNum snd_nxt) override;
  void save() override { saved_curve_ = curve_; }
  void undo() override { curve_ = saved_curve_; }
  const char* name() const override { return "cubic"; }

 private:
  HyStart hystart_;
  CubicCurve curve_;
  CubicCurve saved_curve_;
};

}  // namespace ztcp::tcp
