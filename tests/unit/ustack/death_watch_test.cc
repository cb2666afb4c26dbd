// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A process that dies without a word, over links in memory beside the kernel's loopback: its NIC
// falls silent and its sockets end. And sockets that end although their process lives.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sys/socket.h>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/unit/ustack/memory_nics.h"
#include "tests/unit/ustack/polling.h"

namespace ztcp::ustack {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Sends nothing any more once it is told so.
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
  link::LinkState state() override { return inner_->state(); }
  void wait(int wake_fd, Duration timeout) override { inner_->wait(wake_fd, timeout); }
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
    const HostOptions options{.mode = GetParam(), .watch = true};
    auto [left, right] = link::make_memory_links({.mtu_bytes = options.mtu_bytes});
    std::array<std::shared_ptr<MemoryNics>, 2> sources = {std::make_shared<MemoryNics>(),
                                                          std::make_shared<MemoryNics>()};
    sources[0]->add("mem0", std::move(left));
    sources[1]->add("mem1", std::make_unique<MutedLink>(std::move(right), dead_));
    survivor = *create(one_nic_fabric(0, options), nullptr, sources[0]);
    victim = *create(one_nic_fabric(1, options), nullptr, sources[1]);
  }
  // The victim's half of `pairs` goes with it.
  void kill_victim(std::initializer_list<Pair*> pairs) {
    dead_ = true;
    for (Pair* pair : pairs) (victim_sends_ ? pair->sender.reset() : pair->receiver.reset());
    victim.reset();
  }
  static std::optional<Error> failure_of(Request& request, milliseconds within) {
    const auto ends = Clock::now() + within;
    while (Clock::now() < ends) {
      if (const auto done = request.test(nullptr); !done) return done.error();
      std::this_thread::yield();
    }
    return std::nullopt;
  }
  void expect_named(const std::optional<Error>& error) {
    ASSERT_TRUE(error) << "nothing was heard";
    EXPECT_EQ(error->code, Errc::kPeerClosed);
    const std::string named =
        "the peer's process has ended: process " + std::to_string(getpid()) + " on host ";
    EXPECT_NE(log.warned().find(named), std::string::npos) << log.warned();
  }
  // Connected kernel sockets of this process lose their connection.
  static int cut_watches() {
    int cut = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::stoi(entry.path().filename());
      cut += shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
    }
    return cut;
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
                         [](const auto& row) {
                           return row.param == config::PollerMode::kShared ? "shared" : "dedicated";
                         });

// Nothing outside tells when the two have introduced themselves, for nothing depends on it.
void settle() { std::this_thread::sleep_for(milliseconds(200)); }

TEST_P(DeathWatchTest, ASenderHearsOfItsReceiversDeath) {
  Pair pair = connect(*survivor, *victim);
  settle();
  const Bytes large(4U << 20U);
  Request* sending = post_until_taken(*pair.sender, large, nullptr);
  ASSERT_NE(sending, nullptr);
  kill_victim({&pair});
  expect_named(failure_of(*sending, milliseconds(3000)));
}

TEST_P(DeathWatchTest, AReceiverHearsOfItsSendersDeath) {
  victim_sends_ = true;
  Pair pair = connect(*victim, *survivor);
  settle();
  Bytes buffer(100);
  const auto receiving = pair.receiver->post_recv(buffer, nullptr);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  kill_victim({&pair});
  expect_named(failure_of(**receiving, milliseconds(3000)));
}

// A router, a firewall or an administrator may end a connection whose processes live.
TEST_P(DeathWatchTest, AWatchThatIsCutHurtsNobody) {
  Pair pair = connect(*survivor, *victim);
  settle();
  ASSERT_GE(cut_watches(), 2);
  const Bytes sent = pattern(50'000, 1);
  const auto ends = Clock::now() + 2 * Suspects::kProbes * Suspects::kProbeInterval;
  while (Clock::now() < ends) {
    Bytes received(sent.size());
    const auto receiving = pair.receiver->post_recv(received, nullptr);
    ASSERT_TRUE(receiving && *receiving != nullptr);
    Request* sending = post_until_taken(*pair.sender, sent, nullptr);
    ASSERT_NE(sending, nullptr);
    ASSERT_TRUE(finish(**receiving));
    ASSERT_TRUE(finish(*sending));
    std::this_thread::sleep_for(milliseconds(150));  // Idle, too: then only probes are answered.
  }
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

TEST_P(DeathWatchTest, SwitchedOffOpensNoSocket) {
  auto [left, right] = link::make_memory_links({});
  auto source = std::make_shared<MemoryNics>();
  source->add("mem0", std::move(left));
  const auto transport = *create(one_nic_fabric(0, {.mode = GetParam()}), nullptr, source);
  ASSERT_TRUE(transport->listen(0));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    EXPECT_FALSE(target.starts_with("socket:")) << entry.path();
  }
}

}  // namespace
}  // namespace ztcp::ustack
