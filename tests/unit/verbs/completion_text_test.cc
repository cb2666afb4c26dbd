// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Each kind of work, ended by each status that the real thing knows: the connection ends in time
// and in words, at both ends, and no other is hurt.
#include "transport/verbs/completion_text.h"

#include <thread>
#include <tuple>

#include "tests/unit/verbs/connections.h"
#include "tests/unit/verbs/gpu_memory.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;

// A slot of a receiver, a message of a sender, a flush of a receiver.
using Ended = std::tuple<ibv_wr_opcode, ibv_wc_status>;

class CompletionStatus : public Connections, public testing::WithParamInterface<Ended> {
 protected:
  CompletionStatus() : Connections({roce_device("fake0", 1), roce_device("fake1", 2)}) {}

  static Error end_of(Request* request) {
    const auto done = test::finish(*request);
    EXPECT_FALSE(done) << "it went well";
    return done ? Error{} : done.error();
  }
};

TEST_P(CompletionStatus, EndsItsConnectionInWords) {
  const auto [kind, status] = GetParam();
  Pair other = pair();
  Pair both = pair();
  Bytes from = test::pattern(5000, 1);
  Bytes to(5000);
  MemoryKey* const from_key = register_host(*both.sender, from);
  MemoryKey* const to_key = register_host(*both.receiver, to);
  exchange(both, 5000, 2);
  host_.devices.fail_next(kind, status);
  const auto receive = test::post_recv(*both.receiver, to, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  const CompletionText text = describe(status);
  if (kind == IBV_WR_RDMA_WRITE) {
    EXPECT_EQ(end_of(*receive).code, text.code);
  } else {
    Request* const send = test::post_until_taken(*both.sender, from, from_key);
    ASSERT_NE(send, nullptr);
    EXPECT_EQ(end_of(send).code, text.code);
    const auto received = test::finish(**receive);
    EXPECT_FALSE(received) << "the receiver hears of it";
  }
  EXPECT_THAT(log_.warned(), HasSubstr(text.words));
  EXPECT_THAT(log_.warned(), HasSubstr(text.advice));
  exchange(other, 5000, 3);
  Pair next = pair();
  exchange(next, 5000, 4);
}

INSTANTIATE_TEST_SUITE_P(
    Each, CompletionStatus,
    testing::Combine(testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM),
                     testing::Values(IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR,
                                     IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR,
                                     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
                                     IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_FATAL_ERR,
                                     IBV_WC_RESP_TIMEOUT_ERR, IBV_WC_BAD_RESP_ERR,
                                     IBV_WC_REM_ABORT_ERR, IBV_WC_GENERAL_ERR)),
    [](const auto& row) {
      return std::string(std::get<0>(row.param) == IBV_WR_RDMA_WRITE ? "slot_" : "message_") +
             describe(std::get<1>(row.param)).name;
    });

class FlushTest : public Connections {
 protected:
  static constexpr std::size_t kSize = 1 << 16;
  FlushTest() : Connections({roce_device("fake0", 1), roce_device("fake1", 2)}) {}
};
class FailedFlush : public FlushTest, public testing::WithParamInterface<ibv_wc_status> {};

TEST_P(FailedFlush, EndsItsConnectionInWords) {
  Pair both = pair();
  const GpuMemory gpu(kSize);
  const auto key = both.receiver->register_memory(gpu.region());
  ASSERT_TRUE(key) << key.error().where;
  const RecvBuffer buffer{.bytes = gpu.bytes(), .tag = 0, .key = *key};
  host_.devices.fail_next(IBV_WR_RDMA_READ, GetParam());
  const auto flush = both.receiver->post_flush({&buffer, 1});
  ASSERT_TRUE(flush && *flush != nullptr);
  const auto done = test::finish(**flush);
  EXPECT_FALSE(done) << "memory that was not flushed is not handed to NCCL";
  EXPECT_THAT(log_.warned(), HasSubstr("the flush of GPU memory: "));
  EXPECT_THAT(log_.warned(), HasSubstr(describe(GetParam()).words));
  EXPECT_TRUE(both.receiver->deregister_memory(*key));
}

INSTANTIATE_TEST_SUITE_P(Each, FailedFlush,
                         testing::Values(IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR,
                                         IBV_WC_RETRY_EXC_ERR, IBV_WC_FATAL_ERR),
                         [](const auto& row) { return std::string(describe(row.param).name); });

// Not in the midst of NCCL's traffic.
TEST_F(FlushTest, GpuMemory_RegistrationPreparesFlushes) {
  Pair both = pair();
  EXPECT_EQ(host_.devices.live("qp"), 2);
  const GpuMemory gpu(kSize);
  const auto key = both.receiver->register_memory(gpu.region());
  ASSERT_TRUE(key) << key.error().where;
  EXPECT_EQ(host_.devices.live("qp"), 3);
  const auto again = both.receiver->register_memory(gpu.region());
  ASSERT_TRUE(again) << again.error().where;
  EXPECT_EQ(host_.devices.live("qp"), 3);
  EXPECT_TRUE(both.receiver->deregister_memory(*again));
  EXPECT_TRUE(both.receiver->deregister_memory(*key));
}

TEST_F(FlushTest, GpuMemoryIsRefusedByNameWhereItCantBeFlushedAndHostMemoryIsCarried) {
  auto listener = std::move(*transport_->listen(1, {}));
  auto sender = std::move(*transport_->begin_connect(0, listener->handle(), {}));
  while (!*sender->is_ready()) std::this_thread::yield();
  host_.devices.refuse("ibv_create_cq", ENOMEM);
  Result<RecvCommPtr> accepted = nullptr;
  while (accepted && *accepted == nullptr) accepted = listener->accept();
  ASSERT_TRUE(accepted);
  Pair both{std::move(sender), std::move(*accepted)};
  const GpuMemory gpu(kSize);
  const auto refused = both.receiver->register_memory(gpu.region());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, ENOMEM);
  EXPECT_THAT(log_.warned(), HasSubstr("ibv_create_cq: Cannot allocate memory; look at ulimit -l"));
  exchange(both, 1000, 1);
  host_.devices.refuse("ibv_create_cq", 0);
  const auto key = both.receiver->register_memory(gpu.region());
  ASSERT_TRUE(key) << key.error().where;
  EXPECT_TRUE(both.receiver->deregister_memory(*key));
}

}  // namespace
}  // namespace ztcp::verbs
