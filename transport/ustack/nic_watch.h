// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What an operator should hear of a NIC: a warning when strangers, damaged frames and the like
// become many, at most one a minute of each kind, and one line with all counts when it is done
// with. Rows of a table: who adds a counter adds a row here, and it is said.
//
// A value: told the time and the counts. It allocates only when it has something to say.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/core/clock.h"
#include "transport/link/link.h"
#include "transport/msg/acceptor.h"
#include "transport/tcp/stack.h"

namespace ztcp::ustack {

// All that is counted of a NIC, as it stands.
struct NicCounts {
  tcp::Counters tcp;
  msg::AcceptorCounters acceptor;
  link::LinkCounters link;
  std::uint64_t ring_full = 0;  // Turns that ended at a full transmit ring.
};

// "sent 12 frames (3456 bytes), received ...; 2 rx_bad_checksum, 1 strays_bad_key"
std::string summary(const NicCounts& counts);

class NicWatch {
 public:
  // Of each kind: what is counted against its threshold, and how often it is warned of at most.
  static constexpr Duration kInterval = std::chrono::minutes(1);

  // What there is to warn of, each a line without the NIC's name; mostly nothing.
  std::vector<std::string> look(TimePoint now, const NicCounts& counts);

 private:
  static constexpr std::size_t kKinds = 7;
  struct Kind;
  static const std::array<Kind, kKinds>& kinds();

  struct Seen {
    TimePoint since{};
    TimePoint warned = TimePoint::min();
    NicCounts counts;  // At `since`.
  };
  std::array<Seen, kKinds> seen_{};
};

}  // namespace ztcp::ustack
