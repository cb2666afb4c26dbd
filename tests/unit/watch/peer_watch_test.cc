// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Watches over the kernel's loopback, in this process and in children that are killed. Every wait
// ends with its event, or fails after seconds.
#include "transport/watch/peer_watch.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/socket_address.h"

namespace ztcp::watch {
namespace {

constexpr Ipv4Address kLoopback{0x7f000001};
constexpr Ipv4Address kNicA{0x0a010001};
constexpr Ipv4Address kNicB{0x0a010002};
constexpr Proof kProof{std::byte{1}, std::byte{2}};
constexpr Proof kOtherProof{std::byte{3}};

std::unique_ptr<PeerWatch> open_watch(IpAddress nic, std::size_t max_peers = 64,
                                      IpAddress at = kLoopback) {
  auto watch = PeerWatch::open({.nic = nic, .bind_address = at, .max_peers = max_peers});
  EXPECT_TRUE(watch) << (watch ? "" : watch.error().where);
  return std::move(*watch);
}

TimePoint now() { return TimePoint(std::chrono::steady_clock::now().time_since_epoch()); }

// Calls poll() of all of them until `until` holds.
bool check_until(std::initializer_list<PeerWatch*> watches, const std::function<bool()>& until) {
  const TimePoint ends = now() + std::chrono::seconds(10);
  while (!until()) {
    if (now() > ends) return false;
    for (PeerWatch* watch : watches) EXPECT_TRUE(watch->poll(now()).empty());
    sched_yield();
  }
  return true;
}

std::vector<Peer> gone_from(PeerWatch& watch) {
  const TimePoint ends = now() + std::chrono::seconds(10);
  while (now() < ends) {
    if (auto gone = watch.poll(now()); !gone.empty()) return gone;
    sched_yield();
  }
  return {};
}

bool meet(PeerWatch& caller, IpAddress nic, PeerWatch& called) {
  called.expect(kProof);
  caller.dial(nic, called.endpoint(), kProof);
  return check_until({&caller, &called},
                     [&] { return caller.peers() == 1 && called.peers() == 1; });
}

class Socket {
 public:
  explicit Socket(Endpoint to) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress address = to_socket_address(to);
    EXPECT_EQ(connect(fd_, address.get(), address.size_bytes), 0);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  void say(const std::vector<std::uint32_t>& words) const {
    EXPECT_EQ(send(fd_, words.data(), words.size() * 4, MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size() * 4));
  }

 private:
  int fd_;
};

TEST(PeerWatch, EachSideLearnsTheOtherAndDetectsItsEnd) {
  for (const bool caller_ends : {true, false}) {
    auto a = open_watch(kNicA);
    auto b = open_watch(kNicB);
    ASSERT_TRUE(meet(*a, kNicB, *b));
    (caller_ends ? a : b).reset();
    const auto gone = gone_from(caller_ends ? *b : *a);
    ASSERT_EQ(gone.size(), 1U);
    EXPECT_EQ(gone[0].nic, caller_ends ? kNicA : kNicB);
    EXPECT_EQ(gone[0].pid, static_cast<std::uint32_t>(getpid()));
    EXPECT_FALSE(gone[0].host.empty());
  }
}

TEST(PeerWatch, WorksOverIpv6) {
  const IpAddress loopback = *parse_ip("::1");
  const Fd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress any_port = to_socket_address({loopback, 0});
  if (bind(probe.get(), any_port.get(), any_port.size_bytes) != 0)
    GTEST_SKIP() << "the loopback interface has no IPv6 address";
  auto a = open_watch(*parse_ip("2001:db8::a"), 64, loopback);
  auto b = open_watch(*parse_ip("2001:db8::b"), 64, loopback);
  EXPECT_EQ(a->endpoint().address, loopback);
  ASSERT_TRUE(meet(*a, *parse_ip("2001:db8::b"), *b));
  b.reset();
  const auto gone = gone_from(*a);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].nic, *parse_ip("2001:db8::b"));
}

TEST(PeerWatch, OneConnectionServesAllCommsOfAPair) {
  auto a = open_watch(kNicA);
  auto b = open_watch(kNicB);
  b->expect(kProof);
  for (int i = 0; i < 5; ++i) a->dial(kNicB, b->endpoint(), kProof);
  ASSERT_TRUE(check_until({a.get(), b.get()}, [&] { return a->peers() == 1 && b->peers() == 1; }));
  b->dial(kNicA, a->endpoint(), kProof);  // Comms in the other direction.
  a->dial(kNicB, b->endpoint(), kProof);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(a->poll(now()).empty());
    EXPECT_TRUE(b->poll(now()).empty());
  }
  EXPECT_EQ(a->peers(), 1U);
  EXPECT_EQ(b->peers(), 1U);
}

// Both dialled at once: only the end of the last connection is a sign.
TEST(PeerWatch, AnEndIsIgnoredWhileAnotherConnectionStands) {
  auto a = open_watch(kNicA);
  auto b = open_watch(kNicB);
  a->expect(kProof);
  b->expect(kProof);
  a->dial(kNicB, b->endpoint(), kProof);
  b->dial(kNicA, a->endpoint(), kProof);
  ASSERT_TRUE(check_until({a.get(), b.get()}, [&] { return a->peers() == 2 && b->peers() == 2; }));
  b.reset();
  EXPECT_EQ(gone_from(*a).size(), 1U);
  EXPECT_EQ(a->peers(), 0U);
}

