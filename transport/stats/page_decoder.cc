// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_decoder.h"

#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>

namespace ztcp::stats {
namespace {

// Ends at the array's end if its zero is missing. Readers print these texts on terminals and as
// JSON: other characters than printable ASCII become question marks.
template <std::size_t N>
std::string text_of(const Text<N>& text) {
  const auto end = std::find(text.chars.begin(), text.chars.end(), '\0');
  std::string result(text.chars.begin(), end);
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  return result;
}

template <class Enum>
std::optional<Enum> enum_of(std::uint32_t number, Enum first, Enum last) {
  if (number < static_cast<std::uint32_t>(first) || number > static_cast<std::uint32_t>(last))
    return std::nullopt;
  return static_cast<Enum>(number);
}

class Decoder {
 public:
  Decoder(const PageCopies& copies, bool takes_torn) : copies_(copies), takes_torn_(takes_torn) {}

  Decoded run() {
    process();
    for (std::size_t i = 0; i < kMaxDevices; ++i) device(i);
    for (std::size_t i = 0; i < kMaxLanes; ++i)
      if (const auto record = take<LaneRecord>([i](const PageContent& page) -> const auto& {
            return page.lanes[i];
          }))
        lane(*record);
    for (std::size_t i = 0; i < kMaxConnections; ++i)
      if (const auto record = take<ConnectionRecord>([i](const PageContent& page) -> const auto& {
            return page.connections[i];
          }))
        connection(*record);
    for (std::size_t i = 0; i < kMaxFlows; ++i)
      if (const auto record = take<FlowRecord>([i](const PageContent& page) -> const auto& {
            return page.flows[i];
          }))
        flow(*record);
    for (std::size_t i = 0; i < kMaxLatencies; ++i)
      if (const auto record = take<LatencyRecord>([i](const PageContent& page) -> const auto& {
            return page.latencies[i].record;
          }))
        latency(*record, i);
    return std::move(out_);
  }

 private:
  // A used entry's record, if it is whole.
  template <class Record, class Select>
  std::optional<Record> take(const Select& select) {
    const Entry<Record>& entry = select(*copies_.content);
    const std::uint64_t sequence = select(*copies_.before).sequence;
    const bool is_whole = sequence % 2 == 0 && sequence == select(*copies_.after).sequence;
    if (!is_whole && !takes_torn_) {
      ++out_.torn;
      return std::nullopt;
    }
    Record record;
    std::memcpy(&record, entry.words.data(), sizeof(Record));
    if (record.used != 1) return std::nullopt;
    return record;
  }

  void process() {
    const Header& header = copies_.content->header;
    Process& to = out_.snapshot.process;
    to.pid = header.pid;
    to.start_ticks = header.start_ticks;
    to.has_ended_cleanly = header.has_ended_cleanly == 1;
    to.version = text_of(header.version);
    to.host = text_of(header.host);
    to.command = text_of(header.command);
    to.config_path = text_of(header.config_path);
    to.config_hash = header.config_hash;
    to.rank = header.rank < 0 ? -1 : header.rank;
    to.ranks = header.ranks < 0 ? 0 : header.ranks;
    to.local_rank = header.local_rank < 0 ? -1 : header.local_rank;
    to.started_realtime_ns = header.started_realtime_ns;
    to.updated_realtime_ns = header.updated_realtime_ns;
    to.updated_monotonic_ns = header.updated_monotonic_ns;
    to.connections_unlisted = header.connections_unlisted;
  }

  void device(std::size_t index) {
    const auto record = take<DeviceRecord>([index](const PageContent& page) -> const auto& {
      return page.devices[index];
    });
    if (!record) return;
    const auto carrier = enum_of(record->carrier, Carrier::kUserspaceTcp, Carrier::kRdma);
    const auto link = enum_of(record->link, LinkStatus::kUnknown, LinkStatus::kLost);
    if (!carrier || !link) return;
    has_device_[index] = true;
    out_.snapshot.devices.push_back({.index = static_cast<std::uint32_t>(index),
                                     .name = text_of(record->name),
                                     .carrier = *carrier,
                                     .link = *link,
                                     .nic = text_of(record->nic),
                                     .plan = text_of(record->plan),
                                     .speed_mbps = record->speed_mbps,
                                     .mtu_bytes = record->mtu_bytes,
                                     .address = text_of(record->address),
                                     .numa_node = record->numa_node < 0 ? -1 : record->numa_node,
                                     .gpu = text_of(record->gpu)});
  }

  bool knows_device(std::uint32_t device) const {
    return device < kMaxDevices && has_device_[device];
  }

  void lane(const LaneRecord& record) {
    if (!knows_device(record.device)) return;
    Lane& to = out_.snapshot.lanes.emplace_back();
    to.device = record.device;
    to.number = record.number;
    to.cpu = record.cpu < 0 ? -1 : record.cpu;
    to.connections = record.connections;
    to.queue_depth = record.queue_depth;
    to.queued_bytes = record.queued_bytes;
    to.updated_monotonic_ns = record.updated_monotonic_ns;
    for (std::size_t i = 0; i < kCounters; ++i)
      to.counters[static_cast<Counter>(i)] = record.counters[i];
  }

