// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/fuzz/live_stack.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/interface_identifier.h"
#include "tests/fuzz/byte_source.h"
#include "tests/support/icmpv6_error.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::fuzz {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kPeerMac{{2, 0, 0, 0, 0, 2}};
constexpr Ipv4Address kIpv4{0x0a4d0101};
constexpr Ipv4Address kPeerIpv4{0x0a4d0102};
constexpr IpAddress kIpv6{0xfd00ULL << 48, 1};
constexpr IpAddress kPeerIpv6{0xfd00ULL << 48, 2};
constexpr IpAddress address(bool is_ipv6) { return is_ipv6 ? kIpv6 : kIpv4; }
constexpr IpAddress peer_address(bool is_ipv6) { return is_ipv6 ? kPeerIpv6 : kPeerIpv4; }
constexpr std::size_t kMaxHeldBytes = 8 * 10240;

}  // namespace

StreamEvents* LiveStack::User::on_accept(TimePoint, Stream& accepted, Endpoint) {
  if (stream != nullptr) return nullptr;
  stream = &accepted;
  written = acked = 0;
  closed = finished = false;
  return this;
}
void LiveStack::User::on_open(TimePoint, Stream& opened) {
  require(opened.room() > 0);
  stream = &opened;
}
void LiveStack::User::on_bytes(TimePoint, std::span<const std::byte> bytes) {
  require(stream != nullptr && !closed && !bytes.empty());
  for (const std::byte b : bytes) sum ^= std::to_integer<std::uint8_t>(b);  // Touches every byte.
}
void LiveStack::User::on_acked(TimePoint, std::uint64_t total_bytes) {
  require(total_bytes >= acked && total_bytes <= written);
  acked = total_bytes;
}
void LiveStack::User::on_closed(TimePoint) {
  require(!closed);
  closed = true;
}
void LiveStack::User::on_ended(TimePoint) {
  require(stream != nullptr && closed && finished && acked == written);
  stream = nullptr;
}
void LiveStack::User::on_failed(TimePoint, Error) { stream = nullptr; }

tcp::StackConfig LiveStack::config(bool is_ipv6) {
  tcp::StackConfig config;
  config.mac = kMac;
  config.address = {address(is_ipv6), 24};
  config.finds_router = is_ipv6;
  config.max_connections = 4;
  config.max_held_bytes = kMaxHeldBytes;
  config.tcp.receive_window_bytes = 64U << 10;
  config.tcp.user_timeout = std::chrono::seconds(3);
  return config;
}

void receive_without_address(RxFrame& frame) {
  tcp::StackConfig config;
  config.mac = kMac;
  config.address = {IpAddress(), 128};
  config.finds_address = config.finds_router = true;
  config.max_connections = 4;
  tcp::Stack stack(config, {1, 2});
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  stack.on_frames(now, {&frame, 1});
  require(!frame.kept);
  const auto taken = stack.taken_address();
  require(taken.has_value() == (stack.address() != IpAddress()));
  if (taken) {
    require(stack.address() == taken->address.address && taken->valid_until > now);
    require(taken->address.may_be_host(stack.address()) && !stack.address().is_link_local_v6());
    require(stack.address() == address_of_mac(stack.address(), kMac));
  }
  // Ends all lifetimes but the longest.
  for (int i = 0; i < 8 && stack.next_deadline() != kNever; ++i) {
    std::array<TxFrame, 8> out;
    now = std::max(now, stack.next_deadline());
    stack.on_timers(now);
    while (stack.collect(now, out) > 0) continue;
  }
}

LiveStack::LiveStack(bool is_ipv6)
    : is_ipv6_(is_ipv6), stack_(config(is_ipv6), {1, 2}), burst_(32), sent_bytes_(64U << 10) {
  require(stack_.listen(kListeningPort, users_[0]).has_value());
  // A peer connects to the listening port; its MAC is learnt from the SYN or by a request.
  const std::byte options[] = {std::byte{2}, std::byte{4}, std::byte{5}, std::byte{0xb4},
                               std::byte{4}, std::byte{2}, std::byte{1}, std::byte{1},
                               std::byte{1}, std::byte{3}, std::byte{3}, std::byte{7}};
  receive_segment(wire::kSyn, 0, 0, 65535, options, {});
  peer_next_ += 1;
  receive_segment(wire::kAck, 0, 0, 65535, {}, {});
  require(users_[0].stream != nullptr);
}

void LiveStack::receive(RxFrame& frame) {
  stack_.on_frames(now_, {&frame, 1});
  held_ += frame.kept ? 1U : 0U;
  turn();
}

