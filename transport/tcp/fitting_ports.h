// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Source ports whose answers came after their connection had gone on to the next port
// (Connection::leave_port()): the NICs at both ends bring segments of this port to the right
// process, so it is the next one to try. Owned by a Stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/address.h"

namespace ztcp::tcp {

class FittingPorts {
 public:
  // The oldest one is forgotten where there is no room.
  void note(Endpoint remote, std::uint16_t port) {
    ports_[next_] = {remote, port};
    next_ = (next_ + 1) % ports_.size();
  }
  // Forgets it: a second late answer brings it back.
  std::optional<std::uint16_t> take(Endpoint remote) {
    for (Fitting& one : ports_)
      if (one.port != 0 && one.remote == remote) return std::exchange(one.port, std::uint16_t{0});
    return std::nullopt;
  }

 private:
  struct Fitting {
    Endpoint remote;
    std::uint16_t port = 0;  // 0: none.
  };
  std::array<Fitting, 32> ports_{};
  std::size_t next_ = 0;
};

}  // namespace ztcp::tcp
