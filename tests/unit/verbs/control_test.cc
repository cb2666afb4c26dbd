// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/control.h"

#include <sys/socket.h>

#include "tests/unit/verbs/control_fixture.h"
#include "transport/core/socket_address.h"

namespace ztcp::verbs {
namespace {

class ControlTest : public ControlFixture {
 protected:
  // Whether somebody who says that ticket is turned away in time.
  bool is_turned_away(const Ticket& ticket) {
    constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
    const link::Fd stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress to = to_socket_address(to_->rails[1]->listening->endpoint);
    if (::connect(stranger.get(), to.get(), to.size_bytes) != 0) return false;
    setsockopt(stranger.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    const StreamHello hello = make_stream_hello(ticket);
    if (send(stranger.get(), &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello))
      return false;
    char byte = 0;
    return recv(stranger.get(), &byte, 1, 0) == 0;
  }
};

// Else whoever reaches the port stops them all, as often as he likes.
TEST_F(ControlTest, StrangersAreTurnedAwayWithoutALookAtAnyConnection) {
  for (int i = 0; i < 3; ++i) connect();
  std::vector<std::unique_lock<std::mutex>> held;
  for (const auto& end : ends_) held.push_back(end->lock());
  for (int i = 0; i < 200; ++i) {
    const Ticket ticket{static_cast<std::byte>(i), std::byte{1}};
    ASSERT_TRUE(is_turned_away(ticket)) << "stranger " << i << " waits for a connection";
  }
}

}  // namespace
}  // namespace ztcp::verbs
