// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A device in use: what all its connections share.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include "transport/comms/end_log.h"
#include "transport/sockets/socket.h"
#include "transport/verbs/device.h"
#include "transport/verbs/registrations.h"

namespace ztcp::verbs {

struct Rail {
  explicit Rail(Device found)
      : device(std::move(found)), registrations(device), ends(device.name) {}

  const Device device;
  Registrations registrations;
  comms::EndLog ends;
  std::optional<sockets::Listening> listening;  // Since the first listen; the control thread's.
  std::atomic<bool> is_port_down{false};        // Since it was told so.
};

}  // namespace ztcp::verbs
