// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Real workers behind real pollers: large messages arrive whole, bytes become visible in the order
// that a polling GPU needs, and nothing is written to memory after its connection is closed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"

#if defined(__SANITIZE_THREAD__)
#define ZTCP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ZTCP_TSAN 1
#endif
#endif

namespace ztcp::ustack {
namespace {

using test::Bytes;
using test::connect;
using test::finish;
using test::pattern;
using test::post_recv;
using test::post_until_taken;

HostOptions with_workers(config::PollerMode mode) {
  HostOptions options;
  options.mode = mode;
  options.workers = 3;  // Fewer if the machine has fewer CPUs.
  return options;
}

class Workers : public testing::TestWithParam<config::PollerMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, Workers,
                         testing::Values(config::PollerMode::kDedicated,
                                         config::PollerMode::kShared),
                         mode_name);

TEST_P(Workers, LargeMessagesArriveWhole) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one CPU: no workers";
  TwoHosts hosts(with_workers(GetParam()));
  auto pair = connect(hosts[0], hosts[1]);
  constexpr std::size_t kBytes = 600'000;  // Not a multiple of a stretch (msg/copy_jobs.h).
  const Bytes sent = pattern(8 * kBytes, 3);
  for (int round = 0; round < 3; ++round) {
    Bytes received(8 * kBytes);
    std::array<Request*, 8> sends{};
    std::array<Request*, 8> receives{};
    for (std::size_t i = 0; i < 8; ++i) {
      receives[i] = *post_recv(*pair.receiver, std::span(received).subspan(i * kBytes, kBytes));
      sends[i] =
          post_until_taken(*pair.sender, std::span(sent).subspan(i * kBytes, kBytes), nullptr);
    }
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(finish(*sends[i]));
      const auto size = finish(*receives[i]);
      ASSERT_TRUE(size);
      EXPECT_EQ(*size, kBytes);
    }
    ASSERT_EQ(received, sent);
  }
}

// The receiving rank is aborted during a message and reuses its buffer.
TEST_P(Workers, NothingIsWrittenAfterAConnectionIsClosed) {
  constexpr std::size_t kBytes = 4U << 20;
  const Bytes sent = pattern(kBytes, 4);
  for (int round = 0; round < 5; ++round) {
    TwoHosts hosts(with_workers(GetParam()));
    auto pair = connect(hosts[0], hosts[1]);
    Bytes received(kBytes);
    ASSERT_TRUE(post_recv(*pair.receiver, received));
    Request* const send = post_until_taken(*pair.sender, sent, nullptr);
    ASSERT_NE(send, nullptr);
    for (int i = 0; i < 20 * round; ++i) static_cast<void>(send->test({}));
    pair.receiver.reset();
    std::fill(received.begin(), received.end(), std::byte{0xaa});
    for (int i = 0; i < 2000; ++i) static_cast<void>(send->test({}));
    EXPECT_TRUE(std::ranges::all_of(received, [](std::byte b) { return b == std::byte{0xaa}; }));
  }
}

// Moves all threads of the process, as a change of its cpuset does.
void move_all_threads(const cpu_set_t& cpus) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    sched_setaffinity(std::stoi(entry.path().filename()), sizeof cpus, &cpus);
}

TEST_P(Workers, MessagesArriveWhileTheProcessLosesCpus) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU: none can be removed";
  const test::LogCapture log;
  TwoHosts hosts(with_workers(GetParam()));
  auto pair = connect(hosts[0], hosts[1]);
  constexpr std::size_t kBytes = 3U << 20;
  const Bytes sent = pattern(kBytes, 6);
  for (std::size_t cpu = 0, rounds = 0; rounds < 4; cpu = (cpu + 1) % CPU_SETSIZE) {
    if (!CPU_ISSET(cpu, &all)) continue;
    ++rounds;
    Bytes received(kBytes);
    const auto receive = post_recv(*pair.receiver, received);
    ASSERT_TRUE(receive && *receive != nullptr);
    Request* const send = post_until_taken(*pair.sender, sent, nullptr);
    ASSERT_NE(send, nullptr);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    move_all_threads(one);
    ASSERT_TRUE(finish(**receive));
    ASSERT_TRUE(finish(*send));
    EXPECT_EQ(received, sent);
  }
  move_all_threads(all);
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

TEST(WorkersLog, InitLineHasTheNumberOfWorkersAndTheReason) {
  const test::LogCapture log;
  {
    HostOptions options;
    options.workers = 0;
    TwoHosts hosts(options, with_workers(config::PollerMode::kDedicated));
    auto pair = connect(hosts[0], hosts[1]);
  }
  const auto said = [&](const char* text) {
    return std::ranges::any_of(log.infos(), [text](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(said("no workers (as poller.workers says)"));
  EXPECT_TRUE(said("3 workers (as poller.workers says)") || said("(poller.workers is 3, but"));
}

// The reader acts as a GPU with NCCL's LL128: in a posted buffer it polls the flag at the end of a
// 128-byte line, and then reads the line as complete. Frames may end inside a line, the
// stretches that workers copy do not.
TEST_P(Workers, FlagOfALineIsNeverVisibleBeforeItsData) {
#ifdef ZTCP_TSAN
  GTEST_SKIP() << "the reader races on purpose, as a GPU does";
#else
  constexpr std::size_t kLineBytes = 128;
  constexpr std::size_t kBytes = 256U << 10;
  TwoHosts hosts(with_workers(GetParam()));
  auto pair = connect(hosts[0], hosts[1]);
  alignas(kLineBytes) static std::byte buffer[kBytes];
  std::memset(buffer, 0, kBytes);
  Bytes sent(kBytes);
  std::minstd_rand rng(5);
  std::uint64_t lines = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  for (std::uint8_t generation = 1; std::chrono::steady_clock::now() < end; ++generation) {
    std::ranges::fill(sent, std::byte{generation});
    const auto receive = post_recv(*pair.receiver, buffer);
    ASSERT_TRUE(receive && *receive != nullptr);
    std::thread sender([&] {
      Request* const send = post_until_taken(*pair.sender, sent, nullptr);
      EXPECT_TRUE(send != nullptr && finish(*send));
    });
    std::thread progress([&] { EXPECT_TRUE(finish(**receive)); });
    for (int i = 0; i < 8; ++i) {
      const volatile std::byte* const line = buffer + rng() % (kBytes / kLineBytes) * kLineBytes;
      for (int spins = 1; line[kLineBytes - 1] != std::byte{generation}; ++spins)
        if (spins % 4096 == 0) std::this_thread::yield();
      for (std::size_t at = 0; at < kLineBytes; at += 8)
        ASSERT_TRUE(line[at] == std::byte{generation}) << "byte " << at << " of a line";
      ++lines;
    }
    sender.join();
    progress.join();
  }
  EXPECT_GT(lines, 8U);
#endif
}

}  // namespace
}  // namespace ztcp::ustack
