// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/sim/peer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "transport/wire/arp.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"

namespace ztcp::sim {
namespace {

constexpr MacAddress kStackMac{{2, 0, 0, 0, 0, 1}};
constexpr Ipv4Address kStackAddress{0x0a4d0101};

tcp::StackConfig placed(tcp::StackConfig config) {
  config.mac = kStackMac;
  config.address = {kStackAddress, 24};
  return config;
}

}  // namespace

Peer::Peer(tcp::StackConfig config) : stack_(placed(config), {11, 12}), burst_(64) {}

wire::TcpOptions Peer::default_options() {
  wire::TcpOptions options;
  options.mss_bytes = 1460;
  options.window_scale = 7;
  options.sack_permitted = true;
  options.timestamps = wire::Timestamps{};
  return options;
}

wire::Timestamps Peer::timestamps() const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch());
  return {static_cast<std::uint32_t>(ms.count()), last_timestamp_};
}

void Peer::accept(App& app, const wire::TcpOptions& options) {
  const auto stream = stack_.connect(now_, kEndpoint, app);
  if (!stream) return;
  app.attach(**stream);
  const auto syn = wait(std::chrono::seconds(1));
  if (!syn || (syn->flags & (wire::kSyn | wire::kAck | wire::kRst)) != wire::kSyn) return;
  Segment answer;
  answer.flags = wire::kSyn | wire::kAck;
  answer.ack = 1;
  answer.options = options;
  if (answer.options.timestamps) answer.options.timestamps = timestamps();
  send(std::move(answer));
}

void Peer::send(Segment segment) {
  wire::TcpHeader header;
  header.source_port = kEndpoint.port;
  header.destination_port = stack_port_;
  header.sequence = kInitialSequence + segment.seq;
  header.acknowledgment = segment.flags.has(wire::kAck) ? stack_isn_ + segment.ack : 0;
  header.window = segment.window;
  header.flags = segment.flags;
  header.options = segment.options;
  for (auto& block : header.options.sack) {
    block.begin += stack_isn_;
    block.end += stack_isn_;
  }
  Bytes tcp(wire::kMaxTcpBytes);
  tcp.resize(wire::emit_tcp(header, tcp.data()));
  tcp.insert(tcp.end(), segment.payload.begin(), segment.payload.end());
  auto sum = wire::pseudo_header_checksum(kEndpoint.address.v4(), kStackAddress,
                                          static_cast<std::uint32_t>(tcp.size()));
  sum.add(tcp);
  wire::store_be16(tcp.data() + wire::kTcpChecksumOffset, sum.finish());
  inject(ip_frame(wire::IpProtocol::kTcp, tcp));
}

Bytes Peer::ip_frame(wire::IpProtocol protocol, const Bytes& payload) const {
  Bytes frame(wire::kEthernetBytes + wire::kIpv4Bytes);
  wire::emit_ethernet({kStackMac, kMac, 0, wire::EtherType::kIpv4}, frame.data());
  wire::Ipv4Header ip;
  ip.source = kEndpoint.address.v4();
  ip.destination = kStackAddress;
  ip.protocol = protocol;
  ip.total_bytes = static_cast<std::uint16_t>(wire::kIpv4Bytes + payload.size());
  wire::emit_ipv4(ip, frame.data() + wire::kEthernetBytes);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

void Peer::inject(const Bytes& frame) {
  auto memory = std::make_unique<ReceivedFrame>(frame);
  std::array<RxFrame, 1> burst{memory->view()};
  stack_.on_frames(now_, burst);
  if (burst[0].kept) held_.push_back(std::move(memory));
  turn();
}

void Peer::turn() {
  stack_.on_timers(now_);
  for (;;) {
    const std::size_t count = stack_.collect(now_, burst_);
    std::vector<Bytes> cable;
    for (std::size_t i = 0; i < count; ++i)
      for (Bytes& frame : put_on_cable(burst_[i])) cable.push_back(std::move(frame));
    for (const Bytes& frame : cable) read(frame);
    if (count == 0) break;
  }
  std::array<RxFrame, 16> released;
  for (std::size_t count = stack_.take_released(released); count > 0;
       count = stack_.take_released(released))
    for (std::size_t i = 0; i < count; ++i)
      std::erase_if(held_, [&](const auto& held) { return held.get() == released[i].handle; });
}

void Peer::read(const Bytes& frame) {
  RxFrame view;
  view.head = frame;
  const auto parsed = wire::parse_frame(view);
  if (parsed.kind == wire::FrameKind::kArp) {
    const auto arp = wire::parse_arp(std::span(frame).subspan(parsed.payload_offset));
    if (!arp || arp->operation != wire::ArpOperation::kRequest ||
        arp->target_ip != kEndpoint.address.v4())
      return;
    Bytes reply(wire::kEthernetBytes + wire::kArpBytes);
    wire::emit_ethernet({kStackMac, kMac, 0, wire::EtherType::kArp}, reply.data());
    wire::emit_arp(
        {wire::ArpOperation::kReply, kMac, kEndpoint.address.v4(), arp->sender_mac, arp->sender_ip},
        reply.data() + wire::kEthernetBytes);
    inject(reply);
    return;
  }
  if (parsed.kind != wire::FrameKind::kTcp || !wire::verify_checksums(view, parsed)) return;
  const wire::TcpHeader& tcp = parsed.tcp;
  if (tcp.flags.has(wire::kSyn)) stack_isn_ = tcp.sequence;
  stack_port_ = tcp.source_port;
  if (tcp.options.timestamps) last_timestamp_ = tcp.options.timestamps->value;
  Segment segment;
  segment.flags = tcp.flags;
  segment.seq = tcp.sequence - stack_isn_;
  segment.ack = tcp.acknowledgment - kInitialSequence;
  segment.window = tcp.window;
  segment.options = tcp.options;
  for (std::size_t i = 0; i < segment.options.sack_count; ++i) {
    segment.options.sack[i].begin -= kInitialSequence;
    segment.options.sack[i].end -= kInitialSequence;
  }
  const auto payload = std::span(frame).subspan(parsed.payload_offset, parsed.payload_bytes);
  segment.payload.assign(payload.begin(), payload.end());
  segment.at = now_;
  segments_.push_back(std::move(segment));
}

std::optional<Segment> Peer::receive() {
  turn();
  if (segments_.empty()) return std::nullopt;
  Segment segment = std::move(segments_.front());
  segments_.pop_front();
  return segment;
}

void Peer::advance(Duration span) {
  const TimePoint end = now_ + span;
  turn();
  // A deadline that is never satisfied must not hang the test.
  for (int turns = 0; stack_.next_deadline() <= end && turns < 100'000; ++turns) {
    now_ = std::max(now_, stack_.next_deadline());
    turn();
  }
  now_ = end;
}

std::optional<Segment> Peer::wait(Duration limit) {
  const TimePoint end = now_ + limit;
  turn();
  for (int turns = 0; segments_.empty() && stack_.next_deadline() <= end && turns < 100'000;
       ++turns) {
    now_ = std::max(now_, stack_.next_deadline());
    turn();
  }
  if (segments_.empty()) now_ = end;
  return receive();
}

}  // namespace ztcp::sim
