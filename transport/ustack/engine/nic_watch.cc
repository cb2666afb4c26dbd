// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/nic_watch.h"

#include <algorithm>
#include <array>
#include <span>

namespace ztcp::ustack {
namespace {

using namespace nic_counter;

constexpr std::array kOfTableFull = {kSynDropped, kRefusedFull};
constexpr std::array kOfAcceptNoMemory = {kRefusedNoMemory};
constexpr std::array kOfBadChecksum = {kBadChecksum};
constexpr std::array kOfMalformed = {kMalformed};
constexpr std::array kOfRxNoMemory = {kTcpNoMemory, kLinkNoMemory};
constexpr std::array kOfChallengeAcks = {kChallengeAcks};
constexpr std::array kOfEcnFaults = {kEcnFaults};
constexpr std::array kOfArpConflicts = {kMacChanges, kConflicts, kOwnAddress};

struct Limit {
  Trouble trouble;
  std::uint64_t threshold;
  std::span<const NicCounter> counters;  // None: those of strangers.
};
constexpr std::array<Limit, kTroubles> kLimits = {{
    {Trouble::kInvalidHello, 10, {}},
    {Trouble::kTableFull, 10, kOfTableFull},
    {Trouble::kAcceptNoMemory, 1, kOfAcceptNoMemory},
    {Trouble::kBadChecksum, 10, kOfBadChecksum},
    {Trouble::kMalformed, 10, kOfMalformed},
    {Trouble::kRxNoMemory, 1000, kOfRxNoMemory},
    {Trouble::kChallengeAcks, 100, kOfChallengeAcks},
    {Trouble::kEcnFaults, 1, kOfEcnFaults},
    {Trouble::kArpConflicts, 3, kOfArpConflicts},
}};
static_assert(std::all_of(kLimits.begin(), kLimits.end(), [](const Limit& limit) {
  return limit.counters.size() <= Finding::kMostParts;
}));

}  // namespace

void NicWatch::check(TimePoint now, const NicCounts& counts,
                     const std::function<void(const Finding&)>& tell) {
  for (std::size_t i = 0; i < kTroubles; ++i) {
    const Limit& limit = kLimits[i];
    auto totals = stats::totals_of(msg::kStrangerCounters, counts.acceptor.strangers);
    std::size_t parts = totals.size();
    if (!limit.counters.empty())
      for (parts = 0; parts < limit.counters.size(); ++parts)
        totals[parts] = {limit.counters[parts].name, limit.counters[parts].read(counts)};
    const auto found = watches_[i].check(now, limit.threshold, std::span(totals).first(parts));
    if (found) tell({*found, limit.trouble});
  }
}

}  // namespace ztcp::ustack
