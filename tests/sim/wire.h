// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One direction of a cable. Its behaviour follows from its seed and its settings, so that the seed
// alone replays a failing run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "core/clock.h"
#include "tests/sim/frames.h"
#include "transport/link/impairment.h"
#include "transport/wire/ipv4.h"

namespace ztcp::sim {

class Wire {
 public:
  struct Counters {
    std::uint64_t offered = 0;
    std::uint64_t offered_bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t queue_full = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t corrupted = 0;
    std::uint64_t marked = 0;
    std::uint64_t too_long = 0;
    std::uint64_t delivered = 0;
  };

  Wire(const link::Impairment& impairment, std::uint64_t seed) : impairer_(impairment, seed) {}

  void send(TimePoint now, Bytes frame);
  TimePoint next_arrival() const { return in_flight_.empty() ? kNever : in_flight_.begin()->first; }
  // The frame that arrives next.
  Bytes take();

  // Loses exactly the frames with these numbers, counted from 0 as they are sent.
  void drop_exactly(std::set<std::uint64_t> numbers) { drop_numbers_ = std::move(numbers); }
  // Loses the frames the filter picks.
  void drop_if(std::function<bool(const Bytes&)> filter) { drop_filter_ = std::move(filter); }
  // Changes each frame that gets through, as a faulty middlebox does.
  void change(std::function<void(Bytes&)> change) { change_ = std::move(change); }
  // A cut cable loses every frame, silently.
  void cut() { cut_ = true; }
  void mend() { cut_ = false; }
  // Silently loses IP packets longer than this: a black hole. 0: none.
  void set_path_mtu(std::size_t mtu_bytes) { path_mtu_bytes_ = mtu_bytes; }

  const Counters& counters() const { return counters_; }
  // Bytes that wait for the rate limit.
  std::uint64_t queued_bytes(TimePoint now) const { return impairer_.queued_bytes(now); }

 private:
  link::Impairer impairer_;
  std::multimap<TimePoint, Bytes> in_flight_;
  std::set<std::uint64_t> drop_numbers_;
  std::function<bool(const Bytes&)> drop_filter_;
  std::function<void(Bytes&)> change_;
  std::size_t path_mtu_bytes_ = 0;
  bool cut_ = false;
  Counters counters_;
};

// Gives a TCP segment's packet this codepoint.
void set_codepoint(Bytes& frame, wire::Ecn ecn);

// True for a TCP segment without payload, SYN, FIN or RST: a pure ACK.
bool is_pure_ack(const Bytes& frame);

}  // namespace ztcp::sim
