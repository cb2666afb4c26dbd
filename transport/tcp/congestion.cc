// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/congestion.h"

#include <algorithm>

namespace ztcp::tcp {

void Congestion::begin(MakeCongestionControl make, std::uint32_t mss_bytes,
                       std::uint32_t initial_segments, SeqNum first) {
  window_ = {.mss_bytes = mss_bytes, .cwnd_bytes = mss_bytes * initial_segments};
  algorithm_ = &make(storage_, first);
  resumed_ = {};
  algorithm_->begin(window_);
}

void Congestion::save() {
  saved_window_ = window_;
  algorithm_->save();
}

void Congestion::enter_recovery(std::uint32_t flight_bytes) {
  save();
  reduce();
  prr_.begin(flight_bytes);
}

void Congestion::on_timeout(bool first, SeqNum snd_nxt, std::uint32_t flight_bytes) {
  if (first) {
    save();
    reduce();
  }
  algorithm_->on_timeout(snd_nxt);
  window_.cwnd_bytes = flight_bytes + window_.mss_bytes;
}

void Congestion::on_repaired_loss() {
  reduce();
  leave_recovery();
}

void Congestion::undo() {
  window_.cwnd_bytes = std::max(window_.cwnd_bytes, saved_window_.cwnd_bytes);
  window_.ssthresh_bytes = saved_window_.ssthresh_bytes;
  algorithm_->undo();
}

}  // namespace ztcp::tcp
