// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Log lines that are made with the baton held and written after it was given back: a logger may
// block.
#pragma once

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"

namespace ztcp::comms {

class DeferredLog {
 public:
  struct Line {
    log::Level level;
    std::string text;
  };

  // Drops the line where memory is short, and never throws std::bad_alloc.
  template <class MakeText>
  void add(log::Level level, MakeText&& make_text) {
    try {
      lines_.push_back({level, make_text()});
    } catch (const std::bad_alloc&) {
    }
  }
  bool empty() const { return lines_.empty(); }
  std::vector<Line> take() { return std::exchange(lines_, {}); }

 private:
  std::vector<Line> lines_;
};

}  // namespace ztcp::comms
