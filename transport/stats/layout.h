// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The bytes of a statistics page: a header and five tables of fixed size. The owner maps the file
// and writes; readers copy. Each entry of a table is written by one thread of the owner at a time,
// under a sequence number that is odd meanwhile. Numbers are in the host's byte order, since a page
// never leaves its host. Whoever changes a record raises kLayoutVersion.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "transport/stats/counters.h"
#include "transport/stats/snapshot.h"

namespace ztcp::stats {

inline constexpr std::uint64_t kMagic = 0x746174737063747a;  // "ztcpstat".
inline constexpr std::uint32_t kLayoutVersion = 3;

inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxLanes = 128;
inline constexpr std::size_t kMaxConnections = 1024;
inline constexpr std::size_t kMaxFlows = 2048;
inline constexpr std::size_t kMaxLatencies = 256;
inline constexpr std::size_t kCounterRoom = 96;
static_assert(kCounters <= kCounterRoom);

// Distinguishes tables of counters, whose values lie in the page by index.
constexpr std::uint64_t counter_names_hash() {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a.
  for (const CounterText& text : kCounterTexts)
    for (const char c : std::string_view(text.name))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Zero-terminated; longer texts are cut.
template <std::size_t N>
struct Text {
  std::array<char, N> chars;

  void set(std::string_view text) {
    chars.fill('\0');
    std::copy_n(text.begin(), std::min(text.size(), N - 1), chars.begin());
  }
};

struct DeviceRecord {
  std::uint64_t used;
  std::uint32_t carrier;  // Carrier.
  std::uint32_t link;     // LinkStatus.
  std::uint32_t speed_mbps;
  std::uint32_t mtu_bytes;
  std::int32_t numa_node;
  std::uint32_t reserved;
  Text<32> name;
  Text<64> nic;
  Text<64> address;
  Text<48> gpu;
  Text<448> plan;
};

struct LaneRecord {
  std::uint64_t used;
  std::uint32_t device;
  std::uint32_t number;
  std::int32_t cpu;
  std::uint32_t connections;
  std::uint64_t queued_bytes;
  std::int64_t updated_monotonic_ns;
  std::uint32_t queue_depth;
  std::uint32_t reserved;
  std::array<std::uint64_t, kCounterRoom> counters;  // By Counter.
};

struct ConnectionRecord {
  std::uint64_t used;
  std::uint64_t id;
  std::uint64_t communicator;
  std::uint64_t bytes;
  std::uint64_t messages;
  std::uint64_t oldest_ns;
  std::uint64_t progress_ns;
  std::uint64_t slow_messages;
  std::uint64_t stalled_messages;
  std::uint64_t credit_stalls;
  std::uint64_t credit_stall_ns;
  std::int64_t opened_realtime_ns;
  std::int64_t updated_monotonic_ns;
  std::uint32_t device;
  std::uint32_t lane;
  std::uint32_t messages_in_flight;
  std::uint8_t way;      // Way.
  std::uint8_t waiting;  // Waiting.
  std::uint8_t is_slow;
  std::uint8_t is_stalled;
  Text<16> state;
  Text<48> peer;  // Room for an IPv6 address and a port.
  Text<64> peer_host;
};

struct FlowRecord {
  std::uint64_t used;
  std::uint64_t connection;
  std::uint32_t number;
  std::uint32_t in_flight_bytes;
  std::uint32_t cwnd_bytes;
  std::uint32_t peer_window_bytes;
  std::uint32_t own_window_bytes;
  std::uint32_t mss_bytes;
  std::uint64_t rtt_min_ns;
  std::uint64_t rtt_ns;
  std::uint64_t rtt_p50_ns;
  std::uint64_t rtt_p99_ns;
  std::uint64_t sent_bytes;
  std::uint64_t received_bytes;
  std::uint64_t retransmitted_bytes;
  std::uint64_t needless_bytes;
  std::uint64_t zero_window_ns;
  std::uint32_t timeouts;
  std::uint32_t fast_recoveries;
  std::uint32_t tail_probes;
  std::uint32_t spurious_recoveries;
  std::uint32_t zero_windows;
  std::uint32_t reserved;
  Text<16> state;
  Text<64> local;
  Text<64> remote;
  std::uint32_t failures;
  std::uint32_t recoveries;
  Text<16> congestion_control;
};

// Which messages a latency entry counts. The histograms beside it are counters that several lanes
// increment.
struct LatencyRecord {
  std::uint64_t used;
  std::uint32_t device;
  std::uint32_t way;  // Way.
  Text<48> peer;
  Text<56> host;  // The peer's, maybe cut. The last member: it is not compared.
};

// A record under its sequence number. Records are copied word by word, so that a copy beside a
// write is a well-defined mixture, and the sequence number tells it.
template <class Record>
struct alignas(64) Entry {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0);
  static constexpr std::size_t kWords = sizeof(Record) / 8;
  using Words = std::array<std::uint64_t, kWords>;

  std::uint64_t sequence;
  Words words;

  // One thread at a time. The words are stored in order after the odd number, by release stores
  // rather than behind a fence, which ThreadSanitizer can't follow.
  void write(const Record& record) {
    Words copy;
    std::memcpy(copy.data(), &record, sizeof(Record));
    const std::atomic_ref<std::uint64_t> number(sequence);
    const std::uint64_t before = number.load(std::memory_order_relaxed) & ~std::uint64_t{1};
    number.store(before + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < kWords; ++i)
      std::atomic_ref(words[i]).store(copy[i], std::memory_order_release);
    number.store(before + 2, std::memory_order_release);
  }
};

struct alignas(64) LatencyEntry {
  Entry<LatencyRecord> record;
  std::array<Histogram::Counts, kSizeClasses> by_class;

