// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The control thread, and connections with ends that a test inspects and holds.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "tests/unit/verbs/fake_host.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {

// Both ends of each are of one RDMA device and one rail of TCP.
class ControlFixture : public testing::Test {
 protected:
  static constexpr Cookie kCookie{std::byte{7}};

  explicit ControlFixture(const ControlSettings& settings = {})
      : host_(1), control_thread_(std::in_place, settings) {
    host_.fabric.nics = {nic_on("fake0"), nic_on("fake1"), merged(tcp_nic("eth-a"), "both"),
                         merged(tcp_nic("eth-b"), "both")};
    std::vector<std::shared_ptr<Rail>> all;
    for (Device& device : host_.list()) all.push_back(std::make_shared<Rail>(std::move(device)));
    from_ = std::make_shared<RailSet>("both", Rails{all[0], all[2]});
    to_ = std::make_shared<RailSet>("both", Rails{all[1], all[3]});
    arrivals_->rails = to_;
    const auto at = control_thread_->listen(*to_);
    EXPECT_TRUE(at);
    if (at) at_ = *at;
    control_thread_->add_listener(kCookie, arrivals_);
  }
  ~ControlFixture() override {
    for (const auto& end : ends_) control_thread_->close(end, CloseRecord::kOrderly, "");
    control_thread_->remove_listener(kCookie);
    control_thread_.reset();
    ends_.clear();
    from_.reset();
    to_.reset();
    arrivals_.reset();
    EXPECT_THAT(host_.devices.misuse(), testing::IsEmpty());
    for (const char* kind : {"qp", "cq", "mr", "pd", "context"})
      EXPECT_EQ(host_.devices.live(kind), 0) << kind;
  }

  // Until both rails serve at both ends.
  void connect() {
    auto sender = std::make_shared<Connection>(from_, Direction::kSend, at_);
    ASSERT_TRUE(sender->prepare(-1));
    ASSERT_TRUE(control_thread_->dial(sender, at_, kCookie));
    std::shared_ptr<Connection> receiver;
    while (receiver == nullptr) {
      std::this_thread::yield();
      receiver = control_thread_->accept(*arrivals_);
    }
    for (const auto& end : {sender, receiver}) {
      ends_.push_back(end);
      while (!is_up(*end)) std::this_thread::yield();
    }
  }
  static bool is_up(Connection& end) {
    if (end.phase() != Connection::Phase::kReady) return false;
    const auto lock = end.lock();
    return std::all_of(end.rail_states().begin(), end.rail_states().end(),
                       [](const RailState& one) { return one.health == RailState::Health::kUp; });
  }

  test::LogCapture log_;
  FakeHost host_;
  std::optional<ControlThread> control_thread_;
  std::shared_ptr<RailSet> from_;
  std::shared_ptr<RailSet> to_;
  std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
  Endpoint at_;
  std::vector<std::shared_ptr<Connection>> ends_;
};

}  // namespace ztcp::verbs
