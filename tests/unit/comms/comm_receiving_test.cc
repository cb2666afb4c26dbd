// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/comms/comm.h"

namespace ztcp::comms {
namespace {

using namespace test;
using ustack::TwoHosts;

TEST(RecvComm, AllowsThirtyTwoOutstandingRequestsAndNoMore) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  std::array<std::array<std::byte, 8>, 33> buffers{};
  for (int i = 0; i < 32; ++i) {
    const auto request = post_recv(*pair.receiver, buffers[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(request);
    EXPECT_NE(*request, nullptr) << i;
  }
  const auto request = post_recv(*pair.receiver, buffers[32]);
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, nullptr);
}

TEST(RecvComm, AMessageLargerThanItsBufferFailsTheConnection) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes small(100);
  const auto receiving = post_recv(*pair.receiver, small);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  const Bytes large(101);
  ASSERT_NE(post_until_taken(*pair.sender, large, nullptr), nullptr);
  const auto result = finish(**receiving);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kTruncated);
  // Every later call fails with the same error.
  const auto again = post_recv(*pair.receiver, small);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kTruncated);
}

// The buffers and tags of one grouped receive.
struct Group {
  struct Buffer {
    int tag = 0;
    Bytes bytes;
  };
  std::vector<Buffer> buffers;
  Request* request = nullptr;

  void add(int tag, std::size_t size) { buffers.push_back({tag, Bytes(size, std::byte{0xee})}); }
  std::vector<RecvBuffer> as_posted() {
    std::vector<RecvBuffer> out;
    for (Buffer& buffer : buffers) out.push_back({buffer.bytes, buffer.tag, nullptr});
    return out;
  }
  bool post(RecvComm& comm) {
    const auto posted = comm.post_recv(as_posted());
    EXPECT_TRUE(posted);
    request = posted ? *posted : nullptr;
    return request != nullptr;
  }
  // Polls until the request is done or has failed; its sizes.
  Result<std::vector<std::size_t>> finish() const {
    std::vector<std::size_t> sizes(request->buffers());
    while (true) {
      const auto done = request->test(sizes);
      if (!done) return tl::unexpected(done.error());
      if (*done) return sizes;
      std::this_thread::yield();
    }
  }
};

class Groups : public testing::TestWithParam<config::PollerMode> {
 protected:
  void send(int tag, const Bytes& bytes) {
    Request* const request = post_until_taken(*pair_.sender, bytes, nullptr, tag);
    ASSERT_NE(request, nullptr);
    ASSERT_TRUE(finish(*request));
  }

  TwoHosts hosts_{{.mode = GetParam(), .drain_timeout_ms = 200}};
  Pair pair_ = connect(hosts_[0], hosts_[1]);
};
INSTANTIATE_TEST_SUITE_P(Modes, Groups,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         ustack::mode_name);

TEST_P(Groups, GroupIsDoneWhenAllItsBuffersAre) {
  Group group;
  for (const int tag : {5, 6, 7}) group.add(tag, 1000);
  ASSERT_TRUE(group.post(*pair_.receiver));
  EXPECT_EQ(group.request->buffers(), 3U);
  send(7, pattern(700, 7));
  send(5, pattern(500, 5));
  const auto not_yet = group.request->test({});
  ASSERT_TRUE(not_yet);
  EXPECT_FALSE(*not_yet);
  send(6, pattern(0, 6));
  const auto sizes = group.finish();
  ASSERT_TRUE(sizes);
  EXPECT_EQ(*sizes, (std::vector<std::size_t>{500, 0, 700}));
  EXPECT_TRUE(are_equal(std::span(group.buffers[0].bytes).first(500), pattern(500, 5)));
  EXPECT_TRUE(are_equal(std::span(group.buffers[2].bytes).first(700), pattern(700, 7)));
  EXPECT_EQ(group.buffers[1].bytes, Bytes(1000, std::byte{0xee}));
}

