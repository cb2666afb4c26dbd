// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/locate.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace ztcp::perf::probe {
namespace {

using Kind = Suspect::Kind;

// Counts for one candidate.
struct Count {
  std::size_t total = 0;
  std::size_t bad = 0;          // Bad samples in all.
  std::size_t unexplained = 0;  // Bad ones that no suspect found before explains.
};

// Every place that a fault can be at. A sample belongs to one candidate of each group.
class Candidates {
 public:
  Candidates(std::span<const Sample> samples, std::size_t hosts, std::size_t rails)
      : samples_(samples), hosts_(hosts), rails_(rails), counts_(first_receiving_nic() + nics()) {
    explained_.resize(samples.size());
    for (const Sample& sample : samples)
      for (const std::size_t place : places_of(sample)) {
        ++counts_[place].total;
        counts_[place].bad += sample.is_bad;
        counts_[place].unexplained += sample.is_bad;
      }
  }

  // The candidate that explains most; absent: none explains two samples.
  std::optional<Suspect> take_best() {
    std::size_t best = counts_.size();
    std::size_t most = 1;
    for (std::size_t place = 0; place < counts_.size(); ++place) {
      const Count& count = counts_[place];
      const double share = place < first_host() ? kShareOfRail : kShareOfSuspect;
      if (count.unexplained > most &&
          static_cast<double>(count.bad) >= share * static_cast<double>(count.total)) {
        best = place;
        most = count.unexplained;
      }
    }
    if (best == counts_.size()) return std::nullopt;
    Suspect suspect = suspect_at(best);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (!samples_[i].is_bad || explained_[i]) continue;
      const auto places = places_of(samples_[i]);
      if (std::ranges::find(places, best) == places.end()) continue;
      explained_[i] = true;
      suspect.samples.push_back(i);
      for (const std::size_t place : places) --counts_[place].unexplained;
    }
    return suspect;
  }

 private:
  // In order of preference where two explain as many: all, rails, hosts, NICs, and then senders
  // and receivers, first as hosts and then as NICs.
  std::size_t nics() const { return hosts_ * rails_; }
  std::size_t first_rail() const { return 1; }
  std::size_t first_host() const { return first_rail() + rails_; }
  std::size_t first_nic() const { return first_host() + hosts_; }
  std::size_t first_sender() const { return first_nic() + nics(); }
  std::size_t first_receiver() const { return first_sender() + hosts_; }
  std::size_t first_sending_nic() const { return first_receiver() + hosts_; }
  std::size_t first_receiving_nic() const { return first_sending_nic() + nics(); }

  std::array<std::size_t, 10> places_of(const Sample& s) const {
    const std::size_t from = s.from * rails_ + s.rail;
    const std::size_t to = s.to * rails_ + s.rail;
    return {0,
            first_rail() + s.rail,
            first_host() + s.from,
            first_host() + s.to,
            first_nic() + from,
            first_nic() + to,
            first_sender() + s.from,
            first_receiver() + s.to,
            first_sending_nic() + from,
            first_receiving_nic() + to};
  }

  Suspect suspect_at(std::size_t place) const {
    const auto nic = [&](Kind kind, std::size_t first) {
      return Suspect{.kind = kind,
                     .host = (place - first) / rails_,
                     .rail = (place - first) % rails_,
                     .is_one_rail = true};
    };
    if (place >= first_receiving_nic()) return nic(Kind::kReceives, first_receiving_nic());
    if (place >= first_sending_nic()) return nic(Kind::kSends, first_sending_nic());
    if (place >= first_receiver())
      return {.kind = Kind::kReceives, .host = place - first_receiver()};
    if (place >= first_sender()) return {.kind = Kind::kSends, .host = place - first_sender()};
    if (place >= first_nic()) return nic(Kind::kNic, first_nic());
    if (place >= first_host()) return {.kind = Kind::kHost, .host = place - first_host()};
    if (place >= first_rail())
      return {.kind = Kind::kRail, .rail = place - first_rail(), .is_one_rail = true};
    return {.kind = Kind::kAll};
  }

  std::span<const Sample> samples_;
  std::size_t hosts_;
  std::size_t rails_;
  std::vector<Count> counts_;
  std::vector<bool> explained_;
};

std::size_t count_measured(std::span<const Sample> samples, std::size_t hosts) {
  std::vector<bool> seen(hosts);
  for (const Sample& sample : samples) seen[sample.from] = seen[sample.to] = true;
  return static_cast<std::size_t>(std::ranges::count(seen, true));
}

// The rest, by pairs of hosts: all rails and both directions of a pair together.
void add_paths(std::span<const Sample> samples, const std::vector<bool>& open,
               std::vector<Suspect>& suspects) {
  std::map<std::pair<std::size_t, std::size_t>, Suspect> paths;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!open[i]) continue;
    const Sample& sample = samples[i];
    const auto ends = std::minmax(sample.from, sample.to);
    const auto [place, is_new] = paths.try_emplace(ends);
    Suspect& path = place->second;
    if (is_new) {
      path = {.kind = Kind::kPath,
              .host = sample.from,
              .peer = sample.to,
              .rail = sample.rail,
              .is_one_rail = true};
    } else {
      path.is_one_rail = path.is_one_rail && path.rail == sample.rail;
      path.is_both_ways = path.is_both_ways || path.host != sample.from;
    }
    path.samples.push_back(i);
  }
  for (auto& [ends, path] : paths) suspects.push_back(std::move(path));
}

}  // namespace

std::vector<Suspect> locate(std::span<const Sample> samples, std::size_t hosts, std::size_t rails) {
  std::vector<Suspect> suspects;
  std::vector<bool> open(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) open[i] = samples[i].is_bad;
  if (count_measured(samples, hosts) > 2) {
    Candidates candidates(samples, hosts, rails);
    while (const auto best = candidates.take_best()) {
      suspects.push_back(*best);
      for (const std::size_t i : best->samples) open[i] = false;
    }
  }
  add_paths(samples, open, suspects);
  std::ranges::stable_sort(suspects, std::ranges::greater{},
                           [](const Suspect& one) { return one.samples.size(); });
  for (Suspect& one : suspects) one.is_one_rail = one.is_one_rail && rails > 1;
  return suspects;
}

}  // namespace ztcp::perf::probe
