// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The end of a device's summary line: those of its counters that are not zero, each by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "transport/stats/counter_row.h"

namespace ztcp::comms {

class CounterList {
 public:
  // "sent 12 frames (3456 bytes), ...", to which the counters are appended.
  explicit CounterList(std::string line) : line_(std::move(line)), before_(line_.size()) {}

  template <class Rows, class Counts>
  CounterList& add(const Rows& rows, const Counts& counts) {
    for (const stats::CounterRow<Counts>& row : rows) add(row.read(counts), row.name);
    return *this;
  }
  std::string text() const { return line_; }

 private:
  // A log line has 1023 bytes, of which the device's name and the words before the summary take
  // some.
  static constexpr std::size_t kMostBytes = 950;
  static constexpr std::string_view kMore = ", and more";

  void add(std::uint64_t count, const char* name) {
    if (count == 0 || is_full_) return;
    const std::string part =
        (line_.size() == before_ ? "; " : ", ") + std::to_string(count) + " " + name;
    is_full_ = line_.size() + part.size() + kMore.size() > kMostBytes;
    if (is_full_)
      line_ += kMore;
    else
      line_ += part;
  }

  std::string line_;
  std::size_t before_;
  bool is_full_ = false;
};

}  // namespace ztcp::comms
