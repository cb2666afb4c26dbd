// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/stack.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>

#include "transport/tcp/stack_impl.h"

namespace ztcp::tcp {
namespace {

// Outstanding writes per connection. NCCL keeps 32 messages in flight, each at most a few chunks.
constexpr std::size_t kPiecesEach = 1024;
constexpr std::size_t kCopiedBytesEach = 64U << 10;
// Frames one connection may fill before the next has its turn.
constexpr std::size_t kQuantumFrames = 16;
// Half-open connections cost nothing while slots are free, so one is dropped only when the table is
// full, for a SYN, and only after this time. A real peer answers within a round trip, so a flood
// displaces its own SYNs; in a burst of real peers no connection is lost, and a peer that finds no
// slot sends its SYN again. There is no limit per source: a flood can forge its addresses.
constexpr Duration kHandshakeGrace = std::chrono::milliseconds(10);

// Segments in a window like our own, twice as many for short ones in the first window; a window
// that has grown is filled with bulk.
std::size_t records_for(const StackConfig& config) {
  const std::size_t each =
      std::max<std::size_t>(config.mtu_bytes, 576) - config.ip_header_bytes() - 32U;
  const std::size_t most = config.tcp.receive_window_bytes / each;
  const std::size_t first =
      std::min(config.tcp.receive_window_bytes, TcpSettings::kFirstWindowBytes) / each;
  return std::clamp<std::size_t>(std::max(std::bit_ceil(first * 2), std::bit_floor(most * 5 / 4)),
                                 256, 16384);
}

std::unique_ptr<std::byte[]> untouched(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

// `memory` holds arrays of T, an implicit-lifetime type that its user writes before reading.
template <class T>
std::span<T> slice(const std::unique_ptr<std::byte[]>& memory, std::size_t index,
                   std::size_t each) {
  return {reinterpret_cast<T*>(memory.get()) + index * each, each};
}

// Prefetches the next frame of a burst while this one is copied. A core prefetches by itself only
// after a few lines in a row, so it would wait at each short frame; for long ones its own prefetch
// is better.
void prefetch(std::span<const std::byte> bytes) {
  constexpr std::size_t kLineBytes = 64;
  constexpr std::size_t kShortBytes = 2048;
  const std::size_t end = bytes.size() <= kShortBytes ? bytes.size() : kLineBytes;
  for (std::size_t at = 0; at < end; at += kLineBytes) __builtin_prefetch(bytes.data() + at);
}
void prefetch(const RxFrame& frame) {
  prefetch(frame.head);
  if (!frame.more.empty()) prefetch(frame.more.front());
}

}  // namespace

ConnectionMemory::ConnectionMemory(const StackConfig& config)
    : records_each_(records_for(config)),
      records_(untouched(config.max_connections * records_each_ * sizeof(SentRecord))),
      pieces_(untouched(config.max_connections * kPiecesEach * sizeof(SendQueue::Piece))),
      copied_(untouched(config.max_connections * kCopiedBytesEach)) {}

Sender::Memory ConnectionMemory::part(std::uint32_t index) {
  return {.records = slice<SentRecord>(records_, index, records_each_),
          .pieces = slice<SendQueue::Piece>(pieces_, index, kPiecesEach),
          .copied = slice<std::byte>(copied_, index, kCopiedBytesEach)};
}

Stack::Impl::Impl(const StackConfig& config, const std::array<std::uint64_t, 2>& secret)
    : context(config, secret),
      memory(config),
      touched(static_cast<std::uint32_t>(config.max_connections)),
      echo(config.mtu_bytes) {
  context.listeners.reserve(64);
  free.reserve(config.max_connections);
  for (std::uint32_t i = 0; i < config.max_connections; ++i)
    connections.emplace_back(context, i, memory.part(i));
  for (auto i = static_cast<std::uint32_t>(config.max_connections); i > 0; --i)
    free.push_back(i - 1);
  announce();
}

// RFC 5227 section 3: neighbours that have this address with another MAC update it. An IPv6 address
// is probed instead.
void Stack::Impl::announce() {
  const StackConfig& config = context.config;
  probe_due = config.is_ipv6() && context.has_address();
  if (context.hears_routers() && config.shard.index == 0) context.solicitor.solicit(TimePoint{});
  // Once per NIC.
  if (config.is_ipv6() || config.address.address == Ipv4Address{} || config.shard.index != 0)
    return;
  write_request({.target = config.address.address, .to = std::nullopt});
}

TxFrame* Stack::Impl::add_control_frame(MacAddress to, wire::EtherType type, std::uint8_t dscp) {
  TxFrame* frame = context.control.add();
  if (frame == nullptr) return nullptr;
  const std::size_t l2 = write_ethernet(context.config, to, type, dscp, frame->header.data());
  frame->l2_bytes = static_cast<std::uint8_t>(l2);
  frame->l3_bytes = 0;
  frame->header_bytes = static_cast<std::uint16_t>(l2);
  return frame;
}

void Stack::Impl::write_arp(const wire::ArpPacket& packet, MacAddress to) {
  TxFrame* frame = add_control_frame(to, wire::EtherType::kArp, context.config.dscp);
  if (frame == nullptr) return;
  const std::size_t size = wire::emit_arp(packet, frame->header.data() + frame->l2_bytes);
  frame->header_bytes = static_cast<std::uint16_t>(frame->l2_bytes + size);
}

void Stack::Impl::write_request(const Neighbours::Request& request) {
  const StackConfig& config = context.config;
  const IpAddress own = config.address.address;
  if (config.is_ipv6()) {
    const IpAddress group = wire::solicited_node(request.target);
    write_neighbour_message({.target = request.target, .mac = config.mac}, own,
                            request.to ? request.target : group,
                            request.to.value_or(wire::group_mac(group)));
    return;
  }
  write_arp({.operation = wire::ArpOperation::kRequest,
             .sender_mac = config.mac,
             .sender_ip = own.v4(),
             .target_mac = {},
             .target_ip = request.target.v4()},
            request.to.value_or(kBroadcastMac));
}

void Stack::Impl::reap() {
  for (const std::uint32_t index : context.retired) {
    if (connections[index].is_reset_due())
      context.resetting.push_back(connections[index]);
    else
      free.push_back(index);
  }
  context.retired.clear();
}

void Stack::Impl::end_turn(TimePoint now) {
  while (!touched.empty()) connections[touched.pop()].end_turn(now);
  reap();
}

void Stack::Impl::drop(Connection& connection) {
  connection.drop();
  // At once: no user knows it, so nothing on the call stack refers to it. Other ended connections
  // wait for reap().
  free.push_back(context.retired.back());
  context.retired.pop_back();
}

void Stack::Impl::drop_oldest(IntrusiveList<Connection>& line) {
  if (!line.empty()) drop(line.front());
}

void Stack::Impl::hurry_reset(TimePoint now) {
  if (context.resetting.empty()) return;
  TxFrame* frame = context.control.add();
  if (frame == nullptr) return;
  Connection& connection = context.resetting.front();
  connection.unlink();
  connection.write_reset(now, *frame);
  free.push_back(connection.index());
}

std::uint32_t Stack::Impl::take_slot(TimePoint now, bool for_us) {
  const auto drop_half_open = [&](Duration age) {
    if (!free.empty() || context.half_open.empty()) return;
    if (now - context.half_open.front().opened() < age) return;
    ++context.counters.syn_dropped_table_full;
    drop_oldest(context.half_open);
  };
  if (free.empty()) hurry_reset(now);
  drop_half_open(kHandshakeGrace);
  if (free.empty()) drop_oldest(context.time_wait);
  if (for_us) drop_half_open(Duration::zero());
  if (free.empty()) return Demux::kNone;
  const std::uint32_t index = free.back();
  free.pop_back();
  return index;
}

std::size_t Stack::reserved_bytes(const StackConfig& config) {
  constexpr std::size_t kFixed =
      kPiecesEach * sizeof(SendQueue::Piece) + kCopiedBytesEach + sizeof(Connection);
  return config.max_connections * (records_for(config) * sizeof(SentRecord) + kFixed);
}

Stack::Stack(const StackConfig& config, std::array<std::uint64_t, 2> secret)
    : impl_(std::make_unique<Impl>(config, secret)) {}
Stack::~Stack() = default;

void Stack::on_frames(TimePoint now, std::span<RxFrame> frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i + 1 < frames.size()) prefetch(frames[i + 1]);
    impl_->on_frame(now, frames[i]);
  }
  impl_->context.held.hide();
  impl_->end_turn(now);
}

