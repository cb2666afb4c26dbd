// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whole connections between merged devices of one host, joined over loopback by the real control
// threads, and traffic over them that is looked at closely.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {

class RailsFixture : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 200'000;
  static constexpr std::size_t kInFlight = 8;
  using Bytes = test::Bytes;

  // The first device is the sender's, the second the receiver's.
  explicit RailsFixture(std::vector<config::Nic> nics)
      : RailsFixture(std::move(nics), {roce_device("fake0", 1), roce_device("fake1", 2),
                                       roce_device("fake2", 3), roce_device("fake3", 4)}) {}
  RailsFixture(std::vector<config::Nic> nics, const std::vector<test::FakeDeviceSpec>& specs)
      : host_(specs, 3) {
    host_.fabric.nics = std::move(nics);
    transport_ = host_.start();
    pair_ = test::connect(*transport_, *transport_, 1);
    from_key_ = key_of(*pair_.sender, from_);
    to_key_ = key_of(*pair_.receiver, to_);
  }
  ~RailsFixture() override {
    EXPECT_TRUE(pair_.sender->deregister_memory(from_key_));
    EXPECT_TRUE(pair_.receiver->deregister_memory(to_key_));
    pair_ = {};
    transport_.reset();
    EXPECT_THAT(host_.devices.misuse(), testing::IsEmpty());
    for (const char* kind : {"qp", "cq", "mr", "pd", "context"})
      EXPECT_EQ(host_.devices.live(kind), 0) << kind;
  }

  static MemoryKey* key_of(Comm& comm, Bytes& bytes) {
    return *comm.register_memory({.address = bytes.data(), .size_bytes = bytes.size()});
  }

  // Posts up to kInFlight messages ahead, each with bytes of its own; checks those that are done.
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
  // Does it over another connection, with memory of its own.
  template <class Work>
  void over(test::Pair other, Work&& work) {
    ASSERT_NE(other.receiver, nullptr);
    Bytes from(from_.size());
    Bytes to(to_.size());
    MemoryKey* from_key = key_of(*other.sender, from);
    MemoryKey* to_key = key_of(*other.receiver, to);
    std::deque<Request*> sends;
    std::deque<Request*> receives;
    std::array<std::size_t, 3> counts{};
    const auto change = [&] {
      std::swap(pair_, other);
      from_.swap(from);
      to_.swap(to);
      std::swap(from_key_, from_key);
      std::swap(to_key_, to_key);
      sends_.swap(sends);
      receives_.swap(receives);
      std::swap(posted_, counts[0]);
      std::swap(sent_, counts[1]);
      std::swap(received_, counts[2]);
    };
    change();
    work();
    change();
    EXPECT_TRUE(other.sender->deregister_memory(from_key));
    EXPECT_TRUE(other.receiver->deregister_memory(to_key));
    other = {};  // Before its memory.
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
  test::Pair pair_;
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

}  // namespace ztcp::verbs
