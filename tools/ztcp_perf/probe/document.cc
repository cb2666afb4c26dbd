// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/document.h"

#include <algorithm>

namespace ztcp::perf::probe {
namespace {

Json json_of(const Host& host) {
  Json json = {{"name", host.name}, {"failure", nullptr}, {"facts", nullptr}};
  if (!host.failure.empty()) json["failure"] = host.failure;
  if (!host.has_facts) return json;
  json["facts"] = to_json(host.facts);
  json["clock_offset_s"] = host.clock_offset_s;
  json["clock_error_s"] = host.clock_error_s;
  return json;
}

Json json_of(const Direction& direction) {
  Json json = {{"gbit_per_s", direction.gbit_per_s}, {"resent", nullptr}};
  if (direction.resent) json["resent"] = *direction.resent;
  return json;
}

Json json_of(const PairResult& pair, const std::vector<Host>& hosts) {
  Json json = {{"a", hosts[pair.a].name}, {"b", hosts[pair.b].name}, {"rail", pair.rail}};
  if (!pair.failure.empty()) {
    json["failure"] = pair.failure;
    return json;
  }
  json["latency_us"] = {{"samples", pair.latency.samples},
                        {"min", pair.latency.min_us},
                        {"p50", pair.latency.p50_us},
                        {"p99", pair.latency.p99_us}};
  json["a_to_b"] = json_of(pair.forward);
  json["b_to_a"] = json_of(pair.backward);
  json["both_gbit_per_s"] = pair.both_gbit_per_s;
  const auto [less, more] = std::minmax(pair.forward.gbit_per_s, pair.backward.gbit_per_s);
  json["asymmetry"] = more > 0 ? 1 - less / more : 0;
  return json;
}

}  // namespace

Json document_of(const Results& results, const std::vector<Finding>& findings, int exit_code) {
  Json json = {{"tool", "ztcp_perf probe"},     {"exit_code", exit_code},
               {"verdict", sentence(findings)}, {"rails", results.rails},
               {"rounds", results.rounds},      {"seconds", results.took_s}};
  json["findings"] = Json::array();
  for (const Finding& finding : findings) {
    Json one = {{"severity", finding.is_fault ? "fault" : "note"},
                {"kind", finding.kind},
                {"text", finding.text},
                {"host", nullptr},
                {"rail", nullptr}};
    if (finding.host) one["host"] = results.hosts[*finding.host].name;
    if (finding.rail) one["rail"] = *finding.rail;
    json["findings"].push_back(std::move(one));
  }
  json["hosts"] = Json::array();
  for (const Host& host : results.hosts) json["hosts"].push_back(json_of(host));
  json["pairs"] = Json::array();
  for (const PairResult& pair : results.pairs)
    json["pairs"].push_back(json_of(pair, results.hosts));
  return json;
}

}  // namespace ztcp::perf::probe
