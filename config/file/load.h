// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads ztcp.conf into a Fabric. The only user of toml++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::config {

class Machine;

enum class LoadFailure : std::uint8_t {
  kMissing,     // No such file: ztcp was not set up here.
  kUnreadable,  // Exists but can't be opened or read.
  kBroken,      // Wrong syntax or meaning; see problems.
};

struct LoadResult {
  // Present when the file can be honoured.
  std::optional<Fabric> fabric;
  LoadFailure failure = LoadFailure::kMissing;  // Meaningful when fabric is absent.
  Problems problems;                            // Every problem of the file, in file order.
  std::string path;                             // The path of the file.
  std::uint64_t hash = 0;                       // Of the file's text; 0: not read.
  // The file's settings if its only problem is that it has no [[nic]]: used by a host that finds
  // its NICs itself.
  std::optional<Fabric> without_nics = std::nullopt;
};

// Characters forbidden in the path of a memif socket: DPDK gets it among "key=value,..." settings.
inline constexpr std::string_view kNotInMemifPath = ",=[]\"\n ";

// Reads, parses and validates. Relative paths inside are resolved against the file's folder.
LoadResult load(Machine& machine, const std::string& path);
// Does the same for a text in memory; `path` names it in problems and resolves relative paths.
// Reads no file and no variable.
LoadResult parse(std::string_view text, const std::string& path);
// The text of a config file for `fabric`, with a comment above each key. Keys with their default
// value are written as comments. load() reads it back to an equal value.
std::string to_toml(const Fabric& fabric);

}  // namespace ztcp::config
