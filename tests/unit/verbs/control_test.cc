// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/control.h"

#include "tests/unit/verbs/control_fixture.h"
#include "tests/unit/verbs/own_sockets.h"

namespace ztcp::verbs {
namespace {

class ControlTest : public ControlFixture {
 protected:
  // Till nothing is to be done about connections any more. Each has a stream and a path there.
  void await_paths() {
    const std::size_t wanted = 2 * ends_.size();
    for (bool are_there = false; !are_there; std::this_thread::yield()) {
      const std::vector<int> all = connected_at(tcp_address().prefix.address);
      are_there = all.size() == wanted && have_heard(all);
    }
    EXPECT_EQ(control_->accept(*arrivals_), nullptr) << "what was read is seen to";
  }
};

// Else whoever reaches the port stops them all, as often as he likes.
TEST_F(ControlTest, StrangersAreTurnedAwayWithoutALookAtAnyConnection) {
  for (int i = 0; i < 3; ++i) connect();
  await_paths();
  std::vector<std::unique_lock<std::mutex>> held;
  for (const auto& end : ends_) held.push_back(end->lock());
  for (int i = 0; i < 200; ++i) {
    const Ticket ticket{static_cast<std::byte>(i), std::byte{1}};
    ASSERT_TRUE(is_turned_away(tcp_address().prefix.address, make_stream_hello(ticket)))
        << "stranger " << i << " waits for a connection";
  }
}

}  // namespace
}  // namespace ztcp::verbs
