// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lines of JSON between the coordinator and the agents, one object a line. Pure.
//
// The coordinator asks, an agent answers each request with one line:
//   (start)                                       {"ztcp_probe": 1, "version": "0.1.0"}
//   {"do": "clock"}                               {"clock_ns": 1764300000000000000}
//   {"do": "facts"}                               {"facts": {...}}
//   {"do": "listen", "device": 0}                 {"handle": "00ff..."}
//   {"do": "measure", "handle": "...", "leads": true, "seconds": 1, "limit_s": 30}
//                                                 {"measured": {...}}
//   {"do": "stop"}                                ends a measurement; not answered itself
// or with {"error": "..."}. Lines that are not such an object are ignored: a login script's output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tools/ztcp_perf/probe/results.h"

namespace ztcp::perf::probe {

using Json = nlohmann::ordered_json;

// The version of these lines. An agent with another number is not used.
inline constexpr int kProtocol = 1;
// A longer line breaks the protocol.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20U;

// One end's part of a measurement. The leader's has everything, the other end's only `resent`.
struct Measured {
  Latency latency;
  double forward_gbit_per_s = 0;
  double backward_gbit_per_s = 0;
  double both_gbit_per_s = 0;
  std::optional<double> resent;  // Share of the bytes that this end sent.
};

// Absent: not an object in JSON.
std::optional<Json> parse_line(std::string_view line);
// With the newline.
std::string to_line(const Json& json);

// Values of a line by another process: absent or 0 where they have another type or range. Texts are
// made printable.
std::optional<std::string> text_in(const Json& json, const char* name);
std::optional<double> number_in(const Json& json, const char* name);
int whole_number_in(const Json& json, const char* name);

Json to_json(const HostFacts& facts);
HostFacts facts_of(const Json& json);
Json to_json(const Measured& measured);
Measured measured_of(const Json& json);

}  // namespace ztcp::perf::probe
