// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam below all_reduce.h: messages to and from the other hosts of a group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/result.h"

namespace ztcp::reduce {

// Between two hosts, the messages of a lane meet the receives of that lane in posting order. The
// lanes are independent of each other.
enum class Lane : std::uint8_t { kContributions, kSums };
inline constexpr std::size_t kLanes = 2;

// Memory as the seam registered it; null where it needs no registration.
class Registration {
 protected:
  ~Registration() = default;
};

struct Piece {
  std::byte* address = nullptr;
  std::size_t size_bytes = 0;
  Registration* registration = nullptr;
};

class Peers {
 public:
  // A message under way, until test() returned true.
  using Ticket = void*;

  // nullptr: no room now, call again.
  virtual Result<Ticket> send(std::size_t host, Lane lane, const Piece& piece) = 0;
  virtual Result<Ticket> receive(std::size_t host, Lane lane, const Piece& piece) = 0;
  // False: under way. Fails where the message has another size than `expected_bytes`: then the
  // hosts reduce different vectors.
  virtual Result<bool> test(Ticket ticket, std::size_t expected_bytes) = 0;

 protected:
  ~Peers() = default;
};

}  // namespace ztcp::reduce
