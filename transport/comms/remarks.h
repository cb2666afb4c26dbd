// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Lines that are made with the baton held, when there is something to say, and said without it: a
// logger may block.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "transport/core/log.h"

namespace ztcp::comms {

class Remarks {
 public:
  struct Line {
    log::Level level;
    std::string text;
  };

  void add(log::Level level, std::string text) { lines_.push_back({level, std::move(text)}); }
  bool empty() const { return lines_.empty(); }
  std::vector<Line> take() { return std::exchange(lines_, {}); }

 private:
  std::vector<Line> lines_;
};

}  // namespace ztcp::comms