// A fast sender is ahead of a slow one on the same connection.
TEST_P(Groups, SecondMessageWithATagGoesToTheNextGroup) {
  Group first;
  Group second;
  for (Group* group : {&first, &second}) {
    for (const int tag : {1, 2}) group->add(tag, 64);
    ASSERT_TRUE(group->post(*pair_.receiver));
  }
  send(1, pattern(10, 1));
  send(1, pattern(20, 2));
  send(2, pattern(30, 3));
  const auto sizes = first.finish();
  ASSERT_TRUE(sizes);
  EXPECT_EQ(*sizes, (std::vector<std::size_t>{10, 30}));
  const auto not_yet = second.request->test({});
  ASSERT_TRUE(not_yet);
  EXPECT_FALSE(*not_yet);
  send(2, pattern(40, 4));
  const auto again = second.finish();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, (std::vector<std::size_t>{20, 40}));
}

// Eight senders on one connection, each in its own order, in groups of all sizes.
TEST_P(Groups, EveryByteArrivesOnceInAnyOrderOfTags) {
  constexpr int kTags = 8;
  constexpr std::uint64_t kRounds = 40;
  constexpr std::size_t kMost = 150'000;
  const std::array<std::size_t, 8> sizes = {0, 1, 8, 4096, 65536, 131073, kMost, 777};
  const auto size_of = [&](int tag, std::uint64_t n) {
    return sizes[(n * 3 + static_cast<std::uint64_t>(tag)) % sizes.size()];
  };
  const auto seed_of = [](int tag, std::uint64_t n) {
    return n * 100 + static_cast<std::uint64_t>(tag);
  };
  std::thread sending([&] {
    std::mt19937 random(1);
    std::array<std::uint64_t, kTags> sent{};
    std::list<std::pair<Request*, Bytes>> outstanding;
    const auto hear = [&] {
      std::erase_if(outstanding, [](const auto& one) {
        const auto done = one.first->test({});
        EXPECT_TRUE(done);
        return !done || *done;
      });
    };
    for (std::uint64_t total = 0; total < kRounds * kTags;) {
      hear();
      const int tag = static_cast<int>(random() % kTags);
      const std::uint64_t fewest = *std::ranges::min_element(sent);
      std::uint64_t& n = sent[static_cast<std::size_t>(tag)];
      if (n == kRounds || n >= fewest + 8) continue;  // Limits how far one sender is ahead.
      Bytes bytes = pattern(size_of(tag, n), seed_of(tag, n));
      const auto request = pair_.sender->post_send(bytes, tag, nullptr);
      ASSERT_TRUE(request);
      if (*request == nullptr) continue;
      outstanding.emplace_back(*request, std::move(bytes));
      ++n;
      ++total;
    }
    while (!outstanding.empty()) hear();
  });
  // Each round receives every tag once, in groups of random size; four rounds are posted ahead.
  struct Part {
    Group group;
    std::uint64_t round = 0;
  };
  std::mt19937 random(2);
  std::deque<Part> posted;
  const auto take_one = [&] {
    Part& part = posted.front();
    const auto got = part.group.finish();
    ASSERT_TRUE(got);
    for (std::size_t i = 0; i < got->size(); ++i) {
      const Group::Buffer& buffer = part.group.buffers[i];
      ASSERT_EQ((*got)[i], size_of(buffer.tag, part.round)) << buffer.tag << " " << part.round;
      ASSERT_TRUE(are_equal(std::span(buffer.bytes).first((*got)[i]),
                            pattern((*got)[i], seed_of(buffer.tag, part.round))));
    }
    posted.pop_front();
  };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    std::array<int, kTags> tags{};
    std::iota(tags.begin(), tags.end(), 0);
    std::shuffle(tags.begin(), tags.end(), random);
    for (std::size_t at = 0; at < tags.size();) {
      const std::size_t count = std::min<std::size_t>(tags.size() - at, 1 + random() % 8);
      Part& part = posted.emplace_back();
      part.round = round;
      for (std::size_t i = 0; i < count; ++i) part.group.add(tags[at + i], kMost);
      while (!part.group.post(*pair_.receiver)) std::this_thread::yield();
      at += count;
    }
    while (!posted.empty() && posted.front().round + 4 <= round) take_one();
  }
  while (!posted.empty()) take_one();
  sending.join();
}