// Each process that shares its NIC with others is dialled; the job's own connections tell more than
// this one.
TEST(PeerWatch, ProcessesThatShareANicAreWatchedOneByOne) {
  auto a = open_watch(kNicA);
  const auto open_shared = [] {
    return std::move(
        *PeerWatch::open({.nic = kNicB, .shares_nic = true, .bind_address = kLoopback}));
  };
  auto b1 = open_shared();
  auto b2 = open_shared();
  for (PeerWatch* const b : {b1.get(), b2.get()}) {
    b->expect(kProof);
    a->dial(kNicB, b->endpoint(), kProof);
    ASSERT_TRUE(check_until({a.get(), b1.get(), b2.get()}, [&] { return b->peers() == 1; }));
  }
  ASSERT_TRUE(check_until({a.get()}, [&] { return a->peers() == 2; }));
  a->dial(kNicB, b1->endpoint(), kProof);
  EXPECT_TRUE(check_until({a.get(), b1.get()}, [&] { return a->peers() == 2; }));

  b1.reset();
  EXPECT_TRUE(check_until({a.get()}, [&] { return a->peers() == 1; })) << "and no loss is reported";
  a.reset();
  const auto gone = gone_from(*b2);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].nic, kNicA);
}

// Calls the parent, and lives on until it is killed.
pid_t start_child(
    PeerWatch& parent, const std::function<void()>& then = [] {}) {
  parent.expect(kProof);
  const Endpoint to = parent.endpoint();
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(60);
  auto watch = open_watch(kNicB);
  watch->dial(kNicA, to, kProof);
  while (watch->peers() != 1) {
    watch->poll(now());
    sched_yield();
  }
  then();
  while (true) pause();
}

void reap(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(PeerWatch, AKilledProcessIsDetectedAtOnce) {
  auto watch = open_watch(kNicA);
  const pid_t child = start_child(*watch);
  ASSERT_TRUE(check_until({watch.get()}, [&] { return watch->peers() == 1; }));
  const TimePoint killed = now();
  reap(child);
  const auto gone = gone_from(*watch);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].pid, static_cast<std::uint32_t>(child));
  EXPECT_LT(now() - killed, std::chrono::seconds(1));
}

// A data loader that outlives its rank has no copy of the descriptor.
TEST(PeerWatch, AKilledProcessIsDetectedThoughItsChildLivesOn) {
  auto watch = open_watch(kNicA);
  std::array<int, 2> channel{};
  ASSERT_EQ(pipe2(channel.data(), O_CLOEXEC), 0);
  const pid_t child = start_child(*watch, [&] {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      alarm(60);
      while (true) pause();
    }
    EXPECT_EQ(write(channel[1], &grandchild, sizeof(grandchild)),
              static_cast<ssize_t>(sizeof(grandchild)));
  });
  pid_t grandchild = 0;
  ASSERT_TRUE(check_until({watch.get()}, [&] { return watch->peers() == 1; }));
  ASSERT_EQ(read(channel[0], &grandchild, sizeof(grandchild)),
            static_cast<ssize_t>(sizeof(grandchild)));
  reap(child);
  EXPECT_EQ(gone_from(*watch).size(), 1U);
  EXPECT_EQ(kill(grandchild, SIGKILL), 0) << "it did live on";
  close(channel[0]);
  close(channel[1]);
}

TEST(PeerWatch, AStoppedProcessIsNotGone) {
  auto watch = open_watch(kNicA);
  const pid_t child = start_child(*watch);
  ASSERT_TRUE(check_until({watch.get()}, [&] { return watch->peers() == 1; }));
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(watch->poll(now()).empty());
  EXPECT_EQ(watch->peers(), 1U);
  reap(child);
}

// --- Strangers ---------------------------------------------------------------------------------

TEST(PeerWatch, StrangersAreDroppedAndCounted) {
  auto watch = open_watch(kNicA);
  watch->expect(kProof);
  const std::vector<std::uint32_t> wrong_magic(28, 0x20544547);  // "GET "
  std::vector<std::uint32_t> wrong_version = {0x6863777a, 1, 1};
  wrong_version.resize(28);
  std::vector<std::uint32_t> wrong_proof = {0x6863777a, 2, 1, 0, 0, 0, 0, 0, 0x99};
  wrong_proof.resize(28);
  std::uint64_t expected = 0;
  for (const auto& hello : {wrong_magic, wrong_version, wrong_proof}) {
    const Socket stranger(watch->endpoint());
    stranger.say(hello);
    ++expected;
    EXPECT_TRUE(
        check_until({watch.get()}, [&] { return watch->counters().strangers == expected; }));
  }
  { const Socket leaves(watch->endpoint()); }
  EXPECT_TRUE(check_until({watch.get()}, [&] { return watch->counters().strangers == 4; }));
  EXPECT_EQ(watch->peers(), 0U);
}

