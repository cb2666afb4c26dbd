// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between a connection and its congestion control algorithm. The algorithm is told events
// and answers with a window and a rate; detecting losses, retransmission and undoing a reduction
// are the same for every algorithm and lie in Sender and Congestion. So does PRR, except for
// algorithms that are rate based.
//
// One object per connection, constructed inside the connection: no allocation, and trivially
// destructible. Nothing is called per packet: on_ack() is called once per ACK, and our peers send
// one ACK per burst.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <ratio>
#include <type_traits>

#include "core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

// The path's rate as one ACK shows it (delivery_rate.h). Only rate-based algorithms get it.
struct RateSample {
  Duration interval{};                      // Zero: no sample; then only delivered_bytes is set.
  std::uint64_t bytes = 0;                  // Delivered in the interval.
  std::uint64_t delivered_bytes = 0;        // Since the beginning.
  std::uint64_t prior_delivered_bytes = 0;  // The same when the sampled segment was sent.
  std::uint32_t lost_bytes = 0;             // Deemed lost since the sampled segment was sent,
  std::uint32_t sent_flight_bytes = 0;      // and in flight then.
  bool peer_limited = false;                // The peer's window limited the rate.
  bool app_limited = false;                 // The user's data limited the rate.
};

class CongestionControl {
 public:
  // The algorithm's output, stored by Congestion.
  struct Window {
    static constexpr std::uint32_t kMaxBytes = 1U << 30;
    std::uint32_t mss_bytes = 0;
    std::uint32_t cwnd_bytes = 0;
    std::uint32_t ssthresh_bytes = kMaxBytes;
    // The algorithm models the path's rate. It gets each ACK, in fast recovery too, with a
    // RateSample, and its window holds there, instead of PRR's.
    bool rate_based = false;
    std::uint8_t changes = 0;  // How often an algorithm that chooses among others has changed.
    bool in_slow_start() const { return cwnd_bytes < ssthresh_bytes; }
  };

  // snd.una has moved, and fast recovery is not under way. Rate based: something was delivered or
  // lost.
  struct Ack {
    SeqNum ack;
    SeqNum snd_nxt;
    std::uint32_t acked_bytes = 0;
    std::uint32_t ce_bytes = 0;   // Delivered with congestion marks (ECN), by the peer's report.
    bool window_limited = false;  // The window has held back data since the last ACK; else the
                                  // user's data or the peer's window was the limit.
    Duration rtt_sample{};        // Zero: this ACK gave no sample.
    Duration srtt{};
    Duration min_rtt{};
    TimePoint resumed{};  // When sending last resumed with nothing in flight, after idle time.
    std::uint32_t delivered_bytes = 0;  // By this ACK, cumulatively or selectively.
    std::uint32_t lost_bytes = 0;       // Deemed lost since the last call.
    std::uint32_t flight_bytes = 0;     // After this ACK.
    bool in_recovery = false;           // Losses or a timeout are being repaired.
    RateSample rate{};
  };
  // The connection begins, with the initial window.
  virtual void begin(Window&) {}
  // Sending resumes with nothing in flight.
  virtual void on_restart(TimePoint, Window&) {}
  virtual void on_ack(TimePoint now, const Ack& ack, Window& window) = 0;

  // Called once for the losses of one window of data, however they were detected. Returns ssthresh,
  // which has no meaning for a rate-based algorithm.
  virtual std::uint32_t on_loss(const Window& window) = 0;
  // Called for congestion marks (ECN) outside fast recovery, at most once per window of data and
  // not in a window that losses have reduced; on_ack() of the same ACK came before. Returns
  // ssthresh, which becomes the window. RFC 3168 section 6.1.2 wants the answer to a loss.
  virtual std::uint32_t on_mark(const Window& window) { return on_loss(window); }
  // The retransmission timer fired, perhaps repeatedly; on_loss() came before, unless the loss had
  // already been reported. Congestion sets the window, to about a segment, until the next ACK.
  virtual void on_timeout(SeqNum snd_nxt) = 0;

  // RFC 4015: undo() goes back to the latest save(), as if no on_loss() and on_timeout() had been.
  // Congestion restores the window itself.
  virtual void save() = 0;
  virtual void undo() = 0;

  // Sending rate in bytes per second; 0: not paced. Read once per round trip, or when the window
  // fell; of a rate-based algorithm after each ACK. The percentages are Linux's.
  virtual std::uint64_t pacing_rate(const Window& window, Duration srtt) const {
    if (srtt <= Duration::zero()) return 0;
    const std::uint64_t per_trip =
        std::uint64_t{window.cwnd_bytes} * (window.in_slow_start() ? 200 : 125) / 100;
    return per_trip * std::nano::den / static_cast<std::uint64_t>(srtt.count());
  }

  // For statistics and logs: of one that chooses among others, the chosen one.
  virtual const char* name() const { return ""; }

  struct Storage {
    alignas(std::max_align_t) std::array<std::byte, 1024> bytes;
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