std::vector<std::byte> LiveStack::packet(wire::IpProtocol protocol,
                                         std::size_t payload_bytes) const {
  const std::size_t ip_bytes = is_ipv6_ ? wire::kIpv6Bytes : wire::kIpv4Bytes;
  std::vector<std::byte> bytes(wire::kEthernetBytes + ip_bytes + payload_bytes);
  std::byte* ip = bytes.data() + wire::kEthernetBytes;
  const auto type = is_ipv6_ ? wire::EtherType::kIpv6 : wire::EtherType::kIpv4;
  wire::emit_ethernet({kMac, kPeerMac, 0, type}, bytes.data());
  if (is_ipv6_)
    wire::emit_ipv6({.source = kPeerIpv6,
                     .destination = kIpv6,
                     .protocol = protocol,
                     .payload_bytes = static_cast<std::uint16_t>(payload_bytes)},
                    ip);
  else
    wire::emit_ipv4({.source = kPeerIpv4,
                     .destination = kIpv4,
                     .protocol = protocol,
                     .total_bytes = static_cast<std::uint16_t>(ip_bytes + payload_bytes)},
                    ip);
  return bytes;
}

void LiveStack::receive_segment(wire::TcpFlags flags, std::int32_t seq_offset,
                                std::int32_t ack_offset, std::uint16_t window,
                                std::span<const std::byte> options,
                                std::span<const std::byte> payload) {
  const std::size_t option_bytes = std::min<std::size_t>((options.size() + 3) / 4 * 4, 40);
  const std::size_t header_bytes = wire::kTcpBytes + option_bytes;
  std::vector<std::byte> bytes = packet(wire::IpProtocol::kTcp, header_bytes + payload.size());
  bytes.resize(bytes.size() - payload.size());
  std::byte* tcp = bytes.data() + bytes.size() - header_bytes;
  wire::TcpHeader header;
  header.source_port = kPeerPort;
  header.destination_port = kListeningPort;
  header.sequence = peer_next_ + static_cast<std::uint32_t>(seq_offset);
  header.acknowledgment = stack_next_ + static_cast<std::uint32_t>(ack_offset);
  header.flags = flags;
  header.window = window;
  wire::emit_tcp(header, tcp);
  wire::store_u8(tcp + 12, static_cast<std::uint8_t>((wire::kTcpBytes + option_bytes) / 4 << 4));
  std::copy_n(options.begin(), std::min(options.size(), option_bytes), tcp + wire::kTcpBytes);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  if (seq_offset == 0) peer_next_ += static_cast<std::uint32_t>(payload.size());

  memory_.push_back(std::make_unique<std::vector<std::byte>>(std::move(bytes)));
  RxFrame frame;
  frame.head = *memory_.back();
  frame.handle = memory_.back().get();
  frame.charge_bytes = 10240;
  frame.checksum_good = true;
  receive(frame);
}

void LiveStack::receive_icmp(std::uint8_t type, std::uint8_t code, std::uint16_t mtu_bytes,
                             std::int32_t seq_offset, std::size_t padding_bytes) {
  const Endpoint source{address(is_ipv6_), kListeningPort};
  const Endpoint destination{peer_address(is_ipv6_), kPeerPort};
  const std::uint32_t sequence = stack_next_ + static_cast<std::uint32_t>(seq_offset);
  std::vector<std::byte> message(wire::kEmittedIcmpErrorBytes);
  if (is_ipv6_) {
    message = wire::icmpv6_error_message({.type = wire::Icmpv6Type{type},
                                          .code = code,
                                          .mtu_bytes = mtu_bytes,
                                          .source = source,
                                          .destination = destination,
                                          .sequence = sequence},
                                         destination.address);
    message.resize(message.size() + padding_bytes);
    wire::fill_icmpv6_checksum(destination.address, source.address, message);
  } else {
    wire::emit_icmp_error({.type = wire::IcmpError::Type{type},
                           .code = code,
                           .next_hop_mtu_bytes = mtu_bytes,
                           .source = source,
                           .destination = destination,
                           .sequence = sequence},
                          message.data());
    message.resize(message.size() + padding_bytes);
    wire::store_be16(message.data() + 2, 0);
    wire::store_be16(message.data() + 2, wire::internet_checksum(message));
  }
  std::vector<std::byte> bytes =
      packet(is_ipv6_ ? wire::IpProtocol::kIcmpv6 : wire::IpProtocol::kIcmp, message.size());
  std::copy(message.begin(), message.end(),
            bytes.end() - static_cast<std::ptrdiff_t>(message.size()));
  RxFrame frame;
  frame.head = bytes;
  receive(frame);
  require(!frame.kept);
}

