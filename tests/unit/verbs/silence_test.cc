// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's network between two hosts is away, as while a switch of their management starts
// anew, and their fabric is whole; or is not. In a network of the test's own.
#include <cstring>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "core/fd.h"
#include "tests/unit/verbs/connections.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;
using testing::Not;

class OwnNetwork {
 protected:
  OwnNetwork() {
    if (before_ && unshare(CLONE_NEWNET) == 0) is_there_ = set_up(true);
  }
  ~OwnNetwork() {
    if (is_there_) {
      EXPECT_EQ(setns(before_.get(), CLONE_NEWNET), 0);
    }
  }
  static bool set_up(bool is_up) {
    const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    if (ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) return false;
    request.ifr_flags =
        static_cast<short>(is_up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    return ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
  }

  Fd before_{open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)};
  bool is_there_ = false;
};

class SilenceTest : public OwnNetwork, public Connections {
 protected:
  SilenceTest() : Connections({roce_device("fake0", 1), roce_device("fake1", 2)}) {
    transport_.reset();
    host_.fabric.tcp.user_timeout_ms = 1500;
    host_.fabric.tcp.keepalive_idle_ms = 1000;
    host_.fabric.tcp.keepalive_interval_ms = 1000;
    transport_ = host_.start();
  }
  void SetUp() override {
    if (!is_there_) GTEST_SKIP() << "needs the right to make a network namespace";
  }
  static std::size_t count(const std::string& in, const std::string& what) {
    std::size_t out = 0;
    for (std::size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++out;
    return out;
  }
  // As the kernel of a living peer does that had no answer for the user timeout.
  static void reset_dialled() {
    for (int fd = 0; fd < 1024; ++fd) {
      int is_listener = 0;
      socklen_t size = sizeof is_listener;
      sockaddr_in own{};
      sockaddr_in peer{};
      socklen_t own_size = sizeof own;
      socklen_t peer_size = sizeof peer;
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &size) != 0 || is_listener != 0 ||
          getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
          getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 ||
          own.sin_family != AF_INET || ntohs(own.sin_port) < ntohs(peer.sin_port))
        continue;
      sockaddr nobody{};
      nobody.sa_family = AF_UNSPEC;
      // A plain system call, which ThreadSanitizer does not see as a use of the product's
      // descriptor: it stands for the network.
      EXPECT_EQ(syscall(SYS_connect, fd, &nobody, sizeof nobody), 0);
    }
  }
  std::size_t backs() const {
    std::size_t out = 0;
    for (const std::string& line : log_.infos()) out += count(line, "is back");
    return out;
  }
};

TEST_F(SilenceTest, OfTcpAloneEndsNoConnection) {
  test::Pair both = pair();
  exchange(both, 1000, 1);
  ASSERT_TRUE(set_up(false));
  const auto carry_until = [&](auto&& is_over) {
    for (std::uint64_t seed = 2; !is_over() && !HasFailure(); ++seed) {
      exchange(both, 1000, seed);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  carry_until([&] { return count(log_.warned(), " is silent (") == 2; });
  ASSERT_TRUE(set_up(true));
  carry_until([&] { return backs() == 2; });
  exchange(both, 100'000, 4);
  EXPECT_THAT(log_.warned(), Not(HasSubstr("failed")));
}

TEST_F(SilenceTest, AResetByALivingPeerEndsNoConnection) {
  test::Pair both = pair();
  exchange(both, 1000, 1);
  reset_dialled();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  for (std::uint64_t seed = 2; std::chrono::steady_clock::now() < end && !HasFailure(); ++seed) {
    exchange(both, 1000, seed);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(backs(), 2U);
  EXPECT_THAT(log_.warned(), Not(HasSubstr("failed")));
}

TEST_F(SilenceTest, AResetBySenderThatDialsNoMoreEndsTheReceiver) {
  test::Pair both = pair();
  exchange(both, 1000, 1);
  test::Bytes to(1000);
  MemoryKey* const key = register_host(*both.receiver, to);
  const auto receive = test::post_recv(*both.receiver, to, key);
  ASSERT_TRUE(receive && *receive != nullptr);
  reset_dialled();
  ASSERT_TRUE(set_up(false));
  const auto done = test::finish(**receive);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kPeerClosed);
  EXPECT_THAT(log_.warned(), HasSubstr("its process ended without a word"));
  ASSERT_TRUE(set_up(true));
  EXPECT_TRUE(both.receiver->deregister_memory(key));
}

// Nothing else would ever tell a receiver that waits.
TEST_F(SilenceTest, OfTheFabricAsWellEndsAReceiverThatWaits) {
  test::Pair both = pair();
  exchange(both, 1000, 1);
  test::Bytes to(1000);
  MemoryKey* const key = register_host(*both.receiver, to);
  const auto receive = test::post_recv(*both.receiver, to, key);
  ASSERT_TRUE(receive && *receive != nullptr);
  ASSERT_TRUE(set_up(false));
  const auto works = [this] { return host_.devices.counts("fake1").works; };
  const auto test_it = [&] { return (*receive)->test({}); };
  while (count(log_.warned(), " is silent (") < 2) {
    const auto done = test_it();
    ASSERT_TRUE(done && !*done);
  }
  for (const int before = works(); works() < before + 2;) {
    const auto done = test_it();
    ASSERT_TRUE(done && !*done) << "the peer's NIC answers";
  }
  host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
  Result<bool> done = false;
  while (done && !*done) done = test_it();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kTimedOut);
  EXPECT_THAT(log_.warned(), HasSubstr("IBV_WC_RETRY_EXC_ERR"));
  ASSERT_TRUE(set_up(true));
  EXPECT_TRUE(both.receiver->deregister_memory(key));
}

}  // namespace
}  // namespace ztcp::verbs
