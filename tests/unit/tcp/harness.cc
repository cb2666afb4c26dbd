// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tcp/harness.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "transport/wire/arp.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"
#include "transport/wire/ndp.h"

namespace ztcp::tcp::test {
namespace {

// The bytes that a link without offloads sends.
Bytes bytes_of(const TxFrame& frame) {
  Bytes bytes(frame.header.begin(), frame.header.begin() + frame.header_bytes);
  for (std::size_t i = 0; i < frame.fragment_count; ++i)
    bytes.insert(bytes.end(), frame.fragments[i].data,
                 frame.fragments[i].data + frame.fragments[i].size_bytes);
  return bytes;
}

std::unique_ptr<Frame> received(Bytes bytes) {
  auto frame = std::make_unique<Frame>();
  frame->bytes = std::move(bytes);
  frame->view.head = frame->bytes;
  frame->view.handle = frame.get();
  frame->view.charge_bytes = 2048;
  return frame;
}

std::unique_ptr<Frame> arp_reply(const wire::ArpPacket& request) {
  Bytes bytes(wire::kEthernetBytes + wire::kArpBytes);
  wire::emit_ethernet({.destination = request.sender_mac,
                       .source = kPeerMac,
                       .vlan_id = 0,
                       .type = wire::EtherType::kArp},
                      bytes.data());
  wire::emit_arp({.operation = wire::ArpOperation::kReply,
                  .sender_mac = kPeerMac,
                  .sender_ip = request.target_ip,
                  .target_mac = request.sender_mac,
                  .target_ip = request.sender_ip},
                 bytes.data() + wire::kEthernetBytes);
  return received(std::move(bytes));
}

}  // namespace

StackConfig test_config(bool is_ipv6) {
  StackConfig config;
  config.mac = kOurMac;
  config.address = {our_ip(is_ipv6), static_cast<std::uint8_t>(is_ipv6 ? 64 : 24)};
  config.max_connections = 16;
  return config;
}

StreamEvents* User::on_accept(TimePoint, Stream& accepted, Endpoint) {
  if (refuse) return nullptr;
  stream = &accepted;
  opened = true;
  return this;
}
void User::on_open(TimePoint, Stream& s) {
  EXPECT_EQ(&s, stream);
  opened = true;
}
void User::on_bytes(TimePoint, std::span<const std::byte> bytes) {
  EXPECT_FALSE(closed || failed);
  received.insert(received.end(), bytes.begin(), bytes.end());
  if (on_bytes_hook) on_bytes_hook();
}
void User::on_acked(TimePoint, std::uint64_t total_bytes) {
  EXPECT_GE(total_bytes, acked);
  acked = total_bytes;
  ++acked_calls;
  if (on_acked_hook) on_acked_hook();
}
void User::on_closed(TimePoint) { closed = true; }
void User::on_ended(TimePoint) {
  EXPECT_TRUE(closed && !ended && !failed);
  ended = true;
}
void User::on_failed(TimePoint, Error error) {
  EXPECT_FALSE(failed);
  failed = error;
  if (stream != nullptr) health = stream->health();
}

std::unique_ptr<Frame> frame_from_peer(const Seg& seg, std::uint16_t our_port,
                                       std::uint16_t peer_port, bool is_ipv6) {
  std::array<std::byte, 128> header;
  const std::size_t at =
      wire::emit_ethernet({.destination = kOurMac,
                           .source = kPeerMac,
                           .vlan_id = 0,
                           .type = is_ipv6 ? wire::EtherType::kIpv6 : wire::EtherType::kIpv4},
                          header.data());
  wire::TcpHeader tcp;
  tcp.source_port = peer_port;
  tcp.destination_port = our_port;
  tcp.sequence = seg.seq;
  tcp.acknowledgment = seg.ack;
  tcp.window = seg.window;
  tcp.flags = seg.flags;
  tcp.options = seg.options;
  const std::size_t tcp_at = at + (is_ipv6 ? wire::kIpv6Bytes : wire::kIpv4Bytes);
  const std::size_t segment_bytes =
      wire::emit_tcp(tcp, header.data() + tcp_at) + seg.payload.size();
  if (is_ipv6) {
    wire::emit_ipv6({.source = kPeerIpv6,
                     .destination = kOurIpv6,
                     .ecn = seg.ecn,
                     .dscp = seg.dscp,
                     .flow_label = seg.flow_label,
                     .payload_bytes = static_cast<std::uint16_t>(segment_bytes)},
                    header.data() + at);
  } else {
    wire::Ipv4Header ip;
    ip.source = kPeerIp;
    ip.destination = kOurIp;
    ip.ecn = seg.ecn;
    ip.dscp = seg.dscp;
    ip.total_bytes = static_cast<std::uint16_t>(wire::kIpv4Bytes + segment_bytes);
    wire::emit_ipv4(ip, header.data() + at);
  }
  const std::size_t header_bytes = tcp_at + segment_bytes - seg.payload.size();
  Bytes bytes(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  bytes.insert(bytes.end(), seg.payload.begin(), seg.payload.end());
  wire::Checksum sum = wire::pseudo_header_checksum(
      peer_ip(is_ipv6), our_ip(is_ipv6), static_cast<std::uint32_t>(bytes.size() - tcp_at));
  sum.add(std::span(bytes).subspan(tcp_at));
  wire::store_be16(bytes.data() + tcp_at + wire::kTcpChecksumOffset, sum.finish());
  return received(std::move(bytes));
}

std::unique_ptr<Frame> icmpv6_from_peer(Bytes message, IpAddress source, IpAddress destination,
                                        std::uint8_t hop_limit) {
  wire::fill_icmpv6_checksum(source, destination, message);
  Bytes bytes(wire::kEthernetBytes + wire::kIpv6Bytes);
  wire::emit_ethernet(
      {.destination = destination.is_multicast() ? wire::group_mac(destination) : kOurMac,
       .source = kPeerMac,
       .vlan_id = 0,
       .type = wire::EtherType::kIpv6},
      bytes.data());
  wire::emit_ipv6({.source = source,
                   .destination = destination,
                   .protocol = wire::IpProtocol::kIcmpv6,
                   .hop_limit = hop_limit,
                   .payload_bytes = static_cast<std::uint16_t>(message.size())},
                  bytes.data() + wire::kEthernetBytes);
  bytes.insert(bytes.end(), message.begin(), message.end());
  return received(std::move(bytes));
}

Bytes pattern(std::size_t size, std::uint8_t first) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((first + i) % 251);
  return bytes;
}

std::string flags_of(const Seg& seg) {
  std::string text;
  if (seg.flags.has(wire::kSyn)) text += 'S';
  if (seg.flags.has(wire::kFin)) text += 'F';
  if (seg.flags.has(wire::kRst)) text += 'R';
  if (seg.flags.has(wire::kAck)) text += '.';
  return text;
}

Peer::Peer(const StackConfig& c) : config(c), stack(c, {1, 2}) { collect(); }

wire::TcpOptions offer(std::uint16_t mss_bytes) {
  wire::TcpOptions options;
  options.mss_bytes = mss_bytes;
  options.window_scale = std::uint8_t{8};
  options.timestamps = wire::Timestamps{1, 0};
  options.sack_permitted = true;
  return options;
}

std::uint32_t Peer::timestamp() const {
  return static_cast<std::uint32_t>(now.time_since_epoch() / 1us);
}

void Peer::fill_timestamps(Seg& seg) const {
  const bool offered = seg.options.timestamps == offer().timestamps;
  if (timestamps_ && (!seg.options.timestamps || offered))
    seg.options.timestamps = wire::Timestamps{timestamp(), last_ts};
}

void Peer::open(const wire::TcpOptions& options, bool answer_probe) {
  timestamps_ = options.timestamps.has_value();
  const auto stream = stack.connect(now, {peer_ip(config.is_ipv6()), peer_port}, user);
  ASSERT_TRUE(stream);
  user.stream = *stream;
  const Seg syn = collect_one();
  ASSERT_EQ(flags_of(syn), "S");
  iss = syn.seq;
  now += kRoundTrip;
  Seg answer{.flags = wire::kSyn | wire::kAck, .seq = irs, .ack = first(), .options = options};
  if (timestamps_) answer.options.timestamps = wire::Timestamps{timestamp(), last_ts};
  send(answer);
  ASSERT_TRUE(user.opened);
  for (const Seg& seg : collect()) {
    if (seg.payload.empty()) continue;
    mss = seg.payload.size();
    if (answer_probe) ack(first(), {{first() - static_cast<std::uint32_t>(mss), first()}});
  }
  collect();
}

void Peer::open_passive(const wire::TcpOptions& options) {
  timestamps_ = options.timestamps.has_value();
  our_port = kListenPort;
  ASSERT_TRUE(stack.listen(kListenPort, user));
  Seg syn{.flags = wire::kSyn, .seq = irs, .options = options};
  if (timestamps_) syn.options.timestamps = wire::Timestamps{timestamp(), 0};
  send(syn);
  const Seg answer = collect_one();
  ASSERT_EQ(flags_of(answer), "S.");
  iss = answer.seq;
  send({.seq = peer_first(), .ack = first()});
  ASSERT_TRUE(user.opened);
  collect();
}

std::vector<Seg> Peer::wait() {
  for (;;) {
    if (std::vector<Seg> segs = collect(); !segs.empty()) return segs;
    if (user.failed || !fire()) return {};
  }
}

bool Peer::fire() {
  const TimePoint next = stack.next_deadline();
  if (next == kNever) return false;
  now = std::max(now, next);
  stack.on_timers(now);
  return true;
}

void Peer::pass(Duration d) {
  const TimePoint end = now + d;
  while (stack.next_deadline() <= end && stack.next_deadline() > TimePoint{}) fire();
  now = end;
  stack.on_timers(now);
}

void Peer::deliver(std::vector<std::unique_ptr<Frame>> frames) {
  std::vector<RxFrame> views;
  for (const auto& frame : frames) views.push_back(frame->view);
  stack.on_frames(now, views);
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (views[i].kept) held.push_back(std::move(frames[i]));
  frames.clear();  // Frames that were not kept are gone.
  std::array<RxFrame, 8> released;
  while (const std::size_t count = stack.take_released(released))
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(std::erase_if(held, [&](const auto& f) { return f.get() == released[i].handle; }),
                1U);
}

void Peer::send(Seg seg) {
  std::vector<Seg> segs;
  segs.push_back(std::move(seg));
  send_burst(std::move(segs));
}

void Peer::send_burst(std::vector<Seg> segs) {
  std::vector<std::unique_ptr<Frame>> frames;
  for (Seg& seg : segs) {
    fill_timestamps(seg);
    frames.push_back(frame_from_peer(seg, our_port, peer_port, config.is_ipv6()));
  }
  deliver(std::move(frames));
}

void Peer::ack(std::uint32_t ack, std::vector<wire::SackBlock> sack) {
  Seg seg{.seq = peer_nxt(), .ack = ack};
  for (const auto& block : sack) seg.options.sack[seg.options.sack_count++] = block;
  send(seg);
}

void Peer::send_data(std::size_t bytes, std::uint32_t ack) {
  send({.seq = peer_nxt(),
        .ack = ack,
        .payload = pattern(bytes, static_cast<std::uint8_t>(peer_sent % 251))});
  peer_sent += static_cast<std::uint32_t>(bytes);
}

Seg Peer::parse(const TxFrame& tx) {
  const Bytes bytes = bytes_of(tx);
  RxFrame rx;
  rx.head = bytes;
  const wire::ParsedFrame parsed = wire::parse_frame(rx);
  EXPECT_EQ(parsed.kind, wire::FrameKind::kTcp);
  EXPECT_TRUE(wire::verify_checksums(rx, parsed));
  EXPECT_TRUE(has_routers || parsed.ethernet.destination == kPeerMac);
  our_port = parsed.tcp.source_port;
  if (parsed.tcp.options.timestamps) last_ts = parsed.tcp.options.timestamps->value;
  const auto payload = std::span(bytes).subspan(parsed.payload_offset, parsed.payload_bytes);
  return {.flags = parsed.tcp.flags,
          .seq = parsed.tcp.sequence,
          .ack = parsed.tcp.acknowledgment,
          .window = parsed.tcp.window,
          .payload = Bytes(payload.begin(), payload.end()),
          .options = parsed.tcp.options,
          .ecn = parsed.ip.ecn,
          .flow_label = parsed.ip.flow_label,
          .dscp = parsed.ip.dscp,
          .source_port = parsed.tcp.source_port,
          .destination_port = parsed.tcp.destination_port};
}

std::unique_ptr<Frame> Peer::answer_to(const TxFrame& frame) {
  if (!answers_requests) return nullptr;
  const Bytes bytes = bytes_of(frame);
  RxFrame rx;
  rx.head = bytes;
  const wire::ParsedFrame parsed = wire::parse_frame(rx);
  const auto packet = std::span<const std::byte>(bytes).subspan(parsed.payload_offset);
  if (parsed.kind == wire::FrameKind::kArp) {
    const auto request = wire::parse_arp(packet);
    const bool is_request = request && request->operation == wire::ArpOperation::kRequest;
    return is_request && request->target_ip == kPeerIp ? arp_reply(*request) : nullptr;
  }
  EXPECT_TRUE(wire::verify_icmp_checksums(rx, parsed));
  const auto request = wire::parse_neighbour_message(parsed.ip, packet);
  if (!request || request->is_advertisement || request->target != kPeerIpv6) return nullptr;
  Bytes answer(wire::kEmittedNdpBytes);
  wire::emit_neighbour_message({.is_advertisement = true,
                                .target = kPeerIpv6,
                                .mac = kPeerMac,
                                .is_router = false,
                                .is_solicited = true,
                                .overrides = true},
                               kPeerIpv6, kOurIpv6, answer.data());
  return icmpv6_from_peer(std::move(answer), kPeerIpv6, kOurIpv6);
}

std::vector<Seg> Peer::collect() {
  std::vector<Seg> segs;
  std::vector<TxFrame> out(64);
  raw.clear();
  others.clear();
  for (std::size_t count = stack.collect(now, out); count > 0; count = stack.collect(now, out)) {
    std::vector<std::unique_ptr<Frame>> answers;
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes bytes = bytes_of(out[i]);
      RxFrame rx;
      rx.head = bytes;
      if (wire::parse_frame(rx).kind == wire::FrameKind::kTcp) {
        raw.push_back(out[i]);
        segs.push_back(parse(out[i]));
      } else if (auto answer = answer_to(out[i])) {
        ++arp_requests;
        answers.push_back(std::move(answer));
      } else {
        others.push_back(bytes);
      }
    }
    if (!answers.empty()) deliver(std::move(answers));
  }
  return segs;
}

