// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a comm failed, as it was then, and the line that an operator reads of it.
#pragma once

#include <cstdint>
#include <string>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/core/stream.h"
#include "transport/link/link_state.h"
#include "transport/msg/session.h"

namespace ztcp::comms {

class Backend;

enum class Direction : std::uint8_t { kSend, kReceive };

struct Failure {
  Error error;
  std::uint64_t messages_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint32_t in_flight = 0;
  TimePoint at{};
  StreamHealth health;  // Of its streams, before they ended.
  link::LinkState link = link::LinkState::kUp;
  msg::FailureDetail session;  // What the message layer knows besides the Error,
  std::string detail;          // or else who ended it.
};

// Begins with the peer, ends with what can be done about it.
std::string failure_line(const Failure& failure, Direction direction, Endpoint remote,
                         const Backend& backend);

}  // namespace ztcp::comms
