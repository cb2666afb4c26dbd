// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Limit on the sessions of all lanes of a NIC together, sending and receiving ones. A lane adds
// each session that it begins, so no lane has a share of its own that may run out while others have
// room.
#pragma once

#include <cstddef>

namespace ztcp::msg {

class SessionBudget {
 public:
  virtual ~SessionBudget() = default;

  virtual std::size_t most() const = 0;
  virtual std::size_t left() const = 0;
  virtual void add() = 0;
  virtual void remove(std::size_t count) = 0;
};

}  // namespace ztcp::msg
