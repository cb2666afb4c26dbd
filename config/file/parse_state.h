// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A fabric while it is being read: values, their places in the file, and the problems so far.
// Passed from parse() to validate(); nothing else sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/file/load.h"
#include "config/settings.h"

namespace ztcp::config {

// A fabric of 64 NICs takes 30 KiB; a file of this size is not a config file.
inline constexpr std::size_t kMaxFileBytes = 1U << 20;

struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Finding {
  Position place;
  std::string what;
  std::string mend;
};

struct ParseState {
  Fabric fabric;
  // Places of keys, "tcp.rto_min_us" and "nic[0].mtu_bytes", and of tables, "tcp" and "nic[0]".
  // Keys that are absent from the file, or have an unreadable value, are absent here.
  std::map<std::string, Position, std::less<>> places;
  std::set<std::string, std::less<>> faulty;  // Keys with an unreadable value.
  std::vector<Finding> findings;
  bool lacks_nics = false;  // Also one of the findings.

  bool has(std::string_view key) const { return places.contains(key); }
  bool is_faulty(std::string_view key) const { return faulty.contains(key); }
  void find_fault(std::string_view key, std::string what, std::string mend);
};

std::string nic_key(std::size_t index, std::string_view key);  // "nic[0].mtu_bytes"

LoadResult not_loaded(LoadFailure failure, const std::string& path, Problem problem);
LoadResult too_large(const std::string& path);

// Judges values together, and those that depend on a NIC's driver. The reader has checked the
// ranges and forms of single values.
void validate(ParseState& state);
// The part that judges several NICs together.
void validate_together(ParseState& state);

}  // namespace ztcp::config
