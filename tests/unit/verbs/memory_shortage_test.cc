// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Without memory for anything more.
#include "tests/support/failing_allocation.h"
#include "tests/unit/verbs/control_fixture.h"

namespace ztcp::verbs {
namespace {

using VerbsMemoryShortage = ControlFixture;

// NCCL's threads say it in a destructor.
TEST_F(VerbsMemoryShortage, ThePeerIsToldOfAFailedRailAllTheSame) {
  connect();
  Connection& sender = *ends_[0];
  Connection& receiver = *ends_[1];
  {
    const auto lock = sender.lock();
    ASSERT_TRUE(sender.recovery().lose(0, "its port is down"));
  }
  test::FailingAllocation failing(1);
  failing.during([&] { control_thread_->send_notes(ends_[0]); });
  EXPECT_FALSE(failing.has_failed());
  while (is_up(receiver)) std::this_thread::yield();
}

TEST_F(VerbsMemoryShortage, ThePeerIsToldWhyTheConnectionEndsAllTheSame) {
  connect();
  test::FailingAllocation failing(1);
  failing.during([&] { control_thread_->tell(ends_[0], Errc::kTimedOut, "nothing comes"); });
  EXPECT_FALSE(failing.has_failed());
  while (ends_[1]->peer_status().event() == PeerEvent::kNone) std::this_thread::yield();
  EXPECT_EQ(ends_[1]->peer_status().text(), "nothing comes");
}

}  // namespace
}  // namespace ztcp::verbs
