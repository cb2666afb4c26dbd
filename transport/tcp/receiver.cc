// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/receiver.h"

#include <algorithm>

namespace ztcp::tcp {

Receiver::Window Receiver::choose_window(std::uint32_t bytes) {
  constexpr std::uint8_t kLeastScale = 8;
  constexpr std::uint8_t kMostScale = 10;
  constexpr std::uint32_t kMostField = 65535;
  Window window;
  window.scale = kLeastScale;
  while (window.scale < kMostScale && bytes >> window.scale > kMostField) ++window.scale;
  const std::uint32_t field = std::clamp<std::uint32_t>(bytes >> window.scale, 1, kMostField);
  window.field = static_cast<std::uint16_t>(field);
  window.bytes = field << window.scale;
  return window;
}

void Receiver::begin(TimePoint now, const Terms& terms) {
  rcv_nxt_ = last_ack_sent_ = terms.next;
  window_ = terms.window;
  timestamps_ = terms.timestamps;
  ts_recent_ = terms.timestamp;
  ts_recent_time_ = now;
  sack_ = terms.sack;
  ack_due_ = fin_known_ = false;
  duplicate_count_ = 0;
  acks_owed_ = 0;
  received_bytes_ = 0;
  out_of_order_segments_ = duplicate_segments_ = 0;
}

std::uint8_t Receiver::take_sack_blocks(std::span<wire::SackBlock> out) {
  if (!sack_) return 0;
  std::size_t count = 0;
  wire::SackBlock duplicate;
  if (duplicate_count_ > 0) {
    // The oldest first: it may be what ends the peer's recovery.
    out[count++] = duplicate = duplicates_[0];
    std::copy(duplicates_.begin() + 1, duplicates_.begin() + duplicate_count_, duplicates_.begin());
    --duplicate_count_;
  }
  count += reassembly_.take_sack_blocks(out.subspan(count), duplicate);
  if (duplicate_count_ == 0 && !reassembly_.has_unreported()) acks_owed_ = 0;
  return static_cast<std::uint8_t>(count);
}

}  // namespace ztcp::tcp
