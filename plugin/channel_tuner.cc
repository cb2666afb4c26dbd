// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/channel_tuner.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ztcp::plugin {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// How many channels a network gets. Bytes are bytes per step.
struct Rule {
  // Bytes per channel: for each of the first few channels, and for each further one.
  std::size_t least_bytes;
  std::size_t few_channels;
  std::size_t least_bytes_of_further;
  std::size_t most_channels;  // Per rank.
  std::size_t all_channels;   // Per host: from here on NCCL chooses itself.
  // LL sends a flag beside each word: twice the bytes, lower latency. Steps below this keep LL.
  std::size_t least_bytes_without_ll;
};
// Measured between two ranks (bench/results/nccl-h200-sockets.md): with half of least_bytes per
// channel, system calls cost more than the channel gains. With a few channels, which keep both
// hosts' threads busy, this amount does not pay for a further one, either.
constexpr Rule kOverSockets{.least_bytes = 64U << 10,
                            .few_channels = 4,
                            .least_bytes_of_further = 128U << 10,
                            .most_channels = kUnlimited,
                            .all_channels = 16,
                            .least_bytes_without_ll = 64U << 10};
// Measured between two and four ranks (bench/results/nccl-h200-mesh.md): more channels gain
// nothing.
constexpr Rule kOverUstack{.least_bytes = 2U << 10,
                           .few_channels = 2,
                           .least_bytes_of_further = 4U << 10,
                           .most_channels = 4,
                           .all_channels = kUnlimited,
                           .least_bytes_without_ll = kUnlimited};

const Rule& rule_of(TransportKind network) {
  return network == TransportKind::kSockets ? kOverSockets : kOverUstack;
}

std::size_t channels_of_rank(const Rule& rule, std::size_t step_bytes) {
  const std::size_t few =
      std::clamp<std::size_t>(step_bytes / rule.least_bytes, 1, rule.few_channels);
  return std::min(std::max(few, step_bytes / rule.least_bytes_of_further), rule.most_channels);
}

bool is_tuned(ncclFunc_t collective) {
  return collective == ncclFuncAllReduce || collective == ncclFuncAllGather ||
         collective == ncclFuncReduceScatter;
}

}  // namespace

bool CostTable::has(int algorithm) const {
  for (int protocol = 0; protocol < static_cast<int>(protocols_); ++protocol)
    if (has(algorithm, protocol)) return true;
  return false;
}

void CostTable::bar(int algorithm) {
  for (int protocol = 0; protocol < static_cast<int>(protocols_); ++protocol)
    bar(algorithm, protocol);
}

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

// A ring passes each rank's part around. A tree of two hosts is a ring; a larger tree sends all
// bytes.
std::size_t ChannelTuner::step_bytes(int algorithm, std::size_t bytes) const {
  return algorithm == NCCL_ALGO_TREE && ranks_ > 2 ? bytes : bytes / ranks_;
}

bool ChannelTuner::is_faster_by_collnet(ncclFunc_t collective, std::size_t bytes) const {
  return collective == ncclFuncAllReduce && have_size(*collnet_, ranks_, hosts_, bytes);
}

// Bars the algorithms that use CollNet, unless the user has left NCCL no other (NCCL_ALGO). Of them
// the chain alone was measured.
void ChannelTuner::choose_collnet(ncclFunc_t collective, std::size_t bytes,
                                  CostTable& costs) const {
  constexpr std::array kOverCollnet = {int{NCCL_ALGO_COLLNET_DIRECT}, int{NCCL_ALGO_COLLNET_CHAIN},
                                       int{NCCL_ALGO_NVLS}};
  const auto uses_collnet = [&](int algorithm) {
    return std::ranges::find(kOverCollnet, algorithm) != kOverCollnet.end();
  };
  bool has_others = false;
  for (int algorithm = 0; algorithm < costs.algorithms(); ++algorithm)
    has_others |= !uses_collnet(algorithm) && costs.has(algorithm);
  if (!has_others) return;
  const bool is_faster = is_faster_by_collnet(collective, bytes);
  for (const int algorithm : kOverCollnet)
    if (algorithm != NCCL_ALGO_COLLNET_CHAIN || !is_faster) costs.bar(algorithm);
  costs.prefer(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE);
}

int ChannelTuner::tune(ncclFunc_t collective, std::size_t bytes, CostTable& costs) const {
  const bool stays_inside = ranks_ == ranks_of_host_;
  if (stays_inside || ranks_of_host_ == 0 || !is_tuned(collective)) return 0;
  if (collnet_ && (network_ || collective != ncclFuncAllReduce))
    choose_collnet(collective, bytes, costs);
  if (!network_) return 0;
  const Rule& rule = rule_of(*network_);
  for (const int algorithm : {NCCL_ALGO_TREE, NCCL_ALGO_RING})
    if (step_bytes(algorithm, bytes) >= rule.least_bytes_without_ll &&
        costs.has(algorithm, NCCL_PROTO_SIMPLE))
      costs.bar(algorithm, NCCL_PROTO_LL);

  constexpr std::array kKnown = {int{NCCL_ALGO_TREE}, int{NCCL_ALGO_RING}, int{NCCL_ALGO_PAT}};
  const int algorithm = costs.cheapest_algorithm();
  if (std::ranges::find(kKnown, algorithm) == kKnown.end()) return 0;
  const std::size_t channels =
      ranks_of_host_ * channels_of_rank(rule, step_bytes(algorithm, bytes));
  return channels < rule.all_channels ? static_cast<int>(channels) : 0;
}

}  // namespace ztcp::plugin
