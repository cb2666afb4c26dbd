// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A stack, a Transmitter and a NIC whose line is slower than the stack: what waits where, and that
// nothing is lost but by the cable.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/app.h"
#include "tests/sim/line_link.h"
#include "transport/tcp/stack.h"
#include "transport/ustack/engine/transmitter.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7471;
constexpr Duration kTurn = 5us;  // Pollers spin: they come by more often than frames do.

Ipv4Address address(std::uint8_t host) { return Ipv4Address{0x0a4d0100U + host}; }

// Connections arrive one by one, for one app after the other.
class Door final : public tcp::StreamAcceptor {
 public:
  explicit Door(std::vector<std::unique_ptr<App>>& apps) : apps_(apps) {}
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) override {
    return next_ < apps_.size() ? apps_[next_++]->on_accept(now, stream, remote) : nullptr;
  }

 private:
  std::vector<std::unique_ptr<App>>& apps_;
  std::size_t next_ = 0;
};

struct Host {
  Host(std::uint8_t number, const LineOptions& line)
      : stack(config(number, line), {number, 7}),
        link(line),
        transmitter(link.capabilities()),
        door(apps) {}

  static tcp::StackConfig config(std::uint8_t number, const LineOptions& line) {
    tcp::StackConfig config;
    config.mac = MacAddress{{2, 0, 0, 0, 0, number}};
    config.address = {address(number), 24};
    config.mtu_bytes = line.mtu_bytes;
    config.max_connections = 16;
    return config;
  }

  void turn(TimePoint now) {
    link.advance(now);
    std::array<RxFrame, 128> frames;
    const auto burst = std::span(frames).first(link.receive(frames));
    stack.on_frames(now, burst);
    link.release(burst);
    stack.on_timers(now);
    transmitter.run(stack, link, now);
    for (std::size_t count = frames.size(); count == frames.size();) {
      count = stack.take_released(frames);
      for (RxFrame& frame : std::span(frames).first(count)) frame.kept = false;
      link.release(std::span(frames).first(count));
    }
  }

  tcp::Stack stack;
  LineLink link;
  ustack::Transmitter transmitter;
  std::vector<std::unique_ptr<App>> apps;
  Door door;
};

// As many flows as a connection of NCCL's has, one way.
class FullRing : public testing::Test {
 protected:
  static constexpr std::size_t kFlows = 4;
  static constexpr std::size_t kBytesEach = 10U << 20;

  void begin(const LineOptions& line) {
    sender_ = std::make_unique<Host>(1, line);
    LineOptions back = line;
    back.loss = 0;
    receiver_ = std::make_unique<Host>(2, back);
    sender_->link.join(receiver_->link);
    receiver_->link.join(sender_->link);
    ASSERT_TRUE(receiver_->stack.listen(kPort, receiver_->door));
    for (std::size_t i = 0; i < kFlows; ++i) {
      sender_->apps.push_back(std::make_unique<App>(data_, std::span<const std::byte>{}));
      receiver_->apps.push_back(std::make_unique<App>(std::span<const std::byte>{}, data_));
      const auto stream = sender_->stack.connect(now_, {address(2), kPort}, *sender_->apps[i]);
      ASSERT_TRUE(stream);
      sender_->apps[i]->attach(**stream);
    }
    begun_ = now_;
  }
  bool is_done() const {
    return std::all_of(receiver_->apps.begin(), receiver_->apps.end(),
                       [](const auto& app) { return app->has_received_all(); }) &&
           std::all_of(sender_->apps.begin(), sender_->apps.end(),
                       [](const auto& app) { return app->is_all_acked(); });
  }
  // Until all is there and acknowledged.
  void run() {
    const TimePoint end = now_ + 10s;
    while (!is_done()) {
      ASSERT_LT(now_, end) << "received " << receiver_->apps[0]->received();
      now_ += kTurn;
      sender_->turn(now_);
      receiver_->turn(now_);
      for (const auto* host : {sender_.get(), receiver_.get()})
        for (const auto& app : host->apps) ASSERT_EQ(app->violation(), "");
    }
  }
  const tcp::Counters& counters() const { return sender_->stack.counters(); }
  double share_of_line_used() const {
    return static_cast<double>(sender_->link.time_busy().count()) /
           static_cast<double>((now_ - begun_).count());
  }

  const Bytes data_ = pattern(kBytesEach, 3);
  TimePoint now_{1s};
  TimePoint begun_{};
  std::unique_ptr<Host> sender_;
  std::unique_ptr<Host> receiver_;
};

// Repeats are made when the ring is fullest: of data that went at the line's speed.
TEST_F(FullRing, RepeatsAreLostByTheCableAlone) {
  for (const bool says_room : {true, false}) {
    SCOPED_TRACE(says_room ? "the link says what it has room for" : "it refuses");
    begin({.loss = 0.001, .says_room = says_room});
    run();
    EXPECT_GT(sender_->link.lost, 20U);
    EXPECT_EQ(counters().rto_fired, 0U);
    // Each frame that the stack made has left: what the peer did not get the cable lost.
    EXPECT_GE(sender_->link.sent, counters().tx_segments);
    EXPECT_GT(share_of_line_used(), 0.97);
    if (says_room) {
      EXPECT_EQ(sender_->link.refused, 0U) << "made although there was no room";
    }
  }
}

// A ring that holds more than a line needs must not be filled: everything queues behind it.
TEST_F(FullRing, ALargeRingIsNotFilledBeyondWhatKeepsTheLineBusy) {
  begin({.ring_frames = 4096});
  run();
  EXPECT_GT(share_of_line_used(), 0.97);
  // 0.1 ms of 10 Gb/s, where the ring holds 5 ms.
  EXPECT_LE(sender_->link.most_queued_bytes, 2 * ustack::QueueLimit::kLeastBytes);
}

}  // namespace
}  // namespace ztcp::sim
