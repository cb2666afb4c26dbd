// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Counts the work requests of a message over queue pairs.
#include "tests/sim/verbs_connection.h"

namespace ztcp::sim {
namespace {

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
  c.wire.right.memory.push_back({to.data(), to.size(), kPayloadKeys});
  const auto before_left = c.wire.left.counts;
  const auto before_right = c.wire.right.counts;
  for (int i = 0; i < kMessages; ++i) {
    const verbs::RecvSession::Buffer buffer{reinterpret_cast<std::uint64_t>(to.data()),
                                            &kPayloadKeys, static_cast<std::uint32_t>(size), 0};
    const std::uint16_t number = c.receiver->next_number();
    EXPECT_TRUE(c.receiver->post({&buffer, 1}));
    while (!*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys})) c.wire.step();
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

// net_ib of NCCL 2.28 to 2.30 needs for a message, by its source: one signalled write with
// immediate, one write of a slot, signalled once in 256 (its ring has as many), and one receive.
TEST(VerbsWork, NoMoreWorkPerMessageThanNcclsNetIb) {
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
  std::vector<verbs::RecvSession::Buffer> buffers;
  for (Bytes& one : to)
    buffers.push_back({reinterpret_cast<std::uint64_t>(one.data()), &kPayloadKeys, 8,
                       static_cast<int>(buffers.size())});
  ASSERT_TRUE(c.receiver->post(buffers));
  EXPECT_EQ(c.wire.right.counts.works, 1U);
  EXPECT_EQ(c.wire.right.counts.doorbells, 1U);
}

}  // namespace
}  // namespace ztcp::sim
