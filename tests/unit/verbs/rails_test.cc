// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Merged devices whose rails fail in the midst of messages, and come back: whole connections over
// devices in memory, joined over loopback by the real control threads.
#include <algorithm>
#include <deque>

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kSize = 200'000;
constexpr std::size_t kInFlight = 8;

class RailsTest : public testing::Test {
 protected:
  // The sender's devices are fake0 and fake1, the receiver's fake2 and fake3.
  RailsTest()
      : host_({roce_device("fake0", 1), roce_device("fake1", 2), roce_device("fake2", 3),
               roce_device("fake3", 4)},
              3) {
    host_.fabric.nics = {nic_on("fake0"), nic_on("fake1"), nic_on("fake2"), nic_on("fake3")};
    host_.fabric.nics[0].merge = host_.fabric.nics[1].merge = "from";
    host_.fabric.nics[2].merge = host_.fabric.nics[3].merge = "to";
    transport_ = host_.start();
    pair_ = test::connect(*transport_, *transport_, 1);
    from_key_ = key_of(*pair_.sender, from_);
    to_key_ = key_of(*pair_.receiver, to_);
  }
  ~RailsTest() override {
    EXPECT_TRUE(pair_.sender->deregister_memory(from_key_));
    EXPECT_TRUE(pair_.receiver->deregister_memory(to_key_));
    pair_ = {};
    transport_.reset();
    EXPECT_THAT(host_.devices.misuse(), IsEmpty());
    for (const char* kind : {"qp", "cq", "mr", "pd", "context"})
      EXPECT_EQ(host_.devices.live(kind), 0) << kind;
  }

  static MemoryKey* key_of(Comm& comm, Bytes& bytes) {
    return *comm.register_memory({.address = bytes.data(), .size_bytes = bytes.size()});
  }

  // Posts up to kInFlight messages ahead, each with bytes of its own; checks whatever is done.
  void turn() {
    if (receives_.size() < kInFlight) {
      const auto to = place(to_, posted_);
      std::fill(to.begin(), to.end(), std::byte{0xee});
      const auto receive = test::post_recv(*pair_.receiver, to, to_key_);
      ASSERT_TRUE(receive) << receive.error().where;
      if (*receive != nullptr) {
        receives_.push_back(*receive);
        ++posted_;
      }
    }
    if (sends_.size() < kInFlight && sent_ < posted_) {
      const auto from = place(from_, sent_);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = byte_of(sent_, i);
      const auto send = pair_.sender->post_send(from, 0, from_key_);
      ASSERT_TRUE(send) << send.error().where;
      if (*send != nullptr) {
        sends_.push_back(*send);
        ++sent_;
      }
    }
    if (!sends_.empty()) {
      const auto done = sends_.front()->test({});
      ASSERT_TRUE(done) << done.error().where;
      if (*done) sends_.pop_front();
    }
    if (receives_.empty()) return;
    std::size_t size = 0;
    const auto done = receives_.front()->test({&size, 1});
    ASSERT_TRUE(done) << done.error().where;
    if (!*done) return;
    receives_.pop_front();
    ASSERT_EQ(size, kSize);
    const auto to = place(to_, received_);
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(to[i], byte_of(received_, i)) << "byte " << i << " of message " << received_;
    ++received_;
  }
  void carry(std::size_t messages) {
    for (const std::size_t end = received_ + messages; received_ < end && !HasFailure();) turn();
  }
  template <class Until>
  void carry_until(Until&& until) {
    while (!until() && !HasFailure()) turn();
  }
  bool has_said(const std::string& text, std::ptrdiff_t times = 1) {
    const std::vector<std::string> infos = log_.infos();
    return log_.warned().find(text) != std::string::npos ||
           std::count_if(infos.begin(), infos.end(), [&](const std::string& line) {
             return line.find(text) != std::string::npos;
           }) >= times;
  }

  std::span<std::byte> place(Bytes& bytes, std::size_t message) {
    return std::span(bytes).subspan(message % kInFlight * kSize, kSize);
  }
  static std::byte byte_of(std::size_t message, std::size_t at) {
    return static_cast<std::byte>(message * 31 + at * 7 + at / 251);
  }

