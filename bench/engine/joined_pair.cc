// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/engine/joined_pair.h"

#include <algorithm>

namespace ztcp::bench {
namespace {

constexpr std::uint16_t kPort = 7471;
constexpr std::size_t kWindowBytes = 4U << 20;
// What NCCL hands to a network at a time.
constexpr std::uint64_t kWriteBytes = 512U << 10;
// What passes between turns; larger than the pacer's gaps at any rate reached here.
constexpr Duration kTurn = std::chrono::microseconds(20);

}  // namespace

void JoinedPair::Sender::pump() {
  while (written_ < wanted_ && stream_->room() > 0) {
    const std::uint64_t at = written_ % source_.size();
    const std::uint64_t size =
        std::min({kWriteBytes, wanted_ - written_, std::uint64_t{source_.size()} - at});
    const Fragment fragment{source_.data() + at, static_cast<std::uint32_t>(size), 1};
    if (!stream_->write({}, {&fragment, 1})) break;
    written_ += size;
  }
}

void JoinedPair::Receiver::on_bytes(TimePoint, std::span<const std::byte> bytes) {
  received_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), destination_.size() - at_);
    ordered_copy(destination_.data() + at_, bytes.data(), size);
    bytes = bytes.subspan(size);
    at_ += size;
    if (at_ == destination_.size()) at_ = 0;
  }
}

tcp::StackConfig JoinedPair::host_config(const PairOptions& options, std::uint8_t host) {
  tcp::StackConfig config;
  config.mac = MacAddress{{2, 0, 0, 0, 0, host}};
  config.address = {Ipv4Address{0x0a4d0100U + host}, 24};
  config.mtu_bytes = options.mtu_bytes;
  config.tx_checksum_offload = options.checksum_offload;
  config.max_super_segment_bytes = options.super_segment_bytes;
  config.max_connections = 16;
  config.tcp.receive_window_bytes = kWindowBytes;
  return config;
}

JoinedPair::JoinedPair(const PairOptions& options, std::span<const std::byte> source,
                       std::span<std::byte> destination)
    : options_(options),
      sender_(source),
      receiver_(destination),
      client_(host_config(options, 1), {1, 2}),
      server_(host_config(options, 2), {3, 4}),
      data_(2 * kWindowBytes / (options.mtu_bytes - 100) + kBurst),
      acks_(data_.sent.size()) {}

void JoinedPair::make_views(Cable& cable) const {
  for (std::size_t i = 0; i < cable.count; ++i) {
    const TxFrame& sent = cable.sent[i];
    RxFrame& view = cable.views[i];
    view = {};
    view.head = {sent.header.data(), sent.header_bytes};
    for (std::size_t f = 0; f < sent.fragment_count; ++f)
      cable.pieces[i][f] = {sent.fragments[f].data, sent.fragments[f].size_bytes};
    view.more = {cable.pieces[i].data(), sent.fragment_count};
    view.handle = &view;
    view.charge_bytes = options_.mtu_bytes;
    view.checksum_good = options_.checksum_offload;
  }
}

std::uint64_t JoinedPair::collect(tcp::Stack& from, Cable& cable) {
  const std::uint64_t begin = read_cycles();
  while (cable.count < cable.sent.size()) {
    const std::size_t room = std::min(kBurst, cable.sent.size() - cable.count);
    const std::size_t count = from.collect(now_, {cable.sent.data() + cable.count, room});
    cable.count += count;
    if (count == 0) break;
  }
  return read_cycles() - begin;
}

std::uint64_t JoinedPair::deliver(Cable& cable, tcp::Stack& to, Cable& answers) {
  make_views(cable);
  std::uint64_t cycles = 0;
  for (std::size_t at = 0; at < cable.count; at += kBurst) {
    const std::size_t size = std::min(kBurst, cable.count - at);
    const std::uint64_t begin = read_cycles();
    to.on_frames(now_, {cable.views.data() + at, size});
    to.on_timers(now_);
    cycles += read_cycles() - begin;
    cycles += collect(to, answers);
  }
  cable.count = 0;
  return cycles;
}

void JoinedPair::turn(Cycles& cycles) {
  now_ += kTurn;
  cycles.send += deliver(acks_, client_, data_);
  const std::uint64_t begin = read_cycles();
  client_.on_timers(now_);
  cycles.send += read_cycles() - begin;
  cycles.send += collect(client_, data_);
  cycles.receive += deliver(data_, server_, acks_);
}

bool JoinedPair::connect() {
  if (!server_.listen(kPort, receiver_)) return false;
  const auto stream =
      client_.connect(now_, {host_config(options_, 2).address.address, kPort}, sender_);
  if (!stream) return false;
  Cycles ignored;
  for (int turns = 0; turns < 1000 && !sender_.is_open(); ++turns) turn(ignored);
  return sender_.is_open();
}

Cycles JoinedPair::transfer(std::size_t bytes) {
  wanted_ += bytes;
  Cycles cycles;
  const std::uint64_t begin = read_cycles();
  sender_.want(wanted_);
  cycles.send += read_cycles() - begin;
  // Far more turns than any window needs.
  const std::size_t limit = 1000 + bytes / options_.mtu_bytes;
  for (std::size_t turns = 0; turns < limit && sender_.acked() < wanted_; ++turns) turn(cycles);
  return cycles;
}

bool JoinedPair::is_intact() const {
  return !sender_.failed() && !receiver_.failed() && sender_.acked() == wanted_ &&
         receiver_.received() == wanted_ && client_.counters().tx_retransmitted_bytes == 0 &&
         server_.counters().rx_bad_checksum == 0;
}

}  // namespace ztcp::bench
