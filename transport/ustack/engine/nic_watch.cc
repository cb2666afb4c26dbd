// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/nic_watch.h"

#include <algorithm>
#include <array>
#include <span>

namespace ztcp::ustack {
namespace {

using namespace nic_counter;

constexpr std::array kStrangers = {kBadMagic, kUnknownCookie, kBadKey,
                                   kTimedOut, kPushedOut,     kOtherVersion};
constexpr std::array kNoPlace = {kSynDropped, kRefusedFull};
constexpr std::array kShortage = {kRefusedNoMemory};
constexpr std::array kDamaged = {kBadChecksum};
constexpr std::array kSenseless = {kMalformed};
constexpr std::array kNoMemory = {kNotKept, kLinkNoMemory};
constexpr std::array kGuesses = {kChallenges};
constexpr std::array kMacs = {kMacChanges, kConflicts, kOwnAddress};

struct Limit {
  Trouble trouble;
  std::uint64_t threshold;
  std::span<const NicCounter> counters;
};
constexpr std::array<Limit, kTroubles> kLimits = {{
    {Trouble::kStrangers, 10, kStrangers},
    {Trouble::kNoPlace, 10, kNoPlace},
    {Trouble::kShortage, 1, kShortage},
    {Trouble::kDamaged, 10, kDamaged},
    {Trouble::kSenseless, 10, kSenseless},
    {Trouble::kNoMemory, 1000, kNoMemory},
    {Trouble::kGuesses, 100, kGuesses},
    {Trouble::kMacsChange, 3, kMacs},
}};
static_assert(std::all_of(kLimits.begin(), kLimits.end(), [](const Limit& limit) {
  return limit.counters.size() <= Finding::kMostParts;
}));

}  // namespace

void NicWatch::look(TimePoint now, const NicCounts& counts,
                    const std::function<void(const Finding&)>& tell) {
  for (std::size_t i = 0; i < kTroubles; ++i) {
    const Limit& limit = kLimits[i];
    std::array<CountWatch::Part, Finding::kMostParts> totals;
    for (std::size_t n = 0; n < limit.counters.size(); ++n)
      totals[n] = {limit.counters[n].name, limit.counters[n].count(counts)};
    const auto found =
        watches_[i].look(now, limit.threshold, std::span(totals).first(limit.counters.size()));
    if (found) tell({*found, limit.trouble});
  }
}

}  // namespace ztcp::ustack
