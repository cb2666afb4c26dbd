// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between a connection and the algorithm that says how fast it may send. The algorithm
// hears what happens and answers with a window; all else of RFC 5681 (what is lost, when to repeat,
// PRR during fast recovery, taking a window back) is the Sender's and Congestion's, for each
// algorithm alike.
//
// One object per connection, made in a place of the connection's own: no allocation, nothing to
// destroy. Nothing of it is called per packet: on_ack() once per ACK, of which peers of ours send
// one per burst.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "transport/core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class CongestionControl {
 public:
  // The answer, which Congestion keeps.
  struct Window {
    static constexpr std::uint32_t kMaxBytes = 1U << 30;
    std::uint32_t mss_bytes = 0;
    std::uint32_t cwnd_bytes = 0;
    std::uint32_t ssthresh_bytes = kMaxBytes;
    bool in_slow_start() const { return cwnd_bytes < ssthresh_bytes; }
  };

  // snd.una has moved, and no loss is being repaired by fast recovery.
  struct Ack {
    SeqNum ack;
    SeqNum snd_nxt;
    std::uint32_t acked_bytes = 0;
    bool window_limited = false;  // The window held data back since the last ACK; else the user was
                                  // the limit, or the peer's window.
    Duration rtt_sample{};        // Zero: this ACK gave none.
    Duration srtt{};
    TimePoint resumed{};  // When sending last began with nothing in flight: an idle time ended.
  };
  virtual void on_ack(TimePoint now, const Ack& ack, Window& window) = 0;

  // The losses of one window of data, however they were found: once. Returns ssthresh.
  virtual std::uint32_t on_loss(const Window& window) = 0;
  // The retransmission timer fired, perhaps again and again; on_loss() came before if the loss had
  // not been told. The window is Congestion's until the next ACK: a segment or so.
  virtual void on_timeout(SeqNum snd_nxt) = 0;

  // RFC 4015: undo() goes back to the latest save(), as if no on_loss() and on_timeout() had been.
  // The window itself is Congestion's to restore.
  virtual void save() = 0;
  virtual void undo() = 0;

  // What a window may be sent at, in percent of one per round trip. Asked once per round trip, or
  // when the window fell. These are Linux's.
  virtual std::uint32_t pacing_percent(const Window& window) const {
    return window.in_slow_start() ? 200 : 125;
  }

  struct Storage {
    alignas(std::max_align_t) std::array<std::byte, 256> bytes;
  };

 protected:
  ~CongestionControl() = default;
};

// How a Stack is told which one: makes one for a connection whose first byte has the number
// `first`.
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
