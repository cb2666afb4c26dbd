// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What one connection tells of itself, for tools and for lines about failures: a value, filled in
// when somebody asks. What is counted for it on the way is counted where something rare happens,
// but for the bytes that arrive in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "transport/core/address.h"
#include "transport/core/clock.h"

namespace ztcp::tcp {

struct ConnectionStatistics {
  const char* state = "";  // By RFC 9293's name: "ESTABLISHED".
  Endpoint local;
  Endpoint remote;
  TimePoint opened{};
  TimePoint heard{};  // When the last acceptable segment came.

  Duration srtt{};  // Zero: no sample yet.
  Duration rttvar{};
  Duration rto{};
  std::uint32_t mss_bytes = 0;
  std::uint32_t full_mss_bytes = 0;  // By the handshake; larger where the path takes less.
  std::uint32_t cwnd_bytes = 0;
  std::uint32_t ssthresh_bytes = 0;
  std::uint32_t peer_window_bytes = 0;
  std::uint32_t own_window_bytes = 0;  // What we offer.
  std::uint32_t in_flight_bytes = 0;   // Sent, and neither acknowledged, SACKed nor lost.
  std::uint64_t send_queue_bytes = 0;  // Written by the user and not acknowledged.

  std::uint64_t sent_bytes = 0;  // First transmissions.
  std::uint64_t acked_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint64_t received_bytes = 0;  // In order, handed up.
  std::uint32_t timeouts = 0;
  std::uint32_t fast_recoveries = 0;
  std::uint32_t spurious_recoveries = 0;   // Of the two above.
  std::uint32_t dsacked_segments = 0;      // Repeats that the peer reports as needless (RFC 2883).
  std::uint32_t reordered_segments = 0;    // Sent once, and delivered behind later ones.
  std::uint32_t most_reordered_bytes = 0;  // By how many bytes at most.
  std::uint32_t tail_probes = 0;
  std::uint32_t zero_windows = 0;  // How often the peer shut its window.
  std::uint32_t out_of_order_segments = 0;
  std::uint32_t duplicate_segments = 0;
};

// The path to a host takes other packets than before.
struct PathMtuChange {
  enum class Cause : std::uint8_t {
    kRouter,   // A router said so (RFC 1191).
    kSilence,  // Packets of the size before stay unanswered while small ones do not.
    kProbe,    // A probe of the larger size got through.
  };
  IpAddress remote;
  std::uint32_t before_bytes = 0;  // IPv4 packets.
  std::uint32_t now_bytes = 0;     // 0: a new connection fails.
  Cause cause{};
};

// Those that nobody has fetched yet. Of many at one time the first are kept: connections to one
// host find the same.
class PathMtuChanges {
 public:
  void add(const PathMtuChange& change) {
    if (count_ < kMost) changes_[count_++] = change;
  }
  std::optional<PathMtuChange> take() {
    if (next_ == count_) {
      next_ = count_ = 0;
      return std::nullopt;
    }
    return changes_[next_++];
  }

 private:
  static constexpr std::size_t kMost = 8;
  std::array<PathMtuChange, kMost> changes_;
  std::size_t next_ = 0;  // To be fetched.
  std::size_t count_ = 0;
};

}  // namespace ztcp::tcp
