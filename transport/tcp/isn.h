// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Numbers that attackers must not guess: initial sequence numbers (RFC 6528), timestamp offsets
// (RFC 7323 section 7.1), source ports (RFC 6056 section 3.3.3), flow labels (RFC 6437), and
// positions in a hash table.
// Owned by a Stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/address.h"
#include "core/clock.h"
#include "core/siphash.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class Unguessable {
 public:
  explicit Unguessable(const std::array<std::uint64_t, 2>& secret) : secret_(secret) {}

  // RFC 6528 section 3: a clock of 4 us ticks plus a keyed hash of the connection's endpoints.
  SeqNum initial_sequence(TimePoint now, Endpoint local, Endpoint remote) const {
    const auto ticks = static_cast<std::uint64_t>(now.time_since_epoch().count()) >> 12;
    return SeqNum(static_cast<std::uint32_t>(ticks + hash(local, remote, kSequence)));
  }
  std::uint32_t timestamp_offset(Endpoint local, Endpoint remote) const {
    return static_cast<std::uint32_t>(hash(local, remote, kTimestamp));
  }
  // Start of the search for a free source port; differs at each call.
  std::uint32_t port_offset(Endpoint local, Endpoint remote) {
    return static_cast<std::uint32_t>(hash(local, remote, kPort + ++connects_));
  }
  // RFC 6437 section 3: a label for each flow, which lets routers spread flows over equal paths.
  // `changes`: how often the flow has changed its label to leave a path.
  std::uint32_t flow_label(Endpoint local, Endpoint remote, std::uint32_t changes = 0) const {
    return static_cast<std::uint32_t>(hash(local, remote, kFlowLabel - changes)) & 0xfffffU;
  }
  // For a Demux.
  std::array<std::uint64_t, 2> table_secret() const {
    return {hash({}, {}, kSequence), hash({}, {}, kTimestamp)};
  }

 private:
  enum Purpose : std::uint64_t { kSequence, kTimestamp, kPort, kFlowLabel = UINT64_MAX };

  std::uint64_t hash(Endpoint local, Endpoint remote, std::uint64_t purpose) const {
    const std::array<std::uint64_t, 6> name{local.address.high,
                                            local.address.low,
                                            remote.address.high,
                                            remote.address.low,
                                            std::uint64_t{local.port} << 16 | remote.port,
                                            purpose};
    std::array<std::byte, sizeof name> bytes;
    std::memcpy(bytes.data(), name.data(), bytes.size());
    return siphash(secret_, bytes);
  }

  std::array<std::uint64_t, 2> secret_;
  std::uint64_t connects_ = 0;
};

}  // namespace ztcp::tcp
