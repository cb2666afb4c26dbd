// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/ordered_copy.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#if defined(__SANITIZE_THREAD__)
#define ZTCP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ZTCP_TSAN 1
#endif
#endif

namespace ztcp {
namespace {

TEST(OrderedCopy, EverySizeAndAlignmentIsExact) {
  std::mt19937 rng(1);
  std::vector<std::byte> source(1024);
  for (auto& b : source) b = std::byte(rng());
  alignas(128) static std::byte buffer[1024];
  for (std::size_t size = 0; size <= 600; ++size) {
    for (std::size_t to = 0; to < 128; to += size < 80 ? 1 : 5) {
      const std::size_t from = (to * 7 + size) % 65;
      std::memset(buffer, 0x5a, sizeof buffer);
      ordered_copy(buffer + 64 + to, source.data() + from, size);
      ASSERT_EQ(std::memcmp(buffer + 64 + to, source.data() + from, size), 0) << size << ' ' << to;
      ASSERT_TRUE(
          std::all_of(buffer, buffer + 64 + to, [](auto b) { return b == std::byte{0x5a}; }));
      ASSERT_TRUE(std::all_of(buffer + 64 + to + size, std::end(buffer),
                              [](auto b) { return b == std::byte{0x5a}; }));
    }
  }
}

TEST(OrderedCopy, LargeCopiesAreExact) {
  std::mt19937 rng(2);
  std::vector<std::byte> source(70000);
  for (auto& b : source) b = std::byte(rng());
  for (const std::size_t size : {1448U, 4096U, 8948U, 65535U}) {
    for (std::size_t offset = 0; offset < 70; offset += 3) {
      std::vector<std::byte> to(size + 200, std::byte{0x5a});
      ordered_copy(to.data() + offset, source.data() + 66, size);
      ASSERT_EQ(std::memcmp(to.data() + offset, source.data() + 66, size), 0);
      ASSERT_EQ(to[offset + size], std::byte{0x5a});
    }
  }
}

// A writer fills a buffer over and over, each time with the next generation's byte, cut into pieces
// as TCP segments would cut it. The reader plays the GPU: it waits for the last byte of a line to
// show the generation, then every byte of the line must show it. The writer goes on when the reader
// has seen the lines it chose, like NCCL's flow control.
class PolledBuffer {
 public:
  explicit PolledBuffer(std::size_t line_bytes) : line_bytes_(line_bytes) {}

  struct Outcome {
    std::uint64_t polls = 0;
    std::uint64_t lines = 0;  // Seen to become complete.
    std::uint64_t torn = 0;   // Lines with the flag set before the data.
  };

  // Until so many lines have been watched, or time is up.
  template <class Copy>
  Outcome run(Copy copy, std::uint64_t wanted_lines) {
    std::thread writer([&] { write_generations(copy); });
    std::minstd_rand rng(5);
    Outcome outcome;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
    for (std::uint64_t generation = 1; outcome.lines < wanted_lines; ++generation) {
      if (std::chrono::steady_clock::now() > end) break;
      go_.store(generation, std::memory_order_release);
      for (int i = 0; i < 4; ++i)
        watch_line(rng() % (kBytes / line_bytes_), static_cast<std::uint8_t>(generation), outcome);
      wait_while([&] { return done_.load(std::memory_order_acquire) != generation; });
    }
    go_.store(kStop, std::memory_order_release);
    writer.join();
    return outcome;
  }

 private:
  static constexpr std::size_t kBytes = 16384;
  static constexpr std::size_t kMaxPieceBytes = 8948;
  static constexpr std::uint64_t kStop = ~0ULL;

  template <class Condition>
  static std::uint64_t wait_while(Condition condition) {
    std::uint64_t spins = 1;
    for (; condition(); ++spins)
      if (spins % 4096 == 0) std::this_thread::yield();
    return spins;
  }

  void watch_line(std::size_t line, std::uint8_t generation, Outcome& outcome) {
    const volatile std::uint8_t* p = buffer_ + line * line_bytes_;
    outcome.polls += wait_while([&] { return p[line_bytes_ - 1] != generation; });
    const std::size_t stride = std::max<std::size_t>(1, line_bytes_ / 16);
    bool whole = true;
    for (std::size_t i = 0; i + 1 < line_bytes_; i += stride) whole &= p[i] == generation;
    ++outcome.lines;
    outcome.torn += whole ? 0U : 1U;
  }

  template <class Copy>
  void write_generations(Copy copy) {
    std::minstd_rand rng(7);
    std::vector<std::byte> source(kMaxPieceBytes + 128);
    for (std::uint64_t seen = 0;;) {
      std::uint64_t now = 0;
      wait_while([&] { return (now = go_.load(std::memory_order_acquire)) == seen; });
      if (now == kStop) return;
      seen = now;
      std::memset(source.data(), static_cast<int>(seen & 0xff), source.size());
      auto* to = reinterpret_cast<std::byte*>(buffer_);
      for (std::size_t at = 0; at < kBytes;) {
        // Segments end anywhere, so every size modulo 128 and every alignment comes up.
        const std::size_t size = std::min<std::size_t>(1 + rng() % kMaxPieceBytes, kBytes - at);
        copy(to + at, source.data() + rng() % 128, size);
        at += size;
      }
      done_.store(seen, std::memory_order_release);
    }
  }

  std::size_t line_bytes_;
  alignas(128) std::uint8_t buffer_[kBytes] = {};
  alignas(128) std::atomic<std::uint64_t> go_{0};
  alignas(128) std::atomic<std::uint64_t> done_{0};
};

class PolledLines : public testing::TestWithParam<std::size_t> {};

TEST_P(PolledLines, NoFlagShowsBeforeItsData) {
#ifdef ZTCP_TSAN
  GTEST_SKIP() << "races on purpose: the reader is a GPU";
#else
  PolledBuffer buffer(GetParam());
  const auto outcome = buffer.run(ordered_copy, /*wanted_lines=*/1'000'000);
  RecordProperty("polls", std::to_string(outcome.polls));
  RecordProperty("lines", std::to_string(outcome.lines));
  EXPECT_GT(outcome.lines, 100U);
  EXPECT_EQ(outcome.torn, 0U) << "of " << outcome.lines << " lines";
#endif
}
#if defined(__aarch64__)
// Each half of LL's line of 16 bytes has its own flag, and Arm only orders the halves by it.
constexpr std::size_t kLines[] = {8, 128};
#else
constexpr std::size_t kLines[] = {8, 16, 128};
#endif
INSTANTIATE_TEST_SUITE_P(Protocols, PolledLines, testing::ValuesIn(kLines),
                         [](const auto& test) { return "line" + std::to_string(test.param); });

// The test above can fail: it catches a copy that writes its last bytes first, as glibc does.
TEST(PolledLinesDetector, CatchesATailWrittenFirst) {
#ifdef ZTCP_TSAN
  GTEST_SKIP() << "races on purpose: the reader is a GPU";
#else
  PolledBuffer buffer(128);
  const auto tail_first = [](std::byte* to, const std::byte* from, std::size_t size) {
    const std::size_t head = size - std::min<std::size_t>(size, 64);
    ordered_copy(to + head, from + head, size - head);
    std::this_thread::yield();  // On a busy machine too, the reader gets to see the gap.
    ordered_copy(to, from, head);
  };
  const auto outcome = buffer.run(tail_first, /*wanted_lines=*/1'000'000);
  EXPECT_GT(outcome.torn, 0U) << "of " << outcome.lines << " lines";
#endif
}

}  // namespace
}  // namespace ztcp
