// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which comms have posts waiting, so that a turn visits only those. Many ringers, one drainer (the
// holder of the baton).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ztcp::comms {

class Doorbell {
 public:
  static constexpr std::size_t kCapacity = 4096;

  // After the ring of comm `index` was written. Sequentially consistent, because a poller going to
  // sleep says so and then looks here, while a ringer rings and then looks whether it sleeps.
  void ring(std::size_t index) {
    words_[index / 64].fetch_or(1ULL << (index % 64));
    summary_.fetch_or(1ULL << (index / 64));
  }

  bool any() const { return summary_.load() != 0; }

  template <class Visit>
  void drain(Visit&& visit) {
    if (summary_.load(std::memory_order_relaxed) == 0) return;
    std::uint64_t summary = summary_.exchange(0);
    while (summary != 0) {
      const auto word = static_cast<std::size_t>(std::countr_zero(summary));
      summary &= summary - 1;
      std::uint64_t bits = words_[word].exchange(0);
      while (bits != 0) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
        bits &= bits - 1;
        visit(word * 64 + bit);
      }
    }
  }

 private:
  static_assert(kCapacity == std::size_t{64} * 64, "one summary word");
  alignas(64) std::atomic<std::uint64_t> summary_{0};
  alignas(64) std::array<std::atomic<std::uint64_t>, kCapacity / 64> words_{};
};

}  // namespace ztcp::comms