void LiveStack::learn(const TxFrame& frame) {
  if (frame.l3_bytes == 0) return;  // ARP.
  const std::byte* tcp = frame.header.data() + frame.l2_bytes + frame.l3_bytes;
  if (wire::load_be16(tcp + 2) != kPeerPort || wire::load_be16(tcp) != kListeningPort) return;
  const wire::TcpFlags flags(wire::load_u8(tcp + 13));
  stack_next_ = wire::load_be32(tcp + 4) + frame.payload_bytes +
                (flags.has_any(wire::kSyn | wire::kFin) ? 1U : 0U);
}

void LiveStack::turn() {
  stack_.on_timers(now_);
  for (int rounds = 0;; ++rounds) {
    require(rounds < 1000);
    const std::size_t count = stack_.collect(now_, burst_);
    for (std::size_t i = 0; i < count; ++i) {
      const TxFrame& frame = burst_[i];
      require(frame.header_bytes <= TxFrame::kHeaderCapacity &&
              frame.fragment_count <= TxFrame::kMaxFragments);
      std::size_t payload = 0;
      for (std::size_t f = 0; f < frame.fragment_count; ++f) {
        payload += frame.fragments[f].size_bytes;
        // Every byte that a NIC would read must be there.
        volatile std::byte sink = frame.fragments[f].data[0];
        sink = frame.fragments[f].data[frame.fragments[f].size_bytes - 1];
        (void)sink;
      }
      require(payload == frame.payload_bytes);
      learn(frame);
    }
    if (count == 0) break;
  }
  check();
}

void LiveStack::check() {
  std::array<RxFrame, 8> released;
  for (std::size_t count = stack_.take_released(released); count > 0;
       count = stack_.take_released(released)) {
    require(count <= held_);
    held_ -= count;
  }
  require(held_ * 10240 <= kMaxHeldBytes);
  require(stack_.unfinished() == 0 || stack_.next_deadline() != kNever);
}

void LiveStack::advance(Duration span) {
  const TimePoint end = now_ + span;
  for (int turns = 0; stack_.next_deadline() <= end; ++turns) {
    require(turns < 100'000);
    now_ = std::max(now_, stack_.next_deadline());
    turn();
  }
  now_ = end;
  turn();
}

void LiveStack::write(std::size_t size_bytes) {
  User& user = users_[0];
  if (user.stream == nullptr) return;
  const Fragment fragment{sent_bytes_.data(),
                          static_cast<std::uint32_t>(std::min(size_bytes, sent_bytes_.size())),
                          kUnmapped};
  const std::size_t copied = size_bytes % 64;
  const bool had_room = user.stream->room() > 0;
  const std::uint64_t before = user.written;
  user.written += copied + fragment.size_bytes;
  if (!user.stream->write(std::span(sent_bytes_).first(copied),
                          std::span(&fragment, fragment.size_bytes > 0 ? 1 : 0))) {
    user.written = before;
    require(!had_room);
  }
  turn();
}

void LiveStack::finish() {
  User& user = users_[0];
  if (user.stream != nullptr) {
    user.stream->finish();
    user.finished = true;
    require(user.stream->room() == 0 && !user.stream->write(std::span(sent_bytes_).first(1), {}));
  }
  turn();
}

void LiveStack::close() {
  if (Stream* stream = std::exchange(users_[0].stream, nullptr)) stream->close();
  turn();
}

void LiveStack::abort() {
  if (Stream* stream = std::exchange(users_[0].stream, nullptr)) stream->abort();
  turn();
}

void LiveStack::connect() {
  if (next_user_ == users_.size()) return;
  User& user = users_[next_user_];
  if (auto stream = stack_.connect(now_, {peer_address(is_ipv6_), kPeerPort}, user)) {
    user.stream = *stream;
    ++next_user_;
  }
  turn();
}

void LiveStack::settle() {
  stack_.unlisten(kListeningPort);
  for (User& user : users_)
    if (Stream* stream = std::exchange(user.stream, nullptr)) stream->abort();
  turn();
  // Every half-open or waiting connection times out: connect and user timeouts are the longest.
  advance(std::chrono::seconds(60));
  require(stack_.unfinished() == 0);
  require(held_ == 0);
}

}  // namespace ztcp::fuzz