void Stack::on_timers(TimePoint now) {
  impl_->context.wheel.advance(
      now, [&](std::uint32_t index) { impl_->connections[index].on_timer(now); });
  impl_->context.neighbours.on_timers(now);
  if (impl_->context.hears_routers()) [[unlikely]]
    impl_->on_router_timers(now);
  impl_->reap();
}

std::size_t Stack::collect(TimePoint now, std::span<TxFrame> out) {
  StackContext& context = impl_->context;
  std::size_t count = 0;
  impl_->reap();  // Connections that the user aborted since the last call.
  if (impl_->probe_due) [[unlikely]]
    impl_->probe_own_address(now);
  while (context.neighbours.has_request() && !context.control.full())
    if (const auto request = context.neighbours.take_request()) impl_->write_request(*request);
  while (count < out.size() && context.control.take(out[count])) ++count;

  // Round-robin: a connection with more to send is queued again behind the others.
  while (count < out.size() && !context.ready.empty()) {
    const std::uint32_t index = context.ready.pop();
    const std::size_t quantum = std::min(kQuantumFrames, out.size() - count);
    bool more = false;
    count += impl_->connections[index].collect(now, out.subspan(count, quantum), more);
    if (more) context.ready.push(index);
  }
  impl_->reap();
  return count;
}

TimePoint Stack::next_deadline() const {
  const StackContext& context = impl_->context;
  if (!context.ready.empty() || !context.control.empty() || context.neighbours.has_request() ||
      impl_->probe_due)
    return TimePoint{};  // collect() has frames to send now.
  const TimePoint next =
      std::min(context.wheel.next_deadline(), context.neighbours.next_deadline());
  return context.hears_routers() ? std::min(next, impl_->router_deadline()) : next;
}

