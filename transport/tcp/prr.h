// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Proportional Rate Reduction (RFC 6937, RFC 9937): how many bytes an ACK releases during fast
// recovery, so that the window reaches ssthresh smoothly. Owned by a Congestion.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ztcp::tcp {

class Prr {
 public:
  // `flight_bytes` is RecoverFS: the bytes outstanding when recovery began.
  void begin(std::uint32_t flight_bytes) {
    recover_flight_bytes_ = std::max<std::uint64_t>(flight_bytes, 1);
    delivered_bytes_ = out_bytes_ = 0;
  }

  void on_sent(std::uint32_t bytes) { out_bytes_ += bytes; }

  // Section 3.1 with the slow start reduction bound while recovery makes progress, the
  // conservative bound otherwise. Returns the congestion window for this ACK.
  std::uint32_t on_ack(std::uint32_t delivered_bytes, bool made_progress, std::uint32_t pipe_bytes,
                       std::uint32_t ssthresh_bytes, std::uint32_t mss_bytes) {
    delivered_bytes_ += delivered_bytes;
    std::int64_t send = 0;
    if (pipe_bytes > ssthresh_bytes) {
      const std::uint64_t share =
          (delivered_bytes_ * ssthresh_bytes + recover_flight_bytes_ - 1) / recover_flight_bytes_;
      send = static_cast<std::int64_t>(share) - static_cast<std::int64_t>(out_bytes_);
    } else {
      // RFC 9937 section 6.2: as many bytes as this ACK delivered may be sent, even if the first
      // retransmission has used up the bytes delivered before.
      const std::int64_t limit =
          std::max<std::int64_t>(
              static_cast<std::int64_t>(delivered_bytes_) - static_cast<std::int64_t>(out_bytes_),
              delivered_bytes) +
          (made_progress ? mss_bytes : 0);
      send = std::min<std::int64_t>(std::int64_t{ssthresh_bytes} - pipe_bytes, limit);
    }
    // The first retransmission is always sent (section 3.1: PRR does not hold back fast
    // retransmit).
    if (out_bytes_ == 0) send = std::max<std::int64_t>(send, mss_bytes);
    return pipe_bytes + static_cast<std::uint32_t>(std::max<std::int64_t>(send, 0));
  }

 private:
  std::uint64_t recover_flight_bytes_ = 1;
  std::uint64_t delivered_bytes_ = 0;
  std::uint64_t out_bytes_ = 0;
};

}  // namespace ztcp::tcp
