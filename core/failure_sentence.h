// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The log line on a connection that failed, for an operator. Every transport fills in these facts,
// so that one pattern finds the failures of all:
//
//   sending to 10.1.0.2:7471 over mlx5_0 port 1 failed: the peer stopped answering (the call);
//   5 messages (1000 bytes) done, 2 in flight; measurements; advice
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/address.h"
#include "core/direction.h"
#include "core/result.h"

namespace ztcp {

struct FailureSentence {
  Direction direction = Direction::kSend;
  Endpoint remote;
  std::string over;  // The device, where the line's beginning does not name it; may be empty.
  Error error;
  std::string reason;  // Replaces the error's own text, where one of the ends gave its reason.
  std::string detail;  // Follows the error's text: the name of the dead process, for instance.
  std::uint64_t messages_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint32_t in_flight = 0;  // Messages.
  // Clauses on measurements and advice, each without punctuation around it. Empty ones are left
  // out.
  std::vector<std::string> more;
};

std::string to_string(const FailureSentence& failure);

}  // namespace ztcp