TEST(PeerWatch, ASlowStrangerIsDroppedInTime) {
  auto watch = open_watch(kNicA);
  const Socket slow(watch->endpoint());
  slow.say({0x6863777a});
  const TimePoint came = now();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(watch->poll(came).empty());
  EXPECT_EQ(watch->counters().strangers, 0U);
  EXPECT_TRUE(watch->poll(came + std::chrono::seconds(6)).empty());
  EXPECT_EQ(watch->counters().strangers, 1U);
}

TEST(PeerWatch, ManySilentStrangersDoNotBlockPeers) {
  auto watch = open_watch(kNicA);
  auto peer = open_watch(kNicB);
  std::vector<Socket> strangers;
  for (int i = 0; i < 100; ++i) strangers.emplace_back(watch->endpoint());
  ASSERT_TRUE(check_until({watch.get()}, [&] { return watch->counters().strangers >= 68; }));
  EXPECT_TRUE(meet(*peer, kNicA, *watch));
}

TEST(PeerWatch, TheTableIsBounded) {
  auto watch = open_watch(kNicA, 2);
  watch->expect(kProof);
  std::vector<std::unique_ptr<PeerWatch>> callers;
  for (std::uint32_t i = 0; i < 3; ++i) {
    callers.push_back(open_watch(Ipv4Address{kNicB.value + i}));
    callers.back()->dial(kNicA, watch->endpoint(), kProof);
    PeerWatch& caller = *callers.back();
    std::vector<Peer> gone;
    const TimePoint ends = now() + std::chrono::seconds(10);
    while (caller.peers() + caller.counters().unreachable == 0 && now() < ends) {
      EXPECT_TRUE(watch->poll(now()).empty());
      gone = caller.poll(now());
    }
    EXPECT_EQ(caller.peers(), i < 2 ? 1U : 0U);
    EXPECT_EQ(gone.size(), i < 2 ? 0U : 1U);  // Its NIC decides whether the process is alive.
  }
  EXPECT_EQ(watch->peers(), 2U);
  EXPECT_EQ(watch->counters().full, 1U);
  watch->dial(Ipv4Address{kNicB.value + 2}, callers[2]->endpoint(), kProof);
  EXPECT_EQ(watch->counters().full, 2U);
}

// --- Events that are no end of a process -------------------------------------------------------

TEST(PeerWatch, APortWithoutAListenerIsReportedOnce) {
  auto watch = open_watch(kNicA);
  const Endpoint nobody = open_watch(kNicB)->endpoint();  // Already closed.
  for (std::uint64_t i = 1; i <= 2; ++i) {
    watch->dial(kNicB, nobody, kProof);
    ASSERT_TRUE(check_until({watch.get()}, [&] { return watch->counters().unreachable == i; }));
  }
  EXPECT_EQ(watch->take_trouble(), to_string(nobody) + ": Connection refused");
  EXPECT_EQ(watch->take_trouble(), "");
}

TEST(PeerWatch, AnotherProcessAtThePortIsNoPeer) {
  auto a = open_watch(kNicA);
  auto b = open_watch(kNicB);
  b->expect(kOtherProof);
  a->dial(kNicB, b->endpoint(), kProof);
  std::vector<Peer> gone;
  const TimePoint ends = now() + std::chrono::seconds(10);
  while (gone.empty() && now() < ends) {
    EXPECT_TRUE(b->poll(now()).empty());
    gone = a->poll(now());
  }
  EXPECT_EQ(a->counters().unreachable, 1U);
  EXPECT_EQ(b->counters().strangers, 1U);
  EXPECT_EQ(a->peers() + b->peers(), 0U);
  // Its NIC decides whether the process is alive.
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].nic, kNicB);
  EXPECT_EQ(gone[0].pid, 0U);
}

// The dialled process dies before it has read the hello.
TEST(PeerWatch, APeerThatEndsBeforeItsHelloIsReported) {
  for (const bool is_dialled_first : {true, false}) {
    auto a = open_watch(kNicA);
    auto b = open_watch(kNicB);
    a->dial(kNicB, b->endpoint(), kProof);
    if (is_dialled_first) {
      EXPECT_TRUE(a->poll(now()).empty());  // Sends the hello.
    }
    b.reset();
    const auto gone = gone_from(*a);
    ASSERT_EQ(gone.size(), 1U);
    EXPECT_EQ(gone[0].nic, kNicB);
    EXPECT_EQ(gone[0].pid, 0U);
    EXPECT_EQ(a->counters().unreachable, 1U);
  }
}

TEST(PeerWatch, ASilentPeerIsGivenUp) {
  auto watch = open_watch(kNicA);
  const auto silent = open_watch(kNicB);  // Accepts, but never calls poll().
  watch->dial(kNicB, silent->endpoint(), kProof);
  const TimePoint called = now();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(watch->poll(called).empty());
  EXPECT_TRUE(watch->poll(called + std::chrono::seconds(6)).empty());
  EXPECT_EQ(watch->counters().unreachable, 1U);
}

}  // namespace
}  // namespace ztcp::watch