TEST_P(Groups, GroupBeyondThirtyTwoIsRefusedAsAWhole) {
  std::vector<Group> groups(33);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (int tag = 0; tag < 8; ++tag) groups[i].add(tag, 16);
    EXPECT_EQ(groups[i].post(*pair_.receiver), i < 32) << i;
  }
  // No buffer of the refused group was posted.
  for (int i = 0; i < 32; ++i)
    for (int tag = 0; tag < 8; ++tag) send(tag, pattern(16, static_cast<std::uint64_t>(i)));
  for (std::size_t i = 0; i < 32; ++i) ASSERT_TRUE(groups[i].finish()) << i;
  EXPECT_TRUE(groups[32].post(*pair_.receiver));
  for (int tag = 0; tag < 8; ++tag) send(tag, pattern(9, 9));
  const auto sizes = groups[32].finish();
  ASSERT_TRUE(sizes);
  EXPECT_EQ(*sizes, std::vector<std::size_t>(8, 9));
}

TEST_P(Groups, AMessageLargerThanItsBufferFailsTheGroup) {
  const test::LogCapture log;
  Group group;
  group.add(1, 1000);
  group.add(2, 10);
  ASSERT_TRUE(group.post(*pair_.receiver));
  send(1, pattern(100, 1));
  const Bytes large = pattern(11, 2);
  ASSERT_NE(post_until_taken(*pair_.sender, large, nullptr, 2), nullptr);
  const auto sizes = group.finish();
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code, Errc::kTruncated);
  EXPECT_NE(log.warned().find("1 messages (100 bytes) done, 1 in flight"), std::string::npos)
      << log.warned();
}

TEST_P(Groups, CloseInFlightTouchesNoBufferAfterwards) {
  Group group;
  for (int tag = 0; tag < 8; ++tag) group.add(tag, 1U << 20U);
  ASSERT_TRUE(group.post(*pair_.receiver));
  send(3, pattern(100, 3));
  std::vector<Bytes> before;
  pair_.receiver.reset();
  for (const Group::Buffer& buffer : group.buffers) before.push_back(buffer.bytes);
  const Bytes message(1U << 20U, std::byte{0x22});
  for (const int tag : {0, 7}) {
    Request* const sending = post_until_taken(*pair_.sender, message, nullptr, tag);
    if (sending != nullptr) {
      EXPECT_FALSE(finish(*sending));
    }
  }
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(group.buffers[i].bytes, before[i]) << i;
}

TEST_P(Groups, DeregisteringTheMemoryOfOneBufferEndsTheConnection) {
  Group group;
  group.add(1, 1000);
  group.add(2, 1000);
  const auto key_of = [&](std::size_t i) {
    return *pair_.receiver->register_memory(
        {group.buffers[i].bytes.data(), group.buffers[i].bytes.size()});
  };
  MemoryKey* const first = key_of(0);
  MemoryKey* const second = key_of(1);
  ASSERT_TRUE(group.post(*pair_.receiver));
  send(1, pattern(1000, 1));
  // The message for this buffer has arrived, so its memory is NCCL's again.
  EXPECT_TRUE(pair_.receiver->deregister_memory(first));
  const auto not_yet = group.request->test({});
  ASSERT_TRUE(not_yet);
  EXPECT_FALSE(*not_yet);
  EXPECT_TRUE(pair_.receiver->deregister_memory(second));
  const auto sizes = group.finish();
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code, Errc::kAborted);
}

TEST_P(Groups, WaitingGroupFailsWhenTheSendersProcessEnds) {
  const test::LogCapture log;
  Group group;
  group.add(1, 1000);
  group.add(2, 1000);
  ASSERT_TRUE(group.post(*pair_.receiver));
  send(2, pattern(10, 1));
  hosts_[0].drain();
  const auto sizes = group.finish();
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code, Errc::kPeerClosed);
}

}  // namespace
}  // namespace ztcp::comms
