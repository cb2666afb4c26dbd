// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/communicator_times.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ztcp::stats {
namespace {

constexpr std::size_t kFewestPeers = 3;  // The median of fewer says nothing.
constexpr std::uint64_t kFewestMessages = 16;
constexpr double kSlowFactor = 2;
constexpr double kLeastNs = 100'000;  // Less is the noise of a thread that was woken late.
constexpr std::size_t kMostNamed = 3;

struct Straggler {
  const PeerTime* time;
  double mean_ns;
  double later_ns;  // Than the median.
  std::size_t peers;
};

double mean_ns(const PeerTime& time) {
  return static_cast<double>(time.total_ns) / static_cast<double>(time.messages);
}

void find_stragglers(std::span<const PeerTime> times, Way way, std::vector<Straggler>& out) {
  std::vector<const PeerTime*> peers;
  for (const PeerTime& time : times)
    if (time.way == way && time.messages >= kFewestMessages) peers.push_back(&time);
  if (peers.size() < kFewestPeers) return;
  std::sort(peers.begin(), peers.end(),
            [](const PeerTime* a, const PeerTime* b) { return mean_ns(*a) < mean_ns(*b); });
  // The lower one of an even number, so that one of two slow peers is not the measure.
  const double median_ns = mean_ns(*peers[(peers.size() - 1) / 2]);
  for (const PeerTime* time : peers) {
    const double mean = mean_ns(*time);
    const double later = mean - median_ns;
    if (mean >= kSlowFactor * median_ns && later >= kLeastNs)
      out.push_back({time, mean, later, peers.size()});
  }
}

}  // namespace

void CommunicatorTimes::add(std::uint64_t communicator, const PeerTime& time) {
  if (communicator == 0 || time.messages == 0) return;
  const std::scoped_lock lock(mutex_);
  if (!times_.contains(communicator) && times_.size() == kMost) return;
  std::vector<PeerTime>& all = times_[communicator];
  const auto known = std::find_if(all.begin(), all.end(), [&](const PeerTime& one) {
    return one.way == time.way && one.peer == time.peer;
  });
  if (known == all.end()) {
    all.push_back(time);
  } else {
    known->messages += time.messages;
    known->total_ns += time.total_ns;
  }
}

std::vector<PeerTime> CommunicatorTimes::take(std::uint64_t communicator) {
  const std::scoped_lock lock(mutex_);
  const auto found = times_.extract(communicator);
  return found.empty() ? std::vector<PeerTime>() : std::move(found.mapped());
}

CommunicatorTimes& communicator_times() {
  static auto* const instance = new CommunicatorTimes;  // Threads may use it at the process's end.
  return *instance;
}

std::string straggler_text(std::span<const PeerTime> times) {
  std::vector<Straggler> found;
  find_stragglers(times, Way::kSend, found);
  find_stragglers(times, Way::kReceive, found);
  std::sort(found.begin(), found.end(),
            [](const Straggler& a, const Straggler& b) { return a.later_ns > b.later_ns; });
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i) {
    const Straggler& one = found[i];
    text +=
        fmt::format("{}{} {} took {:.3f} ms, {:.3f} ms longer than the median of {} peers",
                    i == 0 ? "" : "; ", one.time->way == Way::kSend ? "sends to" : "receives from",
                    one.time->peer, one.mean_ns / 1e6, one.later_ns / 1e6, one.peers);
  }
  if (found.size() > kMostNamed) text += fmt::format("; {} more", found.size() - kMostNamed);
  return text;
}

}  // namespace ztcp::stats
