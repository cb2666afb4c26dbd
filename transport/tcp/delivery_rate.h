// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How fast the path delivers (draft-ietf-ccwg-bbr section 4.5): each ACK gives one sample, the
// bytes delivered since the newest acknowledged segment was sent, and the time that took. Owned by
// a Sender; used only for an algorithm that is rate based (congestion_control.h).
//
// The draft stores its state with each segment. Here it is stored once per sixteenth of a round
// trip, in a ring: a segment takes the latest state that is not newer than itself. A sample then
// covers up to a sixteenth more, and a SentRecord stays as small as it is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/congestion_control.h"
#include "transport/tcp/sack_scoreboard.h"

namespace ztcp::tcp {

class DeliveryRate {
 public:
  // The connection begins, or its algorithm becomes rate based.
  void begin(TimePoint now) {
    newest_ = oldest_ = 0;
    delivered_bytes_ = limited_until_bytes_ = peer_limited_until_bytes_ = 0;
    delivered_at_ = first_sent_ = now;
  }

  // `flight_bytes` and `lost_bytes` (of all time) include this transmission of `bytes`.
  void on_sent(TimePoint now, std::uint32_t bytes, std::uint32_t flight_bytes,
               std::uint64_t lost_bytes, Duration srtt) {
    if (flight_bytes <= bytes) first_sent_ = delivered_at_ = now;
    if (newest_ != oldest_) {
      State& last = states_[(newest_ - 1) % kStates];
      // A full ring keeps its old states, so that no ACK is without a sample.
      if (last.sent == now || now - last.sent < srtt / kPerRoundTrip ||
          newest_ - oldest_ == kStates) {
        last.flight_bytes = std::max(last.flight_bytes, flight_bytes);
        return;
      }
    }
    states_[newest_++ % kStates] = {.sent = now,
                                    .delivered_at = delivered_at_,
                                    .first_sent = first_sent_,
                                    .delivered_bytes = delivered_bytes_,
                                    .lost_bytes = lost_bytes,
                                    .flight_bytes = flight_bytes,
                                    .peer_limited = peer_limited_until_bytes_ > delivered_bytes_,
                                    .app_limited = limited_until_bytes_ != 0};
  }

  // The user has nothing more to send, and the window has room.
  void on_app_limited(std::uint32_t flight_bytes) {
    limited_until_bytes_ = std::max<std::uint64_t>(delivered_bytes_ + flight_bytes, 1);
  }
  // The peer's window holds back what the congestion window would let out.
  void on_peer_limited(std::uint32_t flight_bytes) {
    peer_limited_until_bytes_ = delivered_bytes_ + flight_bytes;
  }

  // The sample of one ACK. `min_rtt` rejects what a segment sent twice would falsify.
  RateSample on_ack(TimePoint now, const Delivered& delivered, std::uint64_t lost_bytes,
                    Duration min_rtt) {
    RateSample sample;
    if (delivered.bytes > 0) {
      delivered_bytes_ += delivered.bytes;
      delivered_at_ = now;
    }
    sample.delivered_bytes = delivered_bytes_;
    if (limited_until_bytes_ != 0 && delivered_bytes_ > limited_until_bytes_)
      limited_until_bytes_ = 0;
    if (!delivered.any) return sample;
    // The latest state that is not newer than the segment; older ones are not needed again.
    while (newest_ - oldest_ > 1 && states_[(oldest_ + 1) % kStates].sent <= delivered.newest_sent)
      ++oldest_;
    if (newest_ == oldest_) return sample;
    const State& state = states_[oldest_ % kStates];
    if (state.sent > delivered.newest_sent) return sample;
    sample.prior_delivered_bytes = state.delivered_bytes;
    sample.bytes = delivered_bytes_ - state.delivered_bytes;
    sample.lost_bytes = static_cast<std::uint32_t>(lost_bytes - state.lost_bytes);
    sample.sent_flight_bytes = state.flight_bytes;
    sample.peer_limited = state.peer_limited;
    sample.app_limited = state.app_limited;
    const Duration sending = delivered.newest_sent - state.first_sent;
    const Duration answering = now - state.delivered_at;
    const Duration interval = std::max(sending, answering);
    if (interval >= min_rtt) sample.interval = interval;
    first_sent_ = std::max(first_sent_, delivered.newest_sent);
    return sample;
  }

 private:
  static constexpr std::uint32_t kStates = 32;  // Two round trips.
  static constexpr int kPerRoundTrip = 16;

  struct State {
    TimePoint sent;
    TimePoint delivered_at;
    TimePoint first_sent;
    std::uint64_t delivered_bytes = 0;
    std::uint64_t lost_bytes = 0;
    std::uint32_t flight_bytes = 0;
    bool peer_limited = false;
    bool app_limited = false;
  };

  std::uint64_t delivered_bytes_ = 0;
  TimePoint delivered_at_{};
  TimePoint first_sent_{};                 // When the segment was sent that was delivered last.
  std::uint64_t limited_until_bytes_ = 0;  // 0: the user is not the limit.
  std::uint64_t peer_limited_until_bytes_ = 0;
  std::uint32_t oldest_ = 0;  // Free-running.
  std::uint32_t newest_ = 0;
  std::array<State, kStates> states_;
};

}  // namespace ztcp::tcp