FrameLoans& Stack::loans() { return impl_->context.held; }

std::size_t Stack::take_released(std::span<RxFrame> out) {
  return impl_->context.held.take_released(out);
}

void Stack::note_poll_gap(TimePoint now, Duration gap) {
  constexpr int kGapsPerRto = 4;
  StackContext& context = impl_->context;
  context.poll_gaps.note(now, gap);
  context.rto_floor = kGapsPerRto * context.poll_gaps.longest();
}

Result<Stream*> Stack::connect(TimePoint now, Endpoint remote, StreamEvents& events,
                               bool peer_shares_nic) {
  StackContext& context = impl_->context;
  const StackConfig& config = context.config;
  const auto next_hop = context.neighbours.next_hop(remote.address);
  // RFC 9293 MUST-46: never to a multicast or broadcast address.
  if (!next_hop || !config.address.may_be_host(remote.address))
    return fail(Errc::kNoRoute, "tcp connect");
  if (!context.has_address()) return fail(Errc::kNoRoute, "tcp connect");
  if (impl_->duplicate) return fail(Errc::kBadConfig, "duplicate address");
  if (context.has_lost_address()) return fail(Errc::kNoRoute, "end of the address's lifetime");
  const auto port = context.choose_port(remote, /*tried=*/0);
  if (!port) return fail(Errc::kBusy, "tcp connect");
  const std::uint32_t index = impl_->take_slot(now, /*for_us=*/true);
  if (index == Demux::kNone) return fail(Errc::kFull, "tcp connect");
  context.demux.insert(Demux::key(remote, *port), index);
  impl_->connections[index].open_active(now, *port, remote, *next_hop, events, peer_shares_nic);
  return &impl_->connections[index];
}

Status Stack::listen(std::uint16_t port, StreamAcceptor& acceptor) {
  if (impl_->context.find_listener(port) != nullptr) return fail(Errc::kBusy, "tcp listen");
  impl_->context.listeners.push_back({port, &acceptor});
  return {};
}

void Stack::unlisten(std::uint16_t port) {
  std::erase_if(impl_->context.listeners,
                [&](const StackContext::Listener& listener) { return listener.port == port; });
}

void Stack::probe(IpAddress remote) {
  for (Connection& connection : impl_->connections)
    if (connection.remote().address == remote) connection.ask_peer();
}

// Nothing was heard on a connection that waits for the answer to its SYN.
TimePoint Stack::heard_from(IpAddress remote) const {
  TimePoint heard = TimePoint::min();
  for (const Connection& connection : impl_->connections)
    if (connection.state() != Connection::State::kClosed &&
        connection.state() != Connection::State::kSynSent && connection.remote().address == remote)
      heard = std::max(heard, connection.heard());
  return heard;
}

std::size_t Stack::connections() const {
  return impl_->connections.size() - impl_->free.size() - impl_->context.half_open_count;
}

std::size_t Stack::unfinished() const {
  return static_cast<std::size_t>(
      std::count_if(impl_->connections.begin(), impl_->connections.end(),
                    [](const Connection& connection) { return connection.is_unfinished(); }));
}

void Stack::for_each_connection(
    const std::function<void(const ConnectionStatistics&)>& tell) const {
  for (const Connection& connection : impl_->connections)
    if (connection.state() != Connection::State::kClosed) tell(connection.statistics());
}

std::optional<PathMtuChange> Stack::take_path_change() {
  return impl_->context.path_changes.take();
}

void Stack::announce() { impl_->announce(); }

std::optional<MacAddress> Stack::duplicate() const { return impl_->duplicate; }

std::optional<CongestionControlChange> Stack::take_control_change() {
  return impl_->context.control_changes.take();
}

std::optional<Reroute> Stack::take_reroute() { return impl_->context.reroutes.take(); }

std::optional<RouterChange> Stack::take_router_change() {
  return impl_->context.router_changes.take();
}

bool Stack::awaits_router() const {
  const auto& routers = impl_->context.routers;
  return routers && !routers->current();
}

std::optional<AddressChange> Stack::take_address_change() {
  auto& advertised = impl_->context.advertised;
  // All stacks of a NIC hear the same; the first one tells it.
  if (!advertised || impl_->context.config.shard.index != 0) return std::nullopt;
  return advertised->take_change();
}

IpAddress Stack::address() const { return impl_->context.config.address.address; }

std::optional<TakenAddress> Stack::taken_address() const {
  const auto& advertised = impl_->context.advertised;
  return advertised ? advertised->taken() : std::nullopt;
}

bool Stack::has_lost_address() const { return impl_->context.has_lost_address(); }

void Stack::take_address(const TakenAddress& taken) {
  impl_->context.advertised->adopt(taken);
  impl_->use_advertised_address();
}

const Counters& Stack::counters() const { return impl_->context.counters; }

}  // namespace ztcp::tcp
