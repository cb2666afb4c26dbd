// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/engine/joined_pair.h"

#include <algorithm>

#include "core/cpu_pause.h"

namespace ztcp::bench {
namespace {

constexpr msg::Cookie kCookie{std::byte{1}, std::byte{2}, std::byte{3}};
// Time between turns; longer than any gap that pacing asks for at the rates reached here.
constexpr Duration kTurn = std::chrono::microseconds(20);

}  // namespace

ustack::EngineConfig JoinedPair::host_config(const PairOptions& options, std::uint8_t host) {
  ustack::EngineConfig config;
  config.stack.mac = MacAddress{{2, 0, 0, 0, 0, host}};
  config.stack.address = {Ipv4Address{0x0a4d0100U + host}, 24};
  if (options.is_ipv6) config.stack.address = {{0xfd00ULL << 48, host}, 64};
  config.stack.mtu_bytes = options.mtu_bytes;
  config.stack.tx_checksum_offload = options.checksum_offload;
  config.stack.max_super_segment_bytes = options.super_segment_bytes;
  config.stack.max_connections = 16;
  config.session.max_sessions = 4;
  config.max_pending_streams = 8;
  config.secret = {host, host};
  config.copies.workers = options.workers;
  return config;
}

JoinedPair::JoinedPair(const PairOptions& options, std::span<const std::byte> source,
                       std::span<std::byte> destination)
    : options_(options),
      source_(source),
      destination_(destination),
      client_(host_config(options, 1)),
      server_(host_config(options, 2), &workers_),
      data_(2 * kInFlight * kMessageBytes / (options.mtu_bytes - 100U) + kBurst),
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

void JoinedPair::post_sends() {
  while (sender_.posted < wanted_messages_ && sender_.posted < sender_.done + kInFlight) {
    msg::SendMessage& message = sender_.take();
    const std::size_t at = sender_.posted++ * kMessageBytes % source_.size();
    message.start(source_.subspan(at, kMessageBytes), 0, kUnmapped);
    session_->post(now_, message);
  }
}

void JoinedPair::post_receives() {
  if (!receiver_.ready) return;
  // Posts ahead of the sends, as NCCL does.
  while (receiver_.posted < receiver_.done + kInFlight) {
    msg::RecvMessage& message = receiver_.take();
    const std::size_t at = receiver_.posted++ * kMessageBytes % destination_.size();
    message.start(destination_.subspan(at, kMessageBytes), 0);
    listener_.session->post(now_, message);
  }
}

void JoinedPair::collect(ustack::Engine& from, Cable& cable) {
  while (cable.count < cable.sent.size()) {
    const std::size_t room = std::min(kBurst, cable.sent.size() - cable.count);
    const std::size_t count = from.collect(now_, {cable.sent.data() + cable.count, room});
    cable.count += count;
    if (count == 0) break;
  }
}

// Frames are views of the sender's memory: there is nothing to free.
void JoinedPair::take_released() {
  std::array<RxFrame, kBurst> released;
  while (server_.take_released(released) == released.size()) {
  }
}

// Copies that workers still have to do count, too.
void JoinedPair::finish_copies() {
  const msg::CopyJobs* const copies = server_.copies();
  if (copies == nullptr) return;
  while (!copies->is_idle()) {
    server_.on_timers(now_);
    cpu_pause();
  }
  post_receives();
  server_.on_timers(now_);
  collect(server_, acks_);
}

template <class Post>
std::uint64_t JoinedPair::deliver(Cable& cable, ustack::Engine& to, Cable& answers, Post post) {
  make_views(cable);
  const std::uint64_t begin = read_cycles();
  for (std::size_t at = 0; at < cable.count; at += kBurst) {
    to.on_frames(now_, {cable.views.data() + at, std::min(kBurst, cable.count - at)});
    post();
    to.on_timers(now_);
    if (&to == &server_) take_released();
    collect(to, answers);
  }
  if (&to == &server_) finish_copies();
  cable.count = 0;
  return read_cycles() - begin;
}

void JoinedPair::turn(Cycles& cycles) {
  now_ += kTurn;
  cycles.send += deliver(acks_, client_, data_, [] {});
  const std::uint64_t begin = read_cycles();
  post_sends();
  client_.on_timers(now_);
  collect(client_, data_);
  cycles.send += read_cycles() - begin;
  cycles.receive += deliver(data_, server_, acks_, [this] { post_receives(); });
}

bool JoinedPair::connect() {
  const WorkerThreads::Options threads{
      .name = "bench-w", .cpus = {}, .spin = std::chrono::milliseconds(1)};
  if (!workers_.start(options_.workers, threads,
                      [this](std::size_t worker) { return server_.copies()->work(worker); }))
    return false;
  if (!server_.sessions().acceptor().add_listener(kCookie, listener_)) return false;
  const auto config = host_config(options_, 2);
  session_ = &client_.sessions().connect({config.stack.address.address, config.listen_port},
                                         kCookie, sender_);
  Cycles ignored;
  for (int turns = 0; turns < 1000 && !sender_.ready; ++turns) turn(ignored);
  if (!sender_.ready || listener_.session == nullptr) return false;
  listener_.session->set_owner(receiver_);
  receiver_.ready = true;
  return true;
}

Cycles JoinedPair::transfer(std::size_t bytes) {
  wanted_messages_ += bytes / kMessageBytes;
  Cycles cycles;
  // Far more turns than any window needs.
  const std::size_t limit = 10'000 + bytes / options_.mtu_bytes;
  for (std::size_t turns = 0; turns < limit && sender_.done < wanted_messages_; ++turns)
    turn(cycles);
  return cycles;
}

bool JoinedPair::is_intact() const {
  return !sender_.failed && !receiver_.failed && sender_.done == wanted_messages_ &&
         receiver_.bytes == wanted_messages_ * kMessageBytes &&
         client_.stack().counters().tx_retransmitted_bytes == 0 &&
         server_.stack().counters().rx_bad_checksum == 0;
}

}  // namespace ztcp::bench
