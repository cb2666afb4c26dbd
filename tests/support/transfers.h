// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Transfers that every transport's connections must pass.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <regex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"

namespace ztcp::test {

// Tests both requests in turn: there may be no other thread than this.
inline void expect_carries(Pair& pair, const Bytes& sent = pattern(100, 1)) {
  Bytes received(sent.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  Request* const sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  bool is_sent = false;
  for (Result<bool> done = false; !*done; done = (*receiving)->test({})) {
    const Result<bool> told = is_sent ? true : sending->test({});
    ASSERT_TRUE(told);
    is_sent = *told;
    std::this_thread::yield();
  }
  if (!is_sent) {
    ASSERT_TRUE(finish(*sending));
  }
  EXPECT_EQ(received, sent);
}

// One proxy thread per host, eight messages in flight, sizes around every limit there is, at every
// alignment; no byte beside the buffers may change.
inline void expect_carries_every_size(Pair& pair) {
  static constexpr std::array<std::size_t, 14> kSizes = {
      0, 1, 8, 127, 128, 4096, 65536, 65537, 65573, 131072, 131073, 1U << 20U, 300001, 3U << 20U};
  constexpr std::size_t kMessages = 140;
  constexpr std::size_t kDepth = 8;
  constexpr std::size_t kMargin = 128;
  const auto size_of = [](std::size_t message) { return kSizes[message % kSizes.size()]; };
  const auto shift = [](std::size_t message) { return message * 13 % 67; };
  const auto place = [](std::size_t message) { return message * 7 % 61; };

  std::thread sending([&] {
    std::array<Bytes, kDepth> buffers;
    std::array<Request*, kDepth> in_flight{};
    for (std::size_t i = 0; i < kMessages + kDepth; ++i) {
      const std::size_t at = i % kDepth;
      if (in_flight[at] != nullptr) {
        ASSERT_TRUE(finish(*in_flight[at]));
      }
      in_flight[at] = nullptr;
      if (i >= kMessages) continue;
      buffers[at] = pattern(size_of(i) + shift(i), i);
      in_flight[at] =
          post_until_taken(*pair.sender, std::span(buffers[at]).subspan(shift(i)), nullptr);
      ASSERT_NE(in_flight[at], nullptr);
    }
  });
  const auto check = [&](std::size_t message, std::size_t size, const Bytes& buffer) {
    ASSERT_EQ(size, size_of(message));
    const Bytes sent = pattern(size + shift(message), message);
    const std::span from = std::span(buffer).subspan(place(message));
    ASSERT_TRUE(are_equal(std::span(sent).subspan(shift(message)), from.first(size)))
        << "message " << message;
    ASSERT_TRUE(
        std::ranges::all_of(from.subspan(size), [](std::byte b) { return b == std::byte{0xee}; }))
        << "message " << message;
  };
  std::array<Bytes, kDepth> buffers;
  std::array<Request*, kDepth> in_flight{};
  for (std::size_t i = 0; i < kMessages + kDepth; ++i) {
    const std::size_t at = i % kDepth;
    if (in_flight[at] != nullptr) {
      const auto size = finish(*in_flight[at]);
      EXPECT_TRUE(size);
      if (!size) break;
      check(i - kDepth, *size, buffers[at]);
    }
    in_flight[at] = nullptr;
    if (i >= kMessages) continue;
    buffers[at].assign(place(i) + size_of(i) + kMargin, std::byte{0xee});
    const auto request =
        post_recv(*pair.receiver, std::span(buffers[at]).subspan(place(i)), nullptr,
                  /*is_polled=*/i % 3 == 0);
    EXPECT_TRUE(request && *request != nullptr);
    in_flight[at] = *request;
  }
  sending.join();
}

// As NCCL's abort: closes with requests in flight and frees the buffers at once.
inline void expect_closing_leaves_the_buffer(Pair& pair) {
  Bytes buffer(1U << 20U, std::byte{0x11});
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  pair.receiver.reset();
  const Bytes before = buffer;
  const Bytes message(1U << 20U, std::byte{0x22});
  Request* const sending = post_until_taken(*pair.sender, message, nullptr);
  // The sender sees the reset, at the latest when its message finds no connection.
  if (sending != nullptr) {
    EXPECT_FALSE(finish(*sending));
  }
  EXPECT_EQ(buffer, before);
}

inline void expect_deregistering_ends_it(Pair& pair) {
  Bytes large(8U << 20U);  // Too large to be kept without a posted buffer, and none is posted.
  const auto key = pair.sender->register_memory({large.data(), large.size()});
  ASSERT_TRUE(key);
  Request* const request = post_until_taken(*pair.sender, large, *key);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(pair.sender->deregister_memory(*key));
  const auto result = finish(*request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kAborted);
}

// The failure is logged as every transport logs it (core/failure_sentence.h).
inline void expect_failure_sentence(const LogCapture& log) {
  static const std::regex sentence(
      ": (sending to|receiving from) \\S+:[0-9]+( over .+)? failed: .+; [0-9]+ messages "
      "\\([0-9]+ bytes\\) done, [0-9]+ in flight(; .+)?$");
  const std::vector<std::string> lines = log.warnings();
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return std::regex_search(line, sentence);
  })) << log.warned();
}

// One end closes with messages in flight: the other gets an error that says so at once, long before
// its timeout for redialling the flows.
inline void expect_an_abort_is_heard(Pair& pair, bool is_sender) {
  const LogCapture log;
  Bytes large(8U << 20U);
  Bytes buffer(100);
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  // Another tag, for which no buffer is posted.
  Request* const sending = post_until_taken(*pair.sender, large, nullptr, /*tag=*/5);
  ASSERT_NE(sending, nullptr);
  const auto aborted_at = std::chrono::steady_clock::now();
  if (is_sender)
    pair.sender.reset();
  else
    pair.receiver.reset();
  const auto result = finish(is_sender ? **receiving : *sending);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kPeerClosed);
  EXPECT_LT(std::chrono::steady_clock::now() - aborted_at, std::chrono::seconds(10));
  EXPECT_NE(log.warned().find("the peer aborted the connection"), std::string::npos)
      << log.warned();
  expect_failure_sentence(log);
}

}  // namespace ztcp::test
