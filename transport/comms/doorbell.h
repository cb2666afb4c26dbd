// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A bit for each comm that has posts waiting, so that a turn visits only those. Many threads ring;
// the holder of the baton drains.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ztcp::comms {

class Doorbell {
 public:
  // Connections of one poller: an all-to-all of 1024 ranks has 16368 where a NIC is exposed to NCCL
  // as eight devices, and one lane may have to carry them all.
  static constexpr std::size_t kCapacity = 32768;

  // Called after a post was written into the ring of comm `index`. Sequentially consistent: a
  // poller announces its sleep and then checks the doorbell, while a ringing thread rings and then
  // checks whether the poller sleeps.
  void ring(std::size_t index) {
    const std::size_t word = index / 64;
    words_[word].fetch_or(1ULL << (index % 64));
    summaries_[word / 64].fetch_or(1ULL << (word % 64));
  }

  bool any() const {
    return std::any_of(summaries_.begin(), summaries_.end(),
                       [](const auto& summary) { return summary.load() != 0; });
  }

  // Sequentially consistent, too: a thread that gives up the turns (has_taken_over_) drains once
  // more for the threads that rang and left the turn to it.
  template <class Visit>
  void drain(Visit&& visit) {
    for (std::size_t group = 0; group < summaries_.size(); ++group) {
      if (summaries_[group].load() == 0) continue;
      std::uint64_t summary = summaries_[group].exchange(0);
      while (summary != 0) {
        const auto word = group * 64 + static_cast<std::size_t>(std::countr_zero(summary));
        summary &= summary - 1;
        drain_word(word, visit);
      }
    }
  }

 private:
  static constexpr std::size_t kOfSummary = std::size_t{64} * 64;
  static_assert(kCapacity == 8 * kOfSummary, "the summaries are one cache line");

  template <class Visit>
  void drain_word(std::size_t word, Visit& visit) {
    std::uint64_t bits = words_[word].exchange(0);
    while (bits != 0) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      bits &= bits - 1;
      visit(word * 64 + bit);
    }
  }

  alignas(64) std::array<std::atomic<std::uint64_t>, kCapacity / kOfSummary> summaries_{};
  alignas(64) std::array<std::atomic<std::uint64_t>, kCapacity / 64> words_{};
};

}  // namespace ztcp::comms
