// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/channel_tuner.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ztcp::plugin {
namespace {

// Measured over sockets between two ranks (bench/results/nccl-h200-sockets.md): half of it to a
// channel costs more in system calls than the channel gains. So does this much, once a few channels
// keep both hosts' threads busy.
constexpr std::size_t kLeastBytesOfChannel = 64U << 10;
constexpr std::size_t kFewChannels = 4;
constexpr std::size_t kLeastBytesOfFurtherChannel = 128U << 10;
// From here on there is enough for all that NCCL has.
constexpr std::size_t kAllChannels = 16;
// LL carries a flag beside each word: twice the bytes for a shorter way. Below, the way counts.
constexpr std::size_t kLeastBytesWithoutLl = 64U << 10;

bool is_tuned(ncclFunc_t collective) {
  return collective == ncclFuncAllReduce || collective == ncclFuncAllGather ||
         collective == ncclFuncReduceScatter;
}

}  // namespace

int CostTable::cheapest_algorithm() const {
  int algorithm = -1;
  float least = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < costs_.size(); ++i) {
    if (costs_[i] < 0 || costs_[i] >= least) continue;
    least = costs_[i];
    algorithm = static_cast<int>(i / protocols_);
  }
  return algorithm;
}

// A ring sends each rank's part around; a tree of two hosts is a ring, a larger one sends all.
std::size_t ChannelTuner::step_bytes(int algorithm, std::size_t bytes) const {
  return algorithm == NCCL_ALGO_TREE && ranks_ > 2 ? bytes : bytes / ranks_;
}

int ChannelTuner::tune(ncclFunc_t collective, std::size_t bytes, CostTable& costs) const {
  const bool stays_inside = ranks_ == ranks_of_host_;
  if (stays_inside || ranks_of_host_ == 0 || !is_tuned(collective)) return 0;
  for (const int algorithm : {NCCL_ALGO_TREE, NCCL_ALGO_RING})
    if (step_bytes(algorithm, bytes) >= kLeastBytesWithoutLl &&
        costs.has(algorithm, NCCL_PROTO_SIMPLE))
      costs.bar(algorithm, NCCL_PROTO_LL);

  constexpr std::array kKnown = {int{NCCL_ALGO_TREE}, int{NCCL_ALGO_RING}, int{NCCL_ALGO_PAT}};
  const int algorithm = costs.cheapest_algorithm();
  if (std::ranges::find(kKnown, algorithm) == kKnown.end()) return 0;
  const std::size_t step = step_bytes(algorithm, bytes);
  const std::size_t few = std::clamp<std::size_t>(step / kLeastBytesOfChannel, 1, kFewChannels);
  const std::size_t channels = ranks_of_host_ * std::max(few, step / kLeastBytesOfFurtherChannel);
  return channels < kAllChannels ? static_cast<int>(channels) : 0;
}

}  // namespace ztcp::plugin
