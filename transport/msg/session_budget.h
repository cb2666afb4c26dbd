// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How many sessions all lanes of a NIC may have together, those that send and those that receive.
// A lane adds each session that it begins, so no lane has a share of its own that it may run out of
// while others have room.
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
