// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/nic_watch.h"

#include <algorithm>
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

std::uint64_t Finding::total() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts()) sum += part.count;
  return sum;
}

void NicWatch::look(TimePoint now, const NicCounts& counts,
                    const std::function<void(const Finding&)>& tell) {
  for (std::size_t i = 0; i < kTroubles; ++i) {
    const Limit& limit = kLimits[i];
    Seen& seen = seen_[i];
    if (seen.since == TimePoint{}) seen.since = now;
    std::uint64_t total = 0;
    for (const NicCounter& row : limit.counters)
      total += row.count(counts) - row.count(seen.counts);
    const bool many = total >= limit.threshold;
    if (many && (seen.warned == TimePoint::min() || now - seen.warned >= kInterval)) {
      Finding finding{.trouble = limit.trouble, .span = now - seen.since};
      for (const NicCounter& row : limit.counters)
        if (const std::uint64_t count = row.count(counts) - row.count(seen.counts); count != 0)
          finding.all_parts[finding.part_count++] = {row.name, count};
      tell(finding);
      seen = {.since = now, .warned = now, .counts = counts};
    } else if (!many && now - seen.since >= kInterval) {
      seen.since = now;
      seen.counts = counts;
    }
  }
}

}  // namespace ztcp::ustack
