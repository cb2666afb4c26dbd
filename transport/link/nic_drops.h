// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>

namespace ztcp::link {

// Frames that only the NIC or its driver knows of.
struct NicDrops {
  std::uint64_t rx_missed = 0;      // Dropped because the receive ring was full.
  std::uint64_t rx_no_buffers = 0;  // The driver got no buffer for the ring.
  std::uint64_t rx_errors = 0;      // Damaged.
  std::uint64_t tx_errors = 0;      // Not sent.

  bool operator==(const NicDrops&) const = default;
};

// Counts up from the first reading: a NIC may still have the counts of the process before. Some
// drivers set theirs back at a reset.
class DropCount {
 public:
  NicDrops add(const NicDrops& reading) {
    if (has_read_) {
      add(reading.rx_missed, last_.rx_missed, sum_.rx_missed);
      add(reading.rx_no_buffers, last_.rx_no_buffers, sum_.rx_no_buffers);
      add(reading.rx_errors, last_.rx_errors, sum_.rx_errors);
      add(reading.tx_errors, last_.tx_errors, sum_.tx_errors);
    }
    has_read_ = true;
    last_ = reading;
    return sum_;
  }

 private:
  static void add(std::uint64_t now, std::uint64_t before, std::uint64_t& sum) {
    if (now > before) sum += now - before;
  }

  bool has_read_ = false;
  NicDrops last_;
  NicDrops sum_;
};

}  // namespace ztcp::link
