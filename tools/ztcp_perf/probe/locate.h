// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the common cause of bad measurements: a host, a NIC, one direction of it, a rail, or else
// a path between two hosts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ztcp::perf::probe {

// One measurement of one direction.
struct Sample {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t rail = 0;
  bool is_bad = false;
  double value = 0;  // For the report.
};

struct Suspect {
  enum class Kind : std::uint8_t {
    kAll,       // The network as a whole.
    kRail,      // One rail, on all hosts.
    kHost,      // All NICs of a host, both directions.
    kNic,       // One NIC of several, both directions.
    kSends,     // A host or NIC, as the sender only.
    kReceives,  // As the receiver only.
    kPath,      // From one host to one other.
  };
  Kind kind = Kind::kAll;
  std::size_t host = 0;
  std::size_t peer = 0;                   // kPath: the receiver.
  std::size_t rail = 0;                   // kRail, kNic, kPath; kSends and kReceives of one NIC.
  bool is_one_rail = false;               // Whether `rail` means anything.
  bool is_both_ways = false;              // kPath.
  std::vector<std::size_t> samples = {};  // Indices of the bad samples it explains.
};

// A suspect explains bad samples if at least this share of all its samples is bad. The network and
// a rail need more: with three hosts one bad host spoils two thirds of their samples, and a
// disturbed one must not turn that into a bad network.
inline constexpr double kShareOfSuspect = 0.75;
inline constexpr double kShareOfRail = 0.9;

// Suspects by the number of bad samples explained, most first. Each bad sample belongs to exactly
// one of them. With two hosts there is nothing to tell the ends apart: the path is named.
std::vector<Suspect> locate(std::span<const Sample> samples, std::size_t hosts, std::size_t rails);

}  // namespace ztcp::perf::probe