  test::LogCapture log_;
  FakeHost host_;
  std::unique_ptr<Transport> transport_;
  Pair pair_;
  Bytes from_ = Bytes(kInFlight * kSize);
  Bytes to_ = Bytes(kInFlight * kSize);
  MemoryKey* from_key_ = nullptr;
  MemoryKey* to_key_ = nullptr;
  std::deque<Request*> sends_;
  std::deque<Request*> receives_;
  std::size_t posted_ = 0;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
};

TEST_F(RailsTest, APortOfTheSendersMayGoDownAndComeBack) {
  carry(20);
  host_.devices.set_port_state("fake1", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake1 port 1 has failed"); });
  carry(50);
  host_.devices.set_port_state("fake1", 1, IBV_PORT_ACTIVE);
  carry_until([this] { return has_said("the rail over fake1 port 1 to 127.0.0.1:"); });
  carry(50);
}

TEST_F(RailsTest, APortOfTheReceiversMay) {
  carry(20);
  host_.devices.set_port_state("fake2", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake2 port 1 has failed"); });
  carry(50);
  host_.devices.set_port_state("fake2", 1, IBV_PORT_ACTIVE);
  carry_until([this] { return has_said("is back"); });
  carry(50);
}

// Nobody is told by an event: a completion says so.
TEST_F(RailsTest, AQueuePairThatFailsTakesItsRailAlone) {
  for (int n = 1; n < 4; ++n) {
    carry(10);
    host_.devices.fail_next_message(IBV_WC_RETRY_EXC_ERR);
    carry_until([&] { return has_said("is back", 2 * n); });
  }
  EXPECT_THAT(log_.warned(), HasSubstr("the peer's NIC did not answer (status 12"));
}

TEST_F(RailsTest, ADeviceThatIsLostTakesItsRailAlone) {
  carry(10);
  host_.devices.raise("fake3", IBV_EVENT_DEVICE_FATAL);
  carry_until([this] { return has_said("the rail over fake3 port 1 has failed"); });
  carry(50);
}

TEST_F(RailsTest, WhatIsNoRailsFaultEndsTheConnection) {
  carry(5);
  host_.devices.fail_next_message(IBV_WC_REM_ACCESS_ERR);
  bool has_failed = false;
  for (std::size_t n = 0; n < 1'000'000 && !has_failed; ++n) {
    if (receives_.size() < kInFlight) {
      const auto receive = test::post_recv(*pair_.receiver, place(to_, posted_), to_key_);
      if (receive && *receive != nullptr) {
        receives_.push_back(*receive);
        ++posted_;
      }
    }
    const auto send = pair_.sender->post_send(place(from_, sent_), 0, from_key_);
    has_failed = !send;
    if (send && *send != nullptr) {
      ++sent_;
      (void)(*send)->test({});
    }
  }
  EXPECT_TRUE(has_failed);
}

TEST_F(RailsTest, WithoutAnyRailTheConnectionEnds) {
  carry(10);
  host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake0 port 1 has failed"); });
  host_.devices.set_port_state("fake1", 1, IBV_PORT_DOWN);
  Result<Request*> send = nullptr;
  std::deque<Request*> more = sends_;
  for (bool is_over = false; !is_over;) {
    if (more.empty()) {
      (void)test::post_recv(*pair_.receiver, place(to_, posted_), to_key_);
      send = pair_.sender->post_send(place(from_, sent_), 0, from_key_);
      is_over = !send;
      if (send && *send != nullptr) more.push_back(*send);
      continue;
    }
    const auto done = more.front()->test({});
    is_over = !done;
    if (done && *done) more.pop_front();
    if (!receives_.empty()) {
      const auto received = receives_.front()->test({});
      is_over = is_over || !received;
      if (received && *received) receives_.pop_front();
    }
  }
  EXPECT_THAT(log_.warned(), HasSubstr("port 1 failed: "));
}

}  // namespace
}  // namespace ztcp::verbs
