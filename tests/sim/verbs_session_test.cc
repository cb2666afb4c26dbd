// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Both sessions of a verbs connection over queue pairs that do what the verbs allow, in every
// order: each message arrives once, whole, in its buffer, and nobody touches a buffer after it is
// done.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/sim/queue_pair_wire.h"
#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"

namespace ztcp::sim {
namespace {

using verbs::RecvSession;
using verbs::SendSession;

constexpr std::uint32_t kRingKey = 11;
constexpr std::uint32_t kSizesKey = 12;
constexpr std::uint32_t kPayloadKey = 13;
constexpr std::size_t kMaxBytes = 300'000;

struct Setup {
  std::uint32_t queue_pairs = 1;
  std::uint32_t inline_bytes = 64;
  std::uint64_t seed = 1;
};

class Connection {
 public:
  explicit Connection(const Setup& setup) : wire(setup.queue_pairs, setup.seed) {
    wire.left.memory = {{reinterpret_cast<const std::byte*>(&ring), sizeof ring, kRingKey}};
    wire.right.memory = {
        {reinterpret_cast<const std::byte*>(&sizes_in), sizeof sizes_in, kSizesKey}};
    sender.emplace(
        verbs::SendSettings{.queue_pairs = setup.queue_pairs,
                            .inline_bytes = setup.inline_bytes,
                            .sizes = {reinterpret_cast<std::uint64_t>(&sizes_in), kSizesKey}},
        ring, sizes_out, wire.left);
    receiver.emplace(
        verbs::RecvSettings{.queue_pairs = setup.queue_pairs,
                            .inline_bytes = setup.inline_bytes,
                            .ring = {reinterpret_cast<std::uint64_t>(&ring), kRingKey}},
        staged, sizes_in, wire.right);
    EXPECT_TRUE(receiver->begin());
  }

  Status poll_sender() {
    while (!wire.left.completions.empty() && wire.draw() % 4 != 0) {
      const auto told = wire.left.completions.front();
      wire.left.completions.pop_front();
      ZTCP_CHECK(sender->on_completion(told.queue_pair, told.id));
    }
    return {};
  }
  Status poll_receiver() {
    while (!wire.right.completions.empty() && wire.draw() % 4 != 0) {
      const auto told = wire.right.completions.front();
      wire.right.completions.pop_front();
      ZTCP_CHECK(told.is_immediate ? receiver->on_immediate(told.queue_pair, told.immediate)
                                   : receiver->on_completion(told.queue_pair, told.id));
    }
    return {};
  }
  Status poll_both() {
    ZTCP_CHECK(poll_sender());
    return poll_receiver();
  }
  bool is_quiet() const {
    return sender->is_idle() && receiver->is_idle() && wire.left.completions.empty() &&
           wire.right.completions.empty();
  }

  verbs::Ring ring{};
  verbs::Ring staged{};
  verbs::SizeTable sizes_in{};
  verbs::SizeTable sizes_out{};
  QueuePairWire wire;
  std::optional<SendSession> sender;
  std::optional<RecvSession> receiver;
};

using Bytes = std::vector<std::byte>;

// What is to be seen of message `n` of a tag.
std::byte byte_of(std::uint64_t n, int tag, std::size_t at) {
  return static_cast<std::byte>(n * 7 + static_cast<std::uint64_t>(tag) * 31 + at * 3 + at / 256);
}

// Applications on both ends that post whatever they may, in groups of any tags.
class Traffic {
 public:
  Traffic(const Setup& setup, std::size_t buffers) : connection_(setup), to_post_(buffers) {
    connection_.wire.right.on_write = [this](const std::byte* to, std::size_t size) {
      check_write(to, size);
    };
  }

  void run() {
    for (std::size_t idle = 0; idle < 10'000 && !is_over() && problem_.empty(); ++idle) {
      switch (connection_.wire.draw() % 4) {
        case 0:
          post_receive();
          break;
        case 1:
          post_send();
          break;
        case 2:
          ASSERT_TRUE(connection_.poll_both());
          look();
          break;
        default:
          if (connection_.wire.step()) idle = 0;
      }
      ASSERT_EQ(connection_.wire.problem(), "");
    }
    EXPECT_EQ(problem_, "");
    EXPECT_TRUE(is_over()) << "stuck with " << sends_.size() << " sends and " << posts_.size()
                           << " posts";
  }

 private:
  struct Buffer {
    Bytes bytes;
    int tag = 0;
    std::uint64_t number = 0;  // Among those of its tag.
    std::size_t sent_bytes = 0;
  };