Seg Peer::collect_one() {
  std::vector<Seg> segs = collect();
  EXPECT_EQ(segs.size(), 1U);
  return segs.empty() ? Seg{} : segs.front();
}

void Peer::write(std::size_t bytes) {
  written_.push_back(pattern(bytes, static_cast<std::uint8_t>(written_bytes_ % 251)));
  written_bytes_ += bytes;
  const Fragment fragment{written_.back().data(), static_cast<std::uint32_t>(bytes), kUnmapped};
  ASSERT_TRUE(user.stream->write({}, std::span(&fragment, 1)));
}

StackConfig right_config(bool is_ipv6) {
  StackConfig config = test_config(is_ipv6);
  config.mac = kPeerMac;
  config.address.address = peer_ip(is_ipv6);
  return config;
}

Pair::Pair(bool is_ipv6) : Pair(test_config(is_ipv6), right_config(is_ipv6)) {}
Pair::Pair(const StackConfig& l, const StackConfig& r)
    : left(l, {1, 2}), right(r, {3, 4}), is_ipv6_(l.is_ipv6()) {
  EXPECT_TRUE(right.listen(kListenPort, server));
}

void Pair::connect() {
  const auto stream = left.connect(now, {peer_ip(is_ipv6_), kListenPort}, client);
  ASSERT_TRUE(stream);
  client.stream = *stream;
  pump();
  ASSERT_TRUE(client.opened);
  ASSERT_TRUE(server.opened);
}

