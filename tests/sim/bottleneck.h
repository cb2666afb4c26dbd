// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows of one host over a line slower than the host, with a drop-tail queue in front of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"

namespace ztcp::sim {

using namespace std::chrono_literals;

// Sends without end, or until `limit` bytes are written, and keeps nothing: the tests check rates,
// not content.
class Source final : public StreamEvents {
 public:
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  Source(std::span<const std::byte> block, std::uint64_t limit) : block_(block), limit_(limit) {}
  // Adds to the limit.
  void send_more(std::uint64_t bytes) {
    limit_ += bytes;
    pump();
  }
  bool is_done() const { return acked == limit_; }
  bool is_open() const { return stream_ != nullptr; }
  void on_open(TimePoint, Stream& stream) override {
    stream_ = &stream;
    pump();
  }
  void on_bytes(TimePoint, std::span<const std::byte>) override {}
  void on_acked(TimePoint, std::uint64_t total_bytes) override {
    acked = total_bytes;
    pump();
  }
  void on_closed(TimePoint) override {}
  void on_failed(TimePoint, Error) override { stream_ = nullptr; }

  std::uint64_t acked = 0;

 private:
  void pump() {
    while (stream_ != nullptr && written_ < limit_ && stream_->room() > 0) {
      const auto size = std::min<std::uint64_t>(block_.size(), limit_ - written_);
      const Fragment fragment{block_.data(), static_cast<std::uint32_t>(size), kUnmapped};
      if (!stream_->write({}, std::span(&fragment, 1))) return;
      written_ += size;
    }
  }
  std::span<const std::byte> block_;
  std::uint64_t limit_;
  std::uint64_t written_ = 0;
  Stream* stream_ = nullptr;
};

class Sink final : public tcp::StreamAcceptor {
 public:
  StreamEvents* on_accept(TimePoint, Stream&, Endpoint) override { return &nobody_; }

 private:
  class Nobody final : public StreamEvents {
    void on_open(TimePoint, Stream&) override {}
    void on_bytes(TimePoint, std::span<const std::byte>) override {}
    void on_acked(TimePoint, std::uint64_t) override {}
    void on_closed(TimePoint) override {}
    void on_failed(TimePoint, Error) override {}
  };
  Nobody nobody_;
};

struct Line {
  std::uint64_t rate_bits_per_second = 500'000'000;
  Duration round_trip = 10ms;
  Duration queue = 10ms;  // At the line's rate.
  Duration receiver_turn{};
  Duration jitter{};  // The ACKs' jitter.
  std::uint16_t mtu_bytes = 1500;
  Duration sender_turn{};
  std::uint64_t seed = 1;
  std::uint32_t queue_bytes = 0;          // Not 0: instead of `queue`.
  std::uint32_t ecn_threshold_bytes = 0;  // 0: marks nothing.
  tcp::TcpSettings tcp = {};
  double loss = 0;          // Share of data, at random.
  std::uint32_t paths = 1;  // Of data: see link::Impairment.
  Duration path_skew{};

  double bytes_in(Duration d) const {
    return static_cast<double>(rate_bits_per_second) / 8 * std::chrono::duration<double>(d).count();
  }
};

class Bottleneck {
 public:
  explicit Bottleneck(const Line& line)
      : line_(line),
        block_(pattern(64U << 10)),
        sender_(config(0, line), {line.seed, 2}),
        receiver_(config(1, line), {3, line.seed}),
        world_(sender_, receiver_, options(line)) {
    EXPECT_TRUE(receiver_.listen(kPort, sink_));
  }

  Source& open(std::uint64_t limit = Source::kNoLimit) {
    sources_.push_back(std::make_unique<Source>(block_, limit));
    EXPECT_TRUE(sender_.connect(world_.now(), {TcpWorld::address(1), kPort}, *sources_.back()));
    return *sources_.back();
  }
  // A flow with a congestion control of its own.
  Source& open(tcp::MakeCongestionControl make) {
    chosen_ = make;
    Source& source = open();
    while (!source.is_open()) run(100us);
    return source;
  }
  void run(Duration span) {
    const TimePoint end = world_.now() + span;
    while (world_.now() < end) {
      ASSERT_TRUE(world_.run_for(std::min<Duration>(end - world_.now(), 100us))) << world_.why();
      most_queued_ = std::max(most_queued_, world_.wire(0).queued_bytes(world_.now()));
    }
  }
  Duration most_queued() const {
    return Duration(static_cast<Duration::rep>(static_cast<double>(most_queued_) * 8e9 /
                                               static_cast<double>(line_.rate_bits_per_second)));
  }
  std::uint64_t drops() { return world_.wire(0).counters().queue_full; }
  std::uint64_t queued_bytes() { return world_.wire(0).queued_bytes(world_.now()); }
  TimePoint now() const { return world_.now(); }
  tcp::Stack& sender() { return sender_; }
  World<tcp::Stack>& world() { return world_; }
  std::vector<std::unique_ptr<Source>>& sources() { return sources_; }

 private:
  static tcp::StackConfig config(std::size_t host, const Line& line) {
    tcp::StackConfig config;
    config.mtu_bytes = line.mtu_bytes;
    config.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
    config.address = {TcpWorld::address(host), 24};
    config.max_connections = 64;
    config.tcp = line.tcp;
    // The path is tested, not the receiver's memory for frames out of order.
    config.max_held_bytes = 256U << 20;
    config.max_held_frames = 65536;
    chosen_ = line.tcp.congestion_control;
    config.tcp.congestion_control = [](tcp::CongestionControl::Storage& storage,
                                       tcp::SeqNum first) -> tcp::CongestionControl& {
      return chosen_(storage, first);
    };
    return config;
  }
  static WorldOptions options(const Line& line) {
    WorldOptions options;
    options.forward = {.loss = line.loss,
                       .delay = line.round_trip / 2,
                       .paths = line.paths,
                       .path_skew = line.path_skew,
                       .rate_bits_per_second = line.rate_bits_per_second,
                       .queue_limit_bytes = line.queue_bytes != 0 ? line.queue_bytes
                                                                  : static_cast<std::uint32_t>(
                                                                        line.bytes_in(line.queue)),
                       .ecn_threshold_bytes = line.ecn_threshold_bytes};
    options.backward = {.delay = line.round_trip / 2, .jitter = line.jitter};
    options.seed = line.seed;
    options.turn_interval = {line.sender_turn, line.receiver_turn};
    options.burst = 1024;  // One ACK for all that has come.
    return options;
  }

  // The next connection that opens has it.
  static inline tcp::MakeCongestionControl chosen_;

  Line line_;
  Bytes block_;
  tcp::Stack sender_;
  tcp::Stack receiver_;
  Sink sink_;
  std::vector<std::unique_ptr<Source>> sources_;
  World<tcp::Stack> world_;
  std::uint64_t most_queued_ = 0;
};

}  // namespace ztcp::sim