  // Any thread of the owner.
  void add(std::size_t size_class, std::uint64_t nanoseconds) {
    std::uint32_t& count = by_class[size_class][Histogram::bucket_of(nanoseconds)];
    std::atomic_ref(count).fetch_add(1, std::memory_order_relaxed);
  }
};

// Written before the page has its name, except for the words at its end: these are single numbers
// that any lane stores.
struct alignas(4096) Header {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t page_bytes;
  std::uint64_t counter_names;  // counter_names_hash().
  std::uint32_t pid;            // As the owner sees it; a container has numbers of its own.
  std::int32_t rank;
  std::uint64_t start_ticks;
  std::uint64_t pid_namespace;  // Inode of /proc/self/ns/pid.
  std::uint64_t config_hash;
  std::int64_t started_realtime_ns;
  std::int32_t ranks;
  std::int32_t local_rank;
  Text<64> version;
  Text<64> host;
  Text<32> command;
  Text<512> config_path;

  alignas(64) std::int64_t updated_realtime_ns;
  std::int64_t updated_monotonic_ns;
  std::uint64_t connections_unlisted;
  std::uint64_t has_ended_cleanly;  // 0 or 1.
};

struct PageContent {
  Header header;
  std::array<Entry<DeviceRecord>, kMaxDevices> devices;
  std::array<Entry<LaneRecord>, kMaxLanes> lanes;
  std::array<Entry<ConnectionRecord>, kMaxConnections> connections;
  std::array<Entry<FlowRecord>, kMaxFlows> flows;
  std::array<LatencyEntry, kMaxLatencies> latencies;
};

inline constexpr std::size_t kPageBytes = sizeof(PageContent);
static_assert(kPageBytes < std::size_t{2} << 20);
static_assert(std::is_trivially_copyable_v<PageContent>);
static_assert(sizeof(Header) == 4096);
static_assert(sizeof(Entry<DeviceRecord>) == 704);
static_assert(sizeof(Entry<LaneRecord>) == 832);
static_assert(sizeof(Entry<ConnectionRecord>) == 256);
static_assert(sizeof(Entry<FlowRecord>) == 320);
static_assert(sizeof(LatencyEntry) == 1920);
static_assert(offsetof(Header, updated_realtime_ns) == 768);
static_assert(offsetof(PageContent, devices) == 4096);
static_assert(offsetof(PageContent, lanes) == 49152);
static_assert(offsetof(PageContent, connections) == 155648);
static_assert(offsetof(PageContent, flows) == 417792);
static_assert(offsetof(PageContent, latencies) == 1073152);
static_assert(kPageBytes == 1564672);

}  // namespace ztcp::stats