bool Pair::turn(Stack& from, Stack& to, bool from_left) {
  std::vector<TxFrame> out(64);
  const std::size_t count = from.collect(now, out);
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<RxFrame> views;
  for (std::size_t i = 0; i < count; ++i) {
    if (drop(out[i], from_left)) continue;
    frames.push_back(received(bytes_of(out[i])));
    views.push_back(frames.back()->view);
  }
  to.on_frames(now, views);
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (views[i].kept) held_.push_back(std::move(frames[i]));
  std::array<RxFrame, 8> released;
  while (const std::size_t n = to.take_released(released))
    for (std::size_t i = 0; i < n; ++i)
      std::erase_if(held_, [&](const auto& f) { return f.get() == released[i].handle; });
  return count > 0;
}

void Pair::pump() {
  for (bool busy = true; busy;) {
    now += 10us;
    busy = turn(left, right, true);
    now += 10us;
    busy = turn(right, left, false) || busy;
  }
}

bool Pair::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now + limit;
  for (;;) {
    pump();
    if (done()) return true;
    const TimePoint next = std::min(left.next_deadline(), right.next_deadline());
    if (next > end) return false;
    now = std::max(now, next);
    left.on_timers(now);
    right.on_timers(now);
  }
}

}  // namespace ztcp::tcp::test
