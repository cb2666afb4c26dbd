// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Statistics of one connection, for tools and for log lines about failures: a value, filled in on
// request. Except for the bytes that arrive in order, only rare events are counted as they happen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/address.h"
#include "core/clock.h"

namespace ztcp::tcp {

struct ConnectionStatistics {
  const char* state = "";  // RFC 9293's name: "ESTABLISHED".
  Endpoint local;
  Endpoint remote;
  TimePoint opened{};
  TimePoint heard{};  // When the last acceptable segment came.

  Duration srtt{};  // Zero: no sample yet.
  Duration rttvar{};
  Duration rtt_min{};  // Of the last 10 to 20 s.
  Duration rto{};
  std::uint32_t mss_bytes = 0;
  std::uint32_t full_mss_bytes = 0;     // From the handshake; larger than mss_bytes where the path
                                        // carries less.
  const char* congestion_control = "";  // The algorithm in use.
  std::uint32_t cwnd_bytes = 0;
  std::uint32_t ssthresh_bytes = 0;
  std::uint32_t peer_window_bytes = 0;
  std::uint32_t own_window_bytes = 0;  // The advertised window.
  std::uint32_t in_flight_bytes = 0;   // Sent, and neither acknowledged, SACKed nor lost.
  std::uint64_t send_queue_bytes = 0;  // Written by the user and not acknowledged.

  std::uint64_t sent_bytes = 0;  // First transmissions.
  std::uint64_t acked_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint64_t received_bytes = 0;  // In order, delivered.
  std::uint64_t marked_bytes = 0;    // By switches; counted with accurate ECN.
  std::uint32_t timeouts = 0;
  std::uint32_t fast_recoveries = 0;
  std::uint32_t spurious_recoveries = 0;   // Among the two above.
  std::uint32_t dsacked_segments = 0;      // Retransmissions reported as needless (RFC 2883).
  std::uint32_t reordered_segments = 0;    // Sent once, and delivered after later ones.
  std::uint32_t most_reordered_bytes = 0;  // Largest distance, in bytes.
  std::uint32_t tail_probes = 0;
  std::uint32_t zero_windows = 0;    // How often the peer closed its window.
  std::uint32_t ecn_reductions = 0;  // Congestion windows reduced for marks.
  std::uint32_t reroutes = 0;        // Changes of the flow label.
  std::uint32_t out_of_order_segments = 0;
  std::uint32_t duplicate_segments = 0;
};

// The packet size that the path to a host carries has changed.
struct PathMtuChange {
  enum class Cause : std::uint8_t {
    kRouter,   // A router reported it (RFC 1191, 8201).
    kSilence,  // Packets of the old size stay unanswered while small ones do not.
    kProbe,    // A probe of the larger size got through.
  };
  IpAddress remote;
  std::uint32_t before_bytes = 0;  // IP packets.
  std::uint32_t now_bytes = 0;     // 0: a new connection fails.
  Cause cause{};
};

// A connection has chosen another algorithm (auto_control.h).
struct CongestionControlChange {
  IpAddress remote;
  const char* now = "";
  Duration min_rtt{};
};

// The router for new connections to other networks, where routers advertise themselves.
struct RouterChange {
  IpAddress before;  // Unspecified: none.
  IpAddress now;
};

// A connection has changed its flow label, so that its packets may take another path.
struct Reroute {
  enum class Cause : std::uint8_t {
    kTimeouts,    // Retransmission timeouts in a row: the path to the peer may be broken.
    kDuplicates,  // The peer repeats bytes that were acknowledged: the path of the ACKs may be.
    kMarks,       // Round trips in a row with most bytes marked: the path is congested.
  };
  Endpoint remote;
  std::uint16_t local_port = 0;
  Cause cause{};
  std::uint32_t evidence = 0;  // The number of these.
};

// The address of a NIC that takes it from a router's advertisement (advertised_address.h).
struct TakenAddress {
  IpPrefix address;
  IpAddress router;
  TimePoint valid_until{};
  TimePoint preferred_until{};  // Later it is deprecated: another one would be better.
};

struct AddressChange {
  enum class Kind : std::uint8_t {
    kDeprecated,   // Its preferred lifetime is over; it is used nevertheless.
    kEnded,        // Its valid lifetime is over: new connections fail.
    kRenewed,      // After one of the two: an advertisement gives it new lifetimes.
    kOtherPrefix,  // A router advertises another prefix, too; noted once.
  };
  Kind kind{};
  IpAddress own;
  IpPrefix prefix;  // The advertised one.
  IpAddress router;
  Duration valid{};  // The rest of the valid lifetime.
};

// Changes that were not fetched yet. Several at one time: the first are kept, since connections to
// one host find the same.
template <class Change>
class ChangeQueue {
 public:
  void add(const Change& change) {
    if (count_ < kMost) changes_[count_++] = change;
  }
  std::optional<Change> take() {
    if (next_ == count_) {
      next_ = count_ = 0;
      return std::nullopt;
    }
    return changes_[next_++];
  }

 private:
  static constexpr std::size_t kMost = 8;
  std::array<Change, kMost> changes_;
  std::size_t next_ = 0;  // Next to be fetched.
  std::size_t count_ = 0;
};

}  // namespace ztcp::tcp