  bool is_over() const {
    return to_post_ == 0 && to_send_.empty() && sends_.empty() && posts_.empty() &&
           connection_.is_quiet();
  }

  std::size_t draw_size() {
    const std::size_t top = std::size_t{1} << connection_.wire.draw() % 19;
    return std::min(connection_.wire.draw() % (2 * top), kMaxBytes);
  }

  void post_receive() {
    RecvSession& receiver = *connection_.receiver;
    const std::uint16_t number = receiver.next_number();
    if (to_post_ == 0 || !receiver.can_post() || posts_.contains(number)) return;
    const std::size_t count = std::min<std::size_t>(to_post_, 1 + connection_.wire.draw() % 8);
    to_post_ -= count;
    std::vector<Buffer>& group = posts_[number];
    std::vector<RecvSession::Buffer> buffers;
    for (std::size_t i = 0; i < count; ++i) {
      Buffer& buffer = group.emplace_back();
      buffer.tag = static_cast<int>(connection_.wire.draw() % 5) - 2;
      buffer.number = next_number_[buffer.tag]++;
      buffer.sent_bytes = draw_size();
      buffer.bytes.resize(buffer.sent_bytes + connection_.wire.draw() % 100);
      to_send_[buffer.tag].push_back(buffer.sent_bytes);
      buffers.push_back({reinterpret_cast<std::uint64_t>(buffer.bytes.data()), kPayloadKey,
                         static_cast<std::uint32_t>(buffer.bytes.size()), buffer.tag});
    }
    for (const Buffer& buffer : group)
      connection_.wire.right.memory.push_back(
          {buffer.bytes.data(), buffer.bytes.size(), kPayloadKey});
    ASSERT_TRUE(receiver.post(buffers));
  }

  // In any order of tags, also before the slot has come.
  void post_send() {
    if (to_send_.empty()) return;
    std::uint16_t number = 0;
    while (sends_.contains(number)) ++number;
    if (number >= SendSession::kMessages) return;
    auto chosen = to_send_.begin();
    std::advance(chosen, connection_.wire.draw() % to_send_.size());
    const int tag = chosen->first;
    const std::uint64_t n = next_sent_[tag];
    Bytes bytes(chosen->second.front());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(n, tag, i);
    const auto taken =
        connection_.sender->post(number, {.bytes = bytes, .tag = tag, .is_host = n % 3 != 0});
    ASSERT_TRUE(taken);
    if (!*taken) return;
    ++next_sent_[tag];
    sends_[number] = std::move(bytes);
    chosen->second.pop_front();
    if (chosen->second.empty()) to_send_.erase(chosen);
  }

  void look() {
    for (auto it = sends_.begin(); it != sends_.end();) {
      Bytes& bytes = it->second;
      if (!connection_.sender->is_done(it->first)) {
        ++it;
        continue;
      }
      // NCCL reuses it; who reads it now sends that.
      std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
      graveyard_.push_back(std::move(bytes));
      it = sends_.erase(it);
    }
    for (auto it = posts_.begin(); it != posts_.end();) {
      if (!connection_.receiver->is_done(it->first)) {
        ++it;
        continue;
      }
      for (std::size_t i = 0; i < it->second.size(); ++i) check(it->first, i, it->second[i]);
      it = posts_.erase(it);
    }
  }

  void check(std::uint16_t number, std::size_t i, Buffer& buffer) {
    if (connection_.receiver->received_bytes(number, i) != buffer.sent_bytes)
      problem_ = "another size than was sent";
    for (std::size_t at = 0; at < buffer.bytes.size(); ++at)
      if (buffer.bytes[at] !=
          (at < buffer.sent_bytes ? byte_of(buffer.number, buffer.tag, at) : std::byte{}))
        problem_ = "wrong bytes";
    std::erase_if(connection_.wire.right.memory, [&](const Registered& one) {
      return one.rkey == kPayloadKey && one.begin == buffer.bytes.data();
    });
    graveyard_.push_back(std::move(buffer.bytes));
  }

  // Into registered memory it goes, the wire says; into a buffer of a post that is not done?
  void check_write(const std::byte* to, std::size_t size) {
    for (const auto& [number, group] : posts_)
      for (const Buffer& buffer : group)
        if (to >= buffer.bytes.data() && to + size <= buffer.bytes.data() + buffer.bytes.size() &&
            connection_.receiver->is_done(number))
          problem_ = "a write into a buffer that is done";
  }

