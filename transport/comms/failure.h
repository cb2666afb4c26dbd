// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state of a comm at the moment it failed, and the log line for an operator
// (core/failure_sentence.h) with what the streams measured.
#pragma once

#include <cstdint>
#include <string>

#include "core/address.h"
#include "core/clock.h"
#include "core/direction.h"
#include "core/link_state.h"
#include "core/result.h"
#include "core/stream.h"
#include "transport/msg/session.h"

namespace ztcp::comms {

class Backend;

struct Failure {
  Error error;
  std::uint64_t messages_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint32_t in_flight = 0;
  TimePoint at{};
  StreamHealth health;  // The state of its streams before they ended.
  LinkState link = LinkState::kUp;
  msg::FailureDetail session;  // The message layer's reason, if it has one besides the Error.
  std::string detail;          // Else a text for the log, such as the name of the dead process.
};

// Begins with the peer, ends with advice.
std::string failure_line(const Failure& failure, Direction direction, Endpoint remote,
                         const Backend& backend);

}  // namespace ztcp::comms