  void connection(const ConnectionRecord& record) {
    const auto way = enum_of(record.way, Way::kSend, Way::kReceive);
    const auto waiting = enum_of(record.waiting, Waiting::kNothing, Waiting::kThisHost);
    if (!way || !waiting || !knows_device(record.device)) return;
    if (!connection_ids_.insert(record.id).second) return;
    Connection& to = out_.snapshot.connections.emplace_back();
    to.id = record.id;
    to.device = record.device;
    to.lane = record.lane;
    to.way = *way;
    to.state = text_of(record.state);
    to.peer = text_of(record.peer);
    to.peer_host = text_of(record.peer_host);
    to.communicator = record.communicator;
    to.waiting = *waiting;
    to.bytes = record.bytes;
    to.messages = record.messages;
    to.messages_in_flight = record.messages_in_flight;
    to.oldest_ns = record.oldest_ns;
    to.progress_ns = record.progress_ns;
    to.slow_messages = record.slow_messages;
    to.stalled_messages = record.stalled_messages;
    to.credit_stalls = record.credit_stalls;
    to.credit_stall_ns = record.credit_stall_ns;
    to.is_slow = record.is_slow == 1;
    to.is_stalled = record.is_stalled == 1;
    to.opened_realtime_ns = record.opened_realtime_ns;
    to.updated_monotonic_ns = record.updated_monotonic_ns;
  }

  void flow(const FlowRecord& record) {
    if (!connection_ids_.contains(record.connection)) return;
    Flow& to = out_.snapshot.flows.emplace_back();
    to.connection = record.connection;
    to.number = record.number;
    to.state = text_of(record.state);
    to.congestion_control = text_of(record.congestion_control);
    to.local = text_of(record.local);
    to.remote = text_of(record.remote);
    to.in_flight_bytes = record.in_flight_bytes;
    to.cwnd_bytes = record.cwnd_bytes;
    to.peer_window_bytes = record.peer_window_bytes;
    to.own_window_bytes = record.own_window_bytes;
    to.mss_bytes = record.mss_bytes;
    to.rtt_min_ns = record.rtt_min_ns;
    to.rtt_ns = record.rtt_ns;
    to.rtt_p50_ns = record.rtt_p50_ns;
    to.rtt_p99_ns = record.rtt_p99_ns;
    to.sent_bytes = record.sent_bytes;
    to.received_bytes = record.received_bytes;
    to.retransmitted_bytes = record.retransmitted_bytes;
    to.timeouts = record.timeouts;
    to.fast_recoveries = record.fast_recoveries;
    to.tail_probes = record.tail_probes;
    to.spurious_recoveries = record.spurious_recoveries;
    to.needless_bytes = record.needless_bytes;
    to.zero_windows = record.zero_windows;
    to.zero_window_ns = record.zero_window_ns;
    to.failures = record.failures;
    to.recoveries = record.recoveries;
  }

  void latency(const LatencyRecord& record, std::size_t index) {
    const auto way = enum_of(record.way, Way::kSend, Way::kReceive);
    if (!way || !knows_device(record.device)) return;
    Latency& to = out_.snapshot.latencies.emplace_back();
    to.device = record.device;
    to.way = *way;
    to.peer = text_of(record.peer);
    to.host = text_of(record.host);
    to.by_class = copies_.content->latencies[index].by_class;
  }

  const PageCopies& copies_;
  const bool takes_torn_;
  Decoded out_;
  std::array<bool, kMaxDevices> has_device_{};
  std::unordered_set<std::uint64_t> connection_ids_;
};

}  // namespace

Status check_header(std::span<const std::byte> bytes) {
  constexpr const char* kNoPage = "not a statistics page of ztcp";
  constexpr const char* kOtherLayout = "a statistics page of another version of ztcp";
  std::uint64_t magic = 0;
  std::uint32_t layout = 0;
  if (bytes.size() < sizeof(magic) + sizeof(layout)) return fail(Errc::kProtocol, kNoPage);
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  if (magic != kMagic) return fail(Errc::kProtocol, kNoPage);
  std::memcpy(&layout, bytes.data() + offsetof(Header, layout_version), sizeof(layout));
  if (layout != kLayoutVersion) return fail(Errc::kProtocol, kOtherLayout);
  if (bytes.size() < sizeof(Header)) return fail(Errc::kProtocol, "a truncated statistics page");
  std::uint64_t names = 0;
  std::memcpy(&names, bytes.data() + offsetof(Header, counter_names), sizeof(names));
  if (names != counter_names_hash()) return fail(Errc::kProtocol, kOtherLayout);
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data() + offsetof(Header, page_bytes), sizeof(size));
  if (size != kPageBytes) return fail(Errc::kProtocol, "a damaged statistics page");
  return {};
}

Decoded decode_page(const PageCopies& copies, bool takes_torn) {
  return Decoder(copies, takes_torn).run();
}

}  // namespace ztcp::stats
