// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/messages.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/common/printable.h"

namespace ztcp::perf::probe {

std::optional<Json> parse_line(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<std::string> text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return tools::printable(found->get_ref<const std::string&>());
}

std::optional<double> number_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

int whole_number_in(const Json& json, const char* name) {
  const double value = number_in(json, name).value_or(0);
  if (value < 0 || value > std::numeric_limits<int>::max()) return 0;
  return static_cast<int>(value);
}

Json to_json(const HostFacts& facts) {
  Json nics = Json::array();
  for (const NicFacts& nic : facts.nics)
    nics.push_back({{"name", nic.name},
                    {"device", nic.device},
                    {"speed_mbps", nic.speed_mbps},
                    {"mtu_bytes", nic.mtu_bytes}});
  return {{"version", facts.version},
          {"plugin", facts.plugin},
          {"config", facts.config},
          {"kernel", facts.kernel},
          {"machine", facts.machine},
          {"cpus", facts.cpus},
          {"nics", nics}};
}

HostFacts facts_of(const Json& json) {
  constexpr std::size_t kMostNics = 256;
  const auto text = [&](const char* name) { return text_in(json, name).value_or("unknown"); };
  HostFacts facts{.version = text("version"),
                  .plugin = text("plugin"),
                  .config = text("config"),
                  .kernel = text("kernel"),
                  .machine = text_in(json, "machine").value_or(""),
                  .cpus = whole_number_in(json, "cpus"),
                  .nics = {}};
  const auto nics = json.find("nics");
  if (nics == json.end() || !nics->is_array()) return facts;
  for (const Json& nic : *nics) {
    if (!nic.is_object() || facts.nics.size() == kMostNics) continue;
    facts.nics.push_back({.name = text_in(nic, "name").value_or("unnamed"),
                          .device = whole_number_in(nic, "device"),
                          .speed_mbps = whole_number_in(nic, "speed_mbps"),
                          .mtu_bytes = whole_number_in(nic, "mtu_bytes")});
  }
  return facts;
}

Json to_json(const Measured& measured) {
  Json json = {{"latency_samples", measured.latency.samples},
               {"latency_min_us", measured.latency.min_us},
               {"latency_p50_us", measured.latency.p50_us},
               {"latency_p99_us", measured.latency.p99_us},
               {"forward_gbit_per_s", measured.forward_gbit_per_s},
               {"backward_gbit_per_s", measured.backward_gbit_per_s},
               {"both_gbit_per_s", measured.both_gbit_per_s},
               {"resent", nullptr}};
  if (measured.resent) json["resent"] = *measured.resent;
  return json;
}

Measured measured_of(const Json& json) {
  const auto value = [&](const char* name) {
    return std::max(0.0, number_in(json, name).value_or(0));
  };
  return {.latency = {.samples = static_cast<std::size_t>(whole_number_in(json, "latency_samples")),
                      .min_us = value("latency_min_us"),
                      .p50_us = value("latency_p50_us"),
                      .p99_us = value("latency_p99_us")},
          .forward_gbit_per_s = value("forward_gbit_per_s"),
          .backward_gbit_per_s = value("backward_gbit_per_s"),
          .both_gbit_per_s = value("both_gbit_per_s"),
          .resent = number_in(json, "resent")};
}

}  // namespace ztcp::perf::probe
