// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The content of a statistics page at one moment, as readers use it: plain values without pointers
// into the page. page_reader.h makes it, the tools and their tests consume it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/histogram.h"
#include "transport/stats/counters.h"

namespace ztcp::stats {

using ztcp::Histogram;
using ztcp::quantile_ns;
using ztcp::total;

// Size classes of messages: up to 256 B, 4 KiB, 64 KiB, 1 MiB, and larger.
inline constexpr std::size_t kSizeClasses = 5;
inline constexpr std::array<std::uint64_t, kSizeClasses - 1> kSizeClassLimits = {
    256, 4U << 10, 64U << 10, 1U << 20};
constexpr std::size_t size_class_of(std::uint64_t bytes) {
  std::size_t index = 0;
  while (index < kSizeClassLimits.size() && bytes > kSizeClassLimits[index]) ++index;
  return index;
}

enum class Carrier : std::uint8_t { kUserspaceTcp = 1, kKernelSockets = 2, kRdma = 3 };
enum class Way : std::uint8_t { kSend = 0, kReceive = 1 };  // Direction of a connection's messages.

// The reason for which the oldest message of a connection waits.
enum class Waiting : std::uint8_t {
  kNothing = 0,      // No message is posted.
  kPeerData = 1,     // A receive: the peer has not sent.
  kPeerReceive = 2,  // A send: the peer has posted no receive (no credit).
  kNetwork = 3,      // Bytes are in flight, or are being sent again.
  kApplication = 4,  // Data or credit is there, and this side has nothing posted.
  kPeerWindow = 5,   // The peer's process reads nothing: its kernel holds all, or shut the window.
  kConnecting = 6,
  kThisHost = 7,  // This process's threads run late.
};

enum class LinkStatus : std::uint8_t { kUnknown = 0, kUp = 1, kDown = 2, kLost = 3 };

struct Process {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;  // Field 22 of /proc/PID/stat: tells a reused pid.
  bool is_running = false;        // The page's lock is held by its owner.
  bool has_ended_cleanly = false;
  std::string version;  // ztcp's.
  std::string host;
  std::string command;            // /proc/PID/comm at start.
  std::string config_path;        // Empty: no config.
  std::uint64_t config_hash = 0;  // 0: no config.
  int rank = -1;                  // -1: unknown.
  int ranks = 0;                  // 0: unknown.
  int local_rank = -1;
  std::int64_t started_realtime_ns = 0;
  std::int64_t updated_realtime_ns = 0;   // The last refresh by any lane.
  std::int64_t updated_monotonic_ns = 0;  // The same by CLOCK_MONOTONIC.
  // Read by the reader itself while the process runs (process_facts.h).
  std::uint64_t cpu_throttled_ns = 0;
  std::uint64_t cpu_stolen_ns = 0;
  std::uint32_t descriptors_open = 0;
  std::uint32_t descriptors_limit = 0;
  std::uint64_t connections_unlisted = 0;  // Beyond the page's room.
};

struct Device {
  // In the device table; NCCL's number, unless NCCL has merged it of others.
  std::uint32_t index = 0;
  std::string name;  // "ztcp0".
  Carrier carrier = Carrier::kUserspaceTcp;
  LinkStatus link = LinkStatus::kUnknown;
  std::string nic;   // PCI address or interface.
  std::string plan;  // Text of the init line: lanes, mode, reasons.
  std::uint32_t speed_mbps = 0;
  std::uint32_t mtu_bytes = 0;  // 0: unknown.
  std::string address;          // With several NICs all of them, with commas.
  int numa_node = -1;           // -1: unknown.
  std::string gpu{};            // The one that it serves; empty: any.
};

struct Lane {
  std::uint32_t device = 0;  // Index of its device.
  std::uint32_t number = 0;  // Among the device's lanes.
  int cpu = -1;
  std::uint32_t connections = 0;
  std::uint32_t queue_depth = 0;   // Posted messages that are not done.
  std::uint64_t queued_bytes = 0;  // Written and not yet sent.
  std::int64_t updated_monotonic_ns = 0;
  CounterValues counters;
};

struct Connection {
  std::uint64_t id = 0;  // Unique in its process.
  std::uint32_t device = 0;
  std::uint32_t lane = 0;
  Way way = Way::kSend;
  std::string state;  // "connecting", "open", "closing", "failed".
  std::string peer;   // Address and port.
  std::string peer_host;
  std::uint64_t communicator = 0;  // NCCL's hash; 0: unknown.
  Waiting waiting = Waiting::kNothing;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  std::uint32_t messages_in_flight = 0;
  std::uint64_t oldest_ns = 0;    // Age of the oldest message that is not done; 0: none.
  std::uint64_t progress_ns = 0;  // Time since a byte or message moved; 0 while nothing is posted.
  std::uint64_t slow_messages = 0;
  std::uint64_t stalled_messages = 0;
  std::uint64_t credit_stalls = 0;    // Times that messages began to wait for the peer's receive.
  std::uint64_t credit_stall_ns = 0;  // Time of these waits.
  bool is_slow = false;               // The oldest message is.
  bool is_stalled = false;            // The oldest message is.
  std::int64_t opened_realtime_ns = 0;
  std::int64_t updated_monotonic_ns = 0;
};

struct Flow {
  std::uint64_t connection = 0;  // Connection::id.
  std::uint32_t number = 0;      // Among its connection's flows.
  // RFC 9293's name; of a rail of RDMA its health: "up", "down", and the steps between.
  std::string state;
  std::string congestion_control;  // The algorithm in use; empty: not known.
  std::string local;
  std::string remote;
  std::uint32_t in_flight_bytes = 0;
  std::uint32_t cwnd_bytes = 0;
  std::uint32_t peer_window_bytes = 0;
  std::uint32_t own_window_bytes = 0;
  std::uint32_t mss_bytes = 0;
  std::uint64_t rtt_min_ns = 0;  // 0: unknown.
  std::uint64_t rtt_ns = 0;      // Smoothed.
  std::uint64_t rtt_p50_ns = 0;
  std::uint64_t rtt_p99_ns = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t retransmitted_bytes = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t fast_recoveries = 0;
  std::uint32_t tail_probes = 0;
  std::uint32_t spurious_recoveries = 0;
  std::uint64_t needless_bytes = 0;  // Retransmitted although the peer had them.
  std::uint32_t zero_windows = 0;
  // Bytes waited for the peer's window: closed (userspace TCP), or too small (kernel's TCP).
  std::uint64_t zero_window_ns = 0;
  std::uint32_t failures = 0;    // RDMA: how often the rail failed,
  std::uint32_t recoveries = 0;  // and came back.
};

// Latencies of messages from post to done, with one peer.
struct Latency {
  std::uint32_t device = 0;
  Way way = Way::kSend;
  std::string peer;  // Address; empty: all peers beyond the table's room.
  std::string host;  // The peer's; empty: unknown.
  std::array<Histogram::Counts, kSizeClasses> by_class{};
};

struct Snapshot {
  Process process;
  std::vector<Device> devices;
  std::vector<Lane> lanes;
  std::vector<Connection> connections;
  std::vector<Flow> flows;
  std::vector<Latency> latencies;
};

}  // namespace ztcp::stats
