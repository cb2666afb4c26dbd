// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/verdict.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "tools/ztcp_perf/probe/locate.h"

namespace ztcp::perf::probe {
namespace {

using Kind = Suspect::Kind;

std::string rail_name(const Results& results, std::size_t rail) {
  for (const Host& host : results.hosts)
    if (rail < host.facts.nics.size())
      return fmt::format("rail {} ({})", rail, host.facts.nics[rail].name);
  return fmt::format("rail {}", rail);
}

// "host gpu07", "NIC ztcp3 of gpu07", "the path from gpu01 to gpu02".
std::string suspect_name(const Suspect& suspect, const Results& results) {
  const std::vector<Host>& hosts = results.hosts;
  switch (suspect.kind) {
    case Kind::kAll:
      return "the network as a whole";
    case Kind::kRail:
      return rail_name(results, suspect.rail);
    case Kind::kPath: {
      const std::string path = suspect.is_both_ways
                                   ? fmt::format("the path between {} and {}",
                                                 hosts[suspect.host].name, hosts[suspect.peer].name)
                                   : fmt::format("the path from {} to {}", hosts[suspect.host].name,
                                                 hosts[suspect.peer].name);
      return suspect.is_one_rail ? path + " on " + rail_name(results, suspect.rail) : path;
    }
    case Kind::kHost:
    case Kind::kNic:
    case Kind::kSends:
    case Kind::kReceives:
      break;
  }
  const Host& host = hosts[suspect.host];
  if (suspect.is_one_rail && suspect.rail < host.facts.nics.size())
    return fmt::format("NIC {} of {}", host.facts.nics[suspect.rail].name, host.name);
  return "host " + host.name;
}

const char* direction_of(const Suspect& suspect) {
  if (suspect.kind == Kind::kSends) return " as the sender";
  if (suspect.kind == Kind::kReceives) return " as the receiver";
  return "";
}

// The middle of the bad values.
double typical(const Suspect& suspect, const std::vector<Sample>& samples) {
  std::vector<double> values;
  for (const std::size_t i : suspect.samples) values.push_back(samples[i].value);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class Judge {
 public:
  Judge(const Results& results, const Limits& limits)
      : results_(results), limits_(limits), references_(references_of(results)) {}

  std::vector<Finding> run() {
    judge_hosts();
    judge_facts();
    judge_failures();
    judge_loss();
    judge_bandwidth();
    judge_latency();
    std::ranges::stable_sort(findings_, std::ranges::greater{}, &Finding::is_fault);
    return std::move(findings_);
  }

 private:
  // The text of a finding: behind the suspect's name, for a typical bad value of this rail.
  using Say = std::function<std::string(const Suspect&, double value, const Sample& first)>;

  void judge_hosts() {
    for (std::size_t i = 0; i < results_.hosts.size(); ++i)
      if (!results_.hosts[i].failure.empty())
        findings_.push_back(
            {true, "unreachable",
             fmt::format("host {}: {}", results_.hosts[i].name, results_.hosts[i].failure), i,
             std::nullopt});
  }

  void judge_facts() {
    for (const Difference& difference : compare(results_.hosts)) {
      std::optional<std::size_t> host;
      if (difference.groups.size() == 2 && difference.groups[1].hosts.size() == 1 &&
          difference.groups[0].hosts.size() > 1)
        host = difference.groups[1].hosts[0];
      findings_.push_back({difference.is_fault, difference.what,
                           describe(difference, results_.hosts), host, std::nullopt});
    }
  }

  void judge_failures() {
    std::vector<Sample> samples;
    std::vector<const PairResult*> origins;
    for (const PairResult& pair : results_.pairs) {
      samples.push_back({pair.a, pair.b, pair.rail, !pair.failure.empty()});
      samples.push_back({pair.b, pair.a, pair.rail, !pair.failure.empty()});
      origins.insert(origins.end(), {&pair, &pair});
    }
    for (const Suspect& suspect : locate(samples, results_.hosts.size(), results_.rails)) {
      const PairResult& first = *origins[suspect.samples.front()];
      add("failure", suspect,
          fmt::format("{} fails: {} to {}: {}", suspect_name(suspect, results_),
                      results_.hosts[first.a].name, results_.hosts[first.b].name, first.failure));
    }
  }

  void judge_loss() {
    std::vector<Sample> samples;
    each_direction(
        [&](std::size_t from, std::size_t to, const PairResult& pair, const Direction& direction) {
          if (!direction.resent) return;
          samples.push_back(
              {from, to, pair.rail, *direction.resent > limits_.resent, *direction.resent * 100});
        });
    report("loss", samples, [&](const Suspect& suspect, double value, const Sample&) {
      return fmt::format("loses packets{}: {:.2g} % of its bytes were sent again (limit {:g} %)",
                         direction_of(suspect), value, limits_.resent * 100);
    });
  }

  void judge_bandwidth() {
    std::vector<Sample> samples;
    each_direction(
        [&](std::size_t from, std::size_t to, const PairResult& pair, const Direction& direction) {
          samples.push_back(
              {from, to, pair.rail,
               is_slow_in(limits_, direction.gbit_per_s, references_.gbit_per_s[pair.rail]),
               direction.gbit_per_s});
        });
    report("bandwidth", samples, [&](const Suspect& suspect, double value, const Sample& first) {
      return fmt::format("is slow{}: {:.3g} Gbit/s, the median of all NICs is {:.3g} Gbit/s",
                         direction_of(suspect), value, references_.gbit_per_s[first.rail]);
    });
    // Both directions at once tell more only where each alone is good.
    const bool is_explained = !samples.empty() && std::ranges::any_of(samples, &Sample::is_bad);
    if (is_explained) return;
    samples.clear();
    each_pair([&](const PairResult& pair) {
      const bool is_bad =
          pair.both_gbit_per_s < limits_.slow * references_.both_gbit_per_s[pair.rail];
      samples.push_back({pair.a, pair.b, pair.rail, is_bad, pair.both_gbit_per_s});
      samples.push_back({pair.b, pair.a, pair.rail, is_bad, pair.both_gbit_per_s});
    });
    report("bandwidth of both directions", samples,
           [&](const Suspect&, double value, const Sample& first) {
             return fmt::format(
                 "is slow when both ends send: {:.3g} Gbit/s in all, the median of all NICs is "
                 "{:.3g} Gbit/s",
                 value, references_.both_gbit_per_s[first.rail]);
           });
  }

  void judge_latency() {
    std::vector<Sample> samples;
    each_pair([&](const PairResult& pair) {
      const double us = pair.latency.p50_us;
      const bool is_bad = is_late_in(limits_, us, references_.latency_us[pair.rail]);
      samples.push_back({pair.a, pair.b, pair.rail, is_bad, us});
      samples.push_back({pair.b, pair.a, pair.rail, is_bad, us});
    });
    report("latency", samples, [&](const Suspect&, double value, const Sample& first) {
      return fmt::format("is late: {:.3g} us one way, the median of all NICs is {:.3g} us", value,
                         references_.latency_us[first.rail]);
    });
  }

  template <class Use>
  void each_pair(Use use) const {
    for (const PairResult& pair : results_.pairs)
      if (pair.failure.empty()) use(pair);
  }
  template <class Use>
  void each_direction(Use use) const {
    each_pair([&](const PairResult& pair) {
      use(pair.a, pair.b, pair, pair.forward);
      use(pair.b, pair.a, pair, pair.backward);
    });
  }

  void report(const char* kind, const std::vector<Sample>& samples, const Say& say) {
    for (const Suspect& suspect : locate(samples, results_.hosts.size(), results_.rails))
      add(kind, suspect,
          suspect_name(suspect, results_) + " " +
              say(suspect, typical(suspect, samples), samples[suspect.samples.front()]));
  }

  void add(const char* kind, const Suspect& suspect, std::string text) {
    Finding finding{true, kind, std::move(text), std::nullopt, std::nullopt};
    if (suspect.kind != Kind::kAll && suspect.kind != Kind::kRail && suspect.kind != Kind::kPath)
      finding.host = suspect.host;
    if (suspect.is_one_rail) finding.rail = suspect.rail;
    findings_.push_back(std::move(finding));
  }

  const Results& results_;
  const Limits& limits_;
  const References references_;
  std::vector<Finding> findings_;
};

}  // namespace

bool is_slow_in(const Limits& limits, double gbit_per_s, double reference) {
  return gbit_per_s < limits.slow * reference || gbit_per_s < limits.min_gbit_per_s;
}

bool is_late_in(const Limits& limits, double us, double reference) {
  return (us > limits.late * reference && us > reference + kLatencyNoiseUs) ||
         (limits.max_latency_us > 0 && us > limits.max_latency_us);
}

std::vector<Finding> judge(const Results& results, const Limits& limits) {
  return Judge(results, limits).run();
}

std::string sentence(const std::vector<Finding>& findings) {
  const auto faults = std::ranges::count(findings, true, &Finding::is_fault);
  if (faults == 0) return "all hosts, NICs and rails are fine";
  const std::string& first = findings.front().text;
  if (faults == 1) return first;
  return fmt::format("{} (and {} more)", first, faults - 1);
}

}  // namespace ztcp::perf::probe
