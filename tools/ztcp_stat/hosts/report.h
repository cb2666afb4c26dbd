// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host's report by `ztcp_setup --check --json`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace ztcp::stat::hosts {

enum class Severity : std::uint8_t { kGood, kWarning, kFault };
const char* name_of(Severity severity);

// One result; texts are without addresses (normal.h).
struct Check {
  std::string name;   // "mtu"; "problem": of the config as a whole.
  std::string where;  // "ztcp0"
  Severity severity = Severity::kGood;
  std::string what;
};

struct Report {
  std::string host;
  std::vector<Check> checks;
};

// The error is a reason for people.
tl::expected<Report, std::string> parse_report(std::string host, std::string_view json);

}  // namespace ztcp::stat::hosts
