// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between a connection and its congestion control algorithm. The algorithm is told events
// and answers with a window; the rest of RFC 5681 (detecting losses, retransmission, PRR during
// fast recovery, undoing a reduction) is the same for every algorithm and lies in Sender and
// Congestion.
//
// One object per connection, constructed inside the connection: no allocation, and trivially
// destructible. Nothing is called per packet: on_ack() is called once per ACK, and our peers send
// one ACK per burst.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class CongestionControl {
 public:
  // The algorithm's output, stored by Congestion.
  struct Window {
    static constexpr std::uint32_t kMaxBytes = 1U << 30;
    std::uint32_t mss_bytes = 0;
    std::uint32_t cwnd_bytes = 0;
    std::uint32_t ssthresh_bytes = kMaxBytes;
    bool in_slow_start() const { return cwnd_bytes < ssthresh_bytes; }
  };

  // snd.una has moved, and fast recovery is not under way.
  struct Ack {
    SeqNum ack;
    SeqNum snd_nxt;
    std::uint32_t acked_bytes = 0;
    bool window_limited = false;  // The window has held back data since the last ACK; else the
                                  // user's data or the peer's window was the limit.
    Duration rtt_sample{};        // Zero: this ACK gave no sample.
    Duration srtt{};
    TimePoint resumed{};  // When sending last resumed with nothing in flight, after idle time.
  };
  virtual void on_ack(TimePoint now, const Ack& ack, Window& window) = 0;

  // Called once for the losses of one window of data, however they were detected. Returns ssthresh.
  virtual std::uint32_t on_loss(const Window& window) = 0;
  // The retransmission timer fired, perhaps repeatedly; on_loss() came before, unless the loss had
  // already been reported. Congestion sets the window, to about a segment, until the next ACK.
  virtual void on_timeout(SeqNum snd_nxt) = 0;

  // RFC 4015: undo() goes back to the latest save(), as if no on_loss() and on_timeout() had been.
  // Congestion restores the window itself.
  virtual void save() = 0;
  virtual void undo() = 0;

  // Sending rate, in percent of one window per round trip. Read once per round trip, or when the
  // window fell. The values are Linux's.
  virtual std::uint32_t pacing_percent(const Window& window) const {
    return window.in_slow_start() ? 200 : 125;
  }

  struct Storage {
    alignas(std::max_align_t) std::array<std::byte, 256> bytes;
  };

 protected:
  ~CongestionControl() = default;
};

// Constructs the algorithm for a connection whose first byte has the number `first`; a Stack is
// configured with one of these functions.
using MakeCongestionControl = CongestionControl& (*)(CongestionControl::Storage& storage,
                                                     SeqNum first);

template <class Algorithm>
CongestionControl& make_congestion_control(CongestionControl::Storage& storage, SeqNum first) {
  static_assert(sizeof(Algorithm) <= sizeof storage);
  static_assert(alignof(Algorithm) <= alignof(decltype(storage)));
  static_assert(std::is_trivially_destructible_v<Algorithm>);
  return *new (&storage) Algorithm(first);
}

}  // namespace ztcp::tcp
