// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/receiver.h"

#include <algorithm>
#include <utility>

namespace ztcp::tcp {

Receiver::Window Receiver::choose_window(std::uint32_t bytes, std::uint32_t most_bytes) {
  constexpr std::uint8_t kLeastScale = 8;
  constexpr std::uint8_t kMostScale = 10;
  constexpr std::uint32_t kMostField = 65535;
  Window window;
  window.scale = kLeastScale;
  most_bytes = std::max(most_bytes, bytes);
  while (window.scale < kMostScale && most_bytes >> window.scale > kMostField) ++window.scale;
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
  ecn_.begin(EcnMode::kOff, wire::Ecn::kNotCapable, /*answers=*/false);
  duplicate_count_ = 0;
  acks_owed_ = 0;
  received_bytes_ = 0;
  out_of_order_segments_ = duplicate_segments_ = 0;
}

void Receiver::clear() {
  reassembly_.clear();
  reassembly_.frames().take_back(std::exchange(promised_bytes_, 0));
  next_measure_ = kNever;
}

void Receiver::begin_measuring(TimePoint now, std::uint32_t most_bytes) {
  most_window_bytes_ = most_bytes;
  measured_ = now;
  measured_bytes_ = received_bytes_;
  next_measure_ = window_.bytes < most_bytes ? now + kMeasureInterval : kNever;
}

void Receiver::measure(TimePoint now, Duration round_trip) {
  const Duration interval = std::max(round_trip, kMeasureInterval);
  const Duration span = now - measured_;
  const std::uint64_t came = received_bytes_ - measured_bytes_;
  measured_ = now;
  measured_bytes_ = received_bytes_;
  next_measure_ = now + interval;
  // After a pause the bytes don't show the rate per round trip.
  if (round_trip <= Duration::zero() || span > 4 * interval) return;
  const double each_trip = static_cast<double>(came) * static_cast<double>(round_trip.count()) /
                           static_cast<double>(std::max(span, Duration(1)).count());
  const double wanted = std::min(2 * each_trip, static_cast<double>(most_window_bytes_));
  if (wanted <= window_.bytes) return;
  const std::uint32_t more = static_cast<std::uint32_t>(wanted) - window_.bytes;
  const std::uint32_t granted = reassembly_.frames().promise(more);
  promised_bytes_ += granted;
  const std::uint32_t field =
      std::min<std::uint32_t>((window_.bytes + granted) >> window_.scale, 65535);
  window_.field = static_cast<std::uint16_t>(field);
  window_.bytes = std::max(window_.bytes, field << window_.scale);
  if (window_.bytes + (1U << window_.scale) > most_window_bytes_) next_measure_ = kNever;
}

void Receiver::take_reports(wire::TcpOptions& options) {
  std::size_t left = wire::kMaxTcpOptionBytes;
  if (options.timestamps) left -= wire::kTimestampOptionBytes;
  // Beside timestamps three blocks fit (RFC 2018 section 3).
  const std::size_t most = options.timestamps ? wire::kMaxSackBlocks - 1 : wire::kMaxSackBlocks;
  options.sack_count = take_sack_blocks(std::span(options.sack).first(most));
  if (options.sack_count > 0) left -= 4 + std::size_t{8} * options.sack_count;
  if (!ecn_.has_report() || left < wire::kShortEcnOptionBytes) return;
  options.ecn_bytes = ecn_.option();
  ecn_.on_option_sent();
}

std::uint8_t Receiver::take_sack_blocks(std::span<wire::SackBlock> out) {
  if (!sack_) return 0;
  std::size_t count = 0;
  wire::SackBlock duplicate;
  if (duplicate_count_ > 0) {
    // The oldest first: it may end the peer's recovery.
    out[count++] = duplicate = duplicates_[0];
    std::copy(duplicates_.begin() + 1, duplicates_.begin() + duplicate_count_, duplicates_.begin());
    --duplicate_count_;
  }
  count += reassembly_.take_sack_blocks(out.subspan(count), duplicate);
  // This ACK is the last one owed.
  if (duplicate_count_ == 0 && !reassembly_.has_unreported()) acks_owed_ = std::min(acks_owed_, 1U);
  return static_cast<std::uint8_t>(count);
}

}  // namespace ztcp::tcp