  Connection connection_;
  std::size_t to_post_;
  std::map<int, std::deque<std::size_t>> to_send_;  // Sizes of messages, by tag.
  std::map<int, std::uint64_t> next_number_;
  std::map<int, std::uint64_t> next_sent_;
  std::map<std::uint16_t, std::vector<Buffer>> posts_;
  std::map<std::uint16_t, Bytes> sends_;
  std::vector<Bytes> graveyard_;  // Not freed, so that late writes hit what is watched.
  std::string problem_;
};

class VerbsTraffic : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint32_t, int>> {
};

TEST_P(VerbsTraffic, DeliversEachMessageOnceAndWhole) {
  const auto [queue_pairs, inline_bytes, seed] = GetParam();
  Traffic traffic({.queue_pairs = queue_pairs,
                   .inline_bytes = inline_bytes,
                   .seed = static_cast<std::uint64_t>(seed)},
                  600);
  traffic.run();
}

INSTANTIATE_TEST_SUITE_P(Seeds, VerbsTraffic,
                         testing::Combine(testing::Values(1, 2, 3, 8), testing::Values(0, 64),
                                          testing::Range(1, 6)));

// --- Cases ---------------------------------------------------------------------------------------

class VerbsSessions : public testing::Test {
 protected:
  void receive(Connection& c, std::span<std::byte> to, int tag = 0) {
    c.wire.right.memory.push_back({to.data(), to.size(), kPayloadKey});
    const RecvSession::Buffer buffer{reinterpret_cast<std::uint64_t>(to.data()), kPayloadKey,
                                     static_cast<std::uint32_t>(to.size()), tag};
    ASSERT_TRUE(c.receiver->post({&buffer, 1}));
  }
  // Until nothing happens any more.
  static Status settle(Connection& c) {
    for (int quiet = 0; quiet < 20; ++quiet) {
      while (c.wire.step()) quiet = 0;
      ZTCP_CHECK(c.poll_both());
    }
    return {};
  }
};

TEST_F(VerbsSessions, AMessageTooLargeIsNeverSent) {
  Connection c({});
  Bytes to(100);
  const Bytes from(101);
  receive(c, to, 9);
  ASSERT_TRUE(settle(c));
  const auto outcome = c.sender->post(0, {.bytes = from, .tag = 9});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kTruncated);
  EXPECT_EQ(c.sender->truncated().sent_bytes, 101U);
  EXPECT_EQ(c.sender->truncated().posted_bytes, 100U);
  EXPECT_EQ(c.sender->truncated().tag, 9);
  EXPECT_EQ(c.wire.right.counts.immediates, 0U);
}

TEST_F(VerbsSessions, ASizeBeyondTheImmediateTravelsInFrontOfIt) {
  for (const std::uint32_t queue_pairs : {1U, 2U}) {
    Connection c({.queue_pairs = queue_pairs});
    Bytes to(verbs::kSizeInTable + 1'000);
    const Bytes from(verbs::kSizeInTable + 10, std::byte{5});
    receive(c, to);
    const std::uint16_t number = 0;
    ASSERT_TRUE(settle(c));
    ASSERT_TRUE(*c.sender->post(0, {.bytes = from}));
    ASSERT_TRUE(settle(c));
    ASSERT_TRUE(c.receiver->is_done(number));
    EXPECT_EQ(c.receiver->received_bytes(number, 0), from.size());
    EXPECT_EQ(to[from.size() - 1], std::byte{5});
    EXPECT_EQ(to[from.size()], std::byte{0});
    EXPECT_EQ(c.wire.problem(), "");
  }
}

TEST_F(VerbsSessions, WhatTheOtherEndMayNotSayEndsIt) {
  Connection c({});
  Bytes to(64);
  EXPECT_FALSE(c.receiver->on_immediate(0, verbs::to_immediate(0, 8))) << "nothing is posted";
  receive(c, to);
  EXPECT_FALSE(c.receiver->on_immediate(0, verbs::to_immediate(1, 8))) << "another slot";
  EXPECT_FALSE(c.receiver->on_immediate(0, verbs::to_immediate(0, 65))) << "more than posted";
  EXPECT_TRUE(c.receiver->on_immediate(0, verbs::to_immediate(0, 8)));
  EXPECT_FALSE(c.receiver->on_immediate(0, verbs::to_immediate(0, 8))) << "a second time";
  EXPECT_FALSE(c.receiver->on_completion(0, 99));
  EXPECT_FALSE(c.sender->on_completion(0, 0));

  const Bytes from(8);
  c.ring[0] = {.buffers = 9, .sequence = 1};
  EXPECT_FALSE(c.sender->post(0, {.bytes = from})) << "nine buffers in a row of eight";
}

TEST_F(VerbsSessions, AMessageWithoutABufferOrWithoutRoomIsNotTaken) {
  Connection c({});
  const Bytes from(8, std::byte{3});
  EXPECT_FALSE(*c.sender->post(0, {.bytes = from})) << "nothing is posted";
  Bytes to(8);
  receive(c, to, 1);
  ASSERT_TRUE(settle(c));
  EXPECT_FALSE(*c.sender->post(0, {.bytes = from, .tag = 2})) << "of another tag";
  EXPECT_TRUE(*c.sender->post(0, {.bytes = from, .tag = 1}));
  EXPECT_FALSE(c.sender->is_done(0));
  EXPECT_FALSE(*c.sender->post(1, {.bytes = from, .tag = 1})) << "the buffer is taken";
  ASSERT_TRUE(settle(c));
  EXPECT_TRUE(c.sender->is_done(0));
  EXPECT_EQ(to, from);
}

// --- Counted work --------------------------------------------------------------------------------

struct Work {
  double sender_works, sender_doorbells, sender_completions;
  double receiver_works, receiver_doorbells, receiver_completions, receives, receive_doorbells;
};

// One message after the other, each received before the next is posted.
Work work_per_message(std::size_t size) {
  constexpr int kMessages = 1024;
  Connection c({});
  Bytes to(size);
  const Bytes from(size, std::byte{1});
  c.wire.right.memory.push_back({to.data(), to.size(), kPayloadKey});
  const auto before_left = c.wire.left.counts;
  const auto before_right = c.wire.right.counts;
  for (int i = 0; i < kMessages; ++i) {
    const RecvSession::Buffer buffer{reinterpret_cast<std::uint64_t>(to.data()), kPayloadKey,
                                     static_cast<std::uint32_t>(size), 0};
    const std::uint16_t number = c.receiver->next_number();
    EXPECT_TRUE(c.receiver->post({&buffer, 1}));
    while (!*c.sender->post(0, {.bytes = from})) c.wire.step();
    while (!c.receiver->is_done(number) || !c.sender->is_done(0)) {
      EXPECT_TRUE(c.poll_both());
      c.wire.step();
    }
  }
  const auto each = [](std::uint64_t now, std::uint64_t before) {
    return static_cast<double>(now - before) / kMessages;
  };
  const auto& left = c.wire.left.counts;
  const auto& right = c.wire.right.counts;
  return {.sender_works = each(left.works, before_left.works),
          .sender_doorbells = each(left.doorbells, before_left.doorbells),
          .sender_completions = each(left.completions, before_left.completions),
          .receiver_works = each(right.works, before_right.works),
          .receiver_doorbells = each(right.doorbells, before_right.doorbells),
          .receiver_completions = each(right.completions + right.immediates,
                                       before_right.completions + before_right.immediates),
          .receives = each(right.receives, before_right.receives),
          .receive_doorbells = each(right.receive_doorbells, before_right.receive_doorbells)};
}

// What net_ib of NCCL 2.28 to 2.30 does for a message, by its source: one write with immediate that
// is signalled, one write of a slot, signalled once in 256 (its ring has as many), and one receive.
TEST(VerbsWork, IsNoMoreThanThatOfNcclsNetIb) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 20U}) {
    const Work work = work_per_message(size);
    EXPECT_EQ(work.sender_works, 1) << size;
    EXPECT_EQ(work.sender_doorbells, 1);
    EXPECT_EQ(work.sender_completions, 1);
    EXPECT_EQ(work.receiver_works, 1);
    EXPECT_EQ(work.receiver_doorbells, 1);
    EXPECT_LE(work.receiver_completions, 1 + 1.0 / 256);
    EXPECT_EQ(work.receives, 1);
    EXPECT_LE(work.receive_doorbells, 1.0 / 64);
  }
}

// A group's slots travel together.
TEST(VerbsWork, AGroupOfEightIsOneControlWrite) {
  Connection c({});
  std::vector<Bytes> to(8, Bytes(8));
  std::vector<RecvSession::Buffer> buffers;
  for (Bytes& one : to)
    buffers.push_back({reinterpret_cast<std::uint64_t>(one.data()), kPayloadKey, 8,
                       static_cast<int>(buffers.size())});
  ASSERT_TRUE(c.receiver->post(buffers));
  EXPECT_EQ(c.wire.right.counts.works, 1U);
  EXPECT_EQ(c.wire.right.counts.doorbells, 1U);
}

}  // namespace
}  // namespace ztcp::sim
