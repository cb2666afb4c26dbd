// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The death of a peer's process: its NIC falls silent and the kernel closes its watch connections.
// And watch connections that are cut while both processes live. NICs are links in memory; the watch
// uses the kernel's loopback.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sys/socket.h>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/support/transfers.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

using namespace test;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kProbes = comms::Suspects::kProbes;
constexpr milliseconds kProbeInterval(100);  // The value in ustack_transport.cc.

// Sends nothing while `muted` is set.
class MutedLink final : public link::Link {
 public:
  MutedLink(std::unique_ptr<link::Link> inner, const std::atomic<bool>& muted)
      : inner_(std::move(inner)), muted_(muted) {}

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override { return inner_->receive(frames); }
  void release(std::span<RxFrame> frames) override { inner_->release(frames); }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    return muted_ ? frames.size() : inner_->transmit(frames);
  }
  LinkState state() override { return inner_->state(); }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<link::Link> inner_;
  const std::atomic<bool>& muted_;
};

class DeathWatchTest : public testing::TestWithParam<config::PollerMode> {
 protected:
  DeathWatchTest() {
    const HostOptions options{.mode = GetParam(), .watch = true, .queues = 2};
    std::array<std::shared_ptr<MemoryNics>, 2> sources = {std::make_shared<MemoryNics>(),
                                                          std::make_shared<MemoryNics>()};
    for (std::uint32_t queue = 0; queue < options.queues; ++queue) {
      auto [left, right] = link::make_memory_links({.mtu_bytes = options.mtu_bytes});
      sources[0]->add("mem0", std::move(left));
      sources[1]->add("mem1", std::make_unique<MutedLink>(std::move(right), dead_));
    }
    survivor =
        *create(one_nic_fabric(0, options), test::cpus_of_this_process(), nullptr, sources[0]);
    victim = *create(one_nic_fabric(1, options), test::cpus_of_this_process(), nullptr, sources[1]);
  }
  // Ends the victim with its ends of `pairs`.
  void kill_victim(std::initializer_list<Pair*> pairs) {
    dead_ = true;
    for (Pair* pair : pairs) (victim_sends_ ? pair->sender.reset() : pair->receiver.reset());
    victim.reset();
  }
  static std::optional<Error> failure_of(Request& request, milliseconds within) {
    const auto ends = Clock::now() + within;
    while (Clock::now() < ends) {
      if (const auto done = request.test({}); !done) return done.error();
      std::this_thread::yield();
    }
    return std::nullopt;
  }
  void expect_named(const std::optional<Error>& error) {
    ASSERT_TRUE(error) << "the request did not fail in time";
    EXPECT_EQ(error->code, Errc::kPeerClosed);
    const std::string named =
        "the peer's process has ended: process " + std::to_string(getpid()) + " on host ";
    EXPECT_NE(log.warned().find(named), std::string::npos) << log.warned();
  }
  // Descriptors of this process's kernel TCP sockets.
  static std::vector<int> tcp_sockets() {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::stoi(entry.path().filename());
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
          address.ss_family == AF_INET)
        found.push_back(fd);
    }
    return found;
  }
  // Cuts all connected sockets and returns their number. This process has both ends of each
  // connection, so the list is made first: the second end may close itself once the first is cut.
  static std::size_t cut_watches() {
    std::vector<int> connected;
    for (const int fd : tcp_sockets()) {
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
        connected.push_back(fd);
    }
    for (const int fd : connected) shutdown(fd, SHUT_RDWR);
    return connected.size();
  }

  std::atomic<bool> dead_{false};
  bool victim_sends_ = false;
  std::unique_ptr<Transport> survivor;
  std::unique_ptr<Transport> victim;
  test::LogCapture log;
};
INSTANTIATE_TEST_SUITE_P(Modes, DeathWatchTest,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         mode_name);

// Waits until the watch connections have exchanged hellos, which no call reports.
void settle() { std::this_thread::sleep_for(milliseconds(1000)); }

TEST_P(DeathWatchTest, SendFailsWhenTheReceiversProcessDies) {
  Pair pair = connect(*survivor, *victim);
  settle();
  const Bytes large(4U << 20U);
  Request* sending = post_until_taken(*pair.sender, large, nullptr);
  ASSERT_NE(sending, nullptr);
  kill_victim({&pair});
  expect_named(failure_of(*sending, milliseconds(3000)));
}

TEST_P(DeathWatchTest, SendsOnEveryQueueFailWhenThePeerDies) {
  Pair first = connect(*survivor, *victim);
  Pair second = connect(*survivor, *victim);
  ASSERT_NE(first.sender->describe_peer(), second.sender->describe_peer())
      << "both are on one queue";
  settle();
  const Bytes large(4U << 20U);
  Request* const sending = post_until_taken(*first.sender, large, nullptr);
  Request* const other = post_until_taken(*second.sender, large, nullptr);
  ASSERT_TRUE(sending != nullptr && other != nullptr);
  kill_victim({&first, &second});
  expect_named(failure_of(*sending, milliseconds(3000)));
  expect_named(failure_of(*other, milliseconds(3000)));
}

TEST_P(DeathWatchTest, ReceiveFailsWhenTheSendersProcessDies) {
  victim_sends_ = true;
  Pair pair = connect(*victim, *survivor);
  settle();
  Bytes buffer(100);
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  kill_victim({&pair});
  expect_named(failure_of(**receiving, milliseconds(3000)));
}

// The sender sent, closed and ended before the receiver posted its buffer.
TEST_P(DeathWatchTest, MessageOfAPeerThatClosedCleanlyCanStillBeReceived) {
  Pair pair = connect(*victim, *survivor);
  settle();
  const Bytes sent = pattern(1000, 1);
  Request* sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(*sending));
  pair.sender.reset();
  victim->drain();
  dead_ = true;
  victim.reset();
  std::this_thread::sleep_for((kProbes + 2) * kProbeInterval);
  Bytes received(sent.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr) << log.warned();
  EXPECT_TRUE(finish(**receiving)) << log.warned();
  EXPECT_EQ(received, sent);
}

// A router, a firewall or an administrator may cut a connection between two live processes.
TEST_P(DeathWatchTest, CutWatchConnectionFailsNoRequest) {
  Pair pair = connect(*survivor, *victim);
  settle();
  ASSERT_GE(cut_watches(), 2U);
  const Bytes sent = pattern(50'000, 1);
  const auto ends = Clock::now() + 2 * kProbes * kProbeInterval;
  while (Clock::now() < ends) {
    expect_carries(pair, sent);
    std::this_thread::sleep_for(
        milliseconds(150));  // Idle meanwhile: the peer answers only probes.
  }
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

TEST_P(DeathWatchTest, DisabledWatchOpensNoSocket) {
  const std::size_t before = tcp_sockets().size();
  for (const bool watch : {false, true}) {
    auto [left, right] = link::make_memory_links({});
    auto source = std::make_shared<MemoryNics>();
    source->add("mem0", std::move(left));
    const auto transport = *create(one_nic_fabric(0, {.mode = GetParam(), .watch = watch}),
                                   test::cpus_of_this_process(), nullptr, source);
    EXPECT_EQ(tcp_sockets().size(), before) << "nothing is opened before the first listen";
    ASSERT_TRUE(transport->listen(0, {}));
    EXPECT_EQ(tcp_sockets().size(), before + (watch ? 1 : 0));
  }
  EXPECT_EQ(tcp_sockets().size(), before);
}

}  // namespace
}  // namespace ztcp::ustack
