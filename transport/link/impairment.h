// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The effects of a bad network on the frames of one direction: the simulator's wires and the
// software switch use the same model. It only decides; the caller holds, copies and corrupts the
// frames. All decisions follow from the seed and the times passed in, so a seed replays a run.
// Pure; one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::link {

struct Impairment {
  double loss = 0;       // Probabilities, 0 to 1, each drawn per frame.
  double duplicate = 0;  // A second copy follows, with its own delay.
  double reorder = 0;    // Held back by reorder_delay, so that later frames overtake it.
  double corrupt = 0;    // One bit flips.
  Duration delay{};
  Duration jitter{};  // Uniform in [0, jitter] on top of delay; overtaking is possible.
  Duration reorder_delay = std::chrono::milliseconds(1);
  // Frames take so many paths in turn, as where switches spray packets; the last path delays by
  // path_skew more than the first, those between by their share.
  std::uint32_t paths = 1;
  Duration path_skew{};
  std::uint64_t rate_bits_per_second = 0;  // 0: unlimited.
  // Frames that would exceed this backlog before the rate limit are dropped, as a switch would.
  std::uint32_t queue_limit_bytes = 1U << 20U;
  std::uint32_t ecn_threshold_bytes = 0;  // Marks CE above this backlog; 0: never.

  bool any() const {
    return loss > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || delay > Duration::zero() ||
           jitter > Duration::zero() || path_skew > Duration::zero() || rate_bits_per_second > 0 ||
           ecn_threshold_bytes > 0;
  }
};

// The decision about one frame.
struct Passage {
  enum class Fate : std::uint8_t { kDelivered, kLost, kQueueFull };

  Fate fate = Fate::kDelivered;
  std::uint8_t copies = 1;           // 0, 1 or 2.
  bool reordered = false;            // at[0] was delayed on purpose.
  bool mark_ecn = false;             // Set CE if the frame is ECN-capable.
  bool corrupted = false;            // Flip bit `flipped_bit` of the frame (every copy).
  std::uint32_t flipped_bit = 0;     // Counted from the first bit after `spared_bytes`.
  std::array<TimePoint, 2> at = {};  // When each copy arrives; never before `now`.
};

// splitmix64: a seed gives the same numbers with every toolchain, unlike <random>'s distributions.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t draw() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(draw() >> 11U) * 0x1.0p-53; }
  bool chance(double p) { return p > 0 && unit() < p; }
  // Uniform in [0, bound); 0 for bound 0.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>(unit() * static_cast<double>(bound));
  }

 private:
  std::uint64_t state_;
};

class Impairer {
 public:
  Impairer(const Impairment& impairment, std::uint64_t seed) : what_(impairment), dice_(seed) {}

  const Impairment& impairment() const { return what_; }

  // Decides about a frame of `frame_bytes` offered at `now`; times must never go back.
  // `backlog_bytes` already wait for the same exit outside of this model (a full transmit ring) and
  // count for ECN. The first `spared_bytes` are never corrupted: 14 keeps a frame's addresses
  // intact, as a cable's FCS would.
  Passage admit(TimePoint now, std::uint32_t frame_bytes, std::uint64_t backlog_bytes = 0,
                std::uint32_t spared_bytes = 14) {
    Passage passage;
    if (dice_.chance(what_.loss)) {
      passage.fate = Passage::Fate::kLost;
      passage.copies = 0;
      return passage;
    }
    TimePoint leaves = now;
    if (what_.rate_bits_per_second > 0) {
      const std::uint64_t queued = queued_bytes(now);
      if (queued > 0 && queued + frame_bytes > what_.queue_limit_bytes) {
        passage.fate = Passage::Fate::kQueueFull;
        passage.copies = 0;
        return passage;
      }
      backlog_bytes += queued;
      line_free_ = std::max(line_free_, now) + time_on_line(frame_bytes);
      leaves = line_free_;
    }
    passage.mark_ecn = what_.ecn_threshold_bytes > 0 && backlog_bytes > what_.ecn_threshold_bytes;
    if (frame_bytes > spared_bytes && dice_.chance(what_.corrupt)) {
      passage.corrupted = true;
      passage.flipped_bit =
          static_cast<std::uint32_t>(dice_.below(std::uint64_t{frame_bytes - spared_bytes} * 8));
    }
    leaves += path_delay();
    passage.at[0] = leaves + flight_time();
    if (dice_.chance(what_.reorder)) {
      passage.reordered = true;
      passage.at[0] += what_.reorder_delay;
    }
    if (dice_.chance(what_.duplicate)) {
      passage.copies = 2;
      passage.at[1] = leaves + flight_time();
    }
    return passage;
  }

  // Bytes that wait for the rate limit at `now`.
  std::uint64_t queued_bytes(TimePoint now) const {
    if (what_.rate_bits_per_second == 0 || line_free_ <= now) return 0;
    // Floating point: a second of 200 Gb/s in nanoseconds times bits overflows 64 bits.
    return static_cast<std::uint64_t>(static_cast<double>((line_free_ - now).count()) *
                                      static_cast<double>(what_.rate_bits_per_second) / 8e9);
  }

 private:
  Duration time_on_line(std::uint32_t frame_bytes) const {
    return Duration(std::uint64_t{frame_bytes} * 8'000'000'000U / what_.rate_bits_per_second);
  }
  Duration path_delay() {
    if (what_.path_skew <= Duration::zero() || what_.paths < 2) return {};
    const std::uint32_t path = next_path_;
    next_path_ = (next_path_ + 1) % what_.paths;
    return what_.path_skew * path / (what_.paths - 1);
  }
  Duration flight_time() {
    if (what_.jitter <= Duration::zero()) return what_.delay;
    return what_.delay +
           Duration(dice_.below(static_cast<std::uint64_t>(what_.jitter.count()) + 1));
  }

  Impairment what_;
  Dice dice_;
  std::uint32_t next_path_ = 0;
  TimePoint line_free_{};  // When the last admitted bit leaves the rate limit.
};

}  // namespace ztcp::link
