// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// GPU memory over devices of iWARP: their writes are flushed over two queue pairs of the device's
// own. If these can't be joined, GPUDirect is off.
#include <array>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/verbs/connections.h"
#include "tests/unit/verbs/gpu_memory.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;

class IwarpGpu : public Connections {
 protected:
  static constexpr std::size_t kSize = 100'000;

  explicit IwarpGpu(std::uint64_t seed = 1)
      : Connections({iwarp_device("fake0", 1), iwarp_device("fake1", 2)}, seed) {}

  static MemoryKey* register_gpu(Comm& comm, const Region& region) {
    const auto key = comm.register_memory(region);
    EXPECT_TRUE(key) << key.error().where;
    return key ? *key : nullptr;
  }
  static Result<Request*> flush(Pair& pair, const GpuMemory& memory, MemoryKey* key) {
    const RecvBuffer buffer{.bytes = memory.bytes(), .tag = 0, .key = key};
    return pair.receiver->post_flush({&buffer, 1});
  }
  // The connection manager answers no request of the receiver's own two queue pairs.
  Pair pair_with_unjoined_flusher() {
    auto listener = std::move(*transport_->listen(1, {}));
    Pair both{std::move(*transport_->begin_connect(0, listener->handle(), {})), nullptr};
    while (!*both.sender->is_ready()) std::this_thread::yield();
    host_.devices.ignore_requests();
    while (both.receiver == nullptr) both.receiver = std::move(*listener->accept());
    return both;
  }
  // At start, a failure to join the two is found within this time; connections have as long as in
  // other tests.
  void restart_with_trials_of(std::uint32_t ms) {
    transport_.reset();
    const std::uint32_t usual = std::exchange(host_.fabric.tcp.connect_timeout_ms, ms);
    std::vector<Device> devices = host_.list();
    host_.fabric.tcp.connect_timeout_ms = usual;
    transport_ = *create(host_.fabric, std::move(devices));
  }
};

class SeededIwarpGpu : public IwarpGpu, public testing::WithParamInterface<std::uint64_t> {
 protected:
  SeededIwarpGpu() : IwarpGpu(GetParam()) {}
};

TEST_P(SeededIwarpGpu, GpuMemory_BytesAreSeenAfterAFlush) {
  EXPECT_TRUE(transport_->devices()[0].dmabuf);
  EXPECT_THAT(transport_->describe_device(0), HasSubstr("GPUDirect RDMA on (DMA-BUF)"));
  Pair both = pair();
  const GpuMemory from(kSize);
  const GpuMemory to(kSize);
  MemoryKey* const from_key = register_gpu(*both.sender, from.region());
  MemoryKey* const to_key = register_gpu(*both.receiver, to.region());
  for (std::uint64_t round = 0; round < 5; ++round) {
    const Bytes sent = test::pattern(kSize, round);
    from.write(sent);
    const auto receive = test::post_recv(*both.receiver, to.bytes(), to_key);
    ASSERT_TRUE(receive && *receive != nullptr);
    Request* const send = test::post_until_taken(*both.sender, from.bytes(), from_key);
    ASSERT_NE(send, nullptr);
    finish_both(**receive, *send, kSize);
    EXPECT_FALSE(test::are_equal(to.seen(), sent)) << "a flush was needed";
    const auto flushed = flush(both, to, to_key);
    ASSERT_TRUE(flushed && *flushed != nullptr);
    ASSERT_TRUE(test::finish(**flushed)) << log_.warned();
    EXPECT_TRUE(test::are_equal(to.seen(), sent));
  }
  EXPECT_TRUE(both.sender->deregister_memory(from_key));
  EXPECT_TRUE(both.receiver->deregister_memory(to_key));
}
INSTANTIATE_TEST_SUITE_P(Seeds, SeededIwarpGpu, testing::Range<std::uint64_t>(0, 12));

TEST_F(IwarpGpu, MemoryThatAModuleKnowsByItsAddressIsFlushed) {
  transport_.reset();
  host_.tree.add_file("sys/module/nvidia_peermem/version", "550\n");
  transport_ = host_.start();
  EXPECT_TRUE(transport_->devices()[0].cuda_pointers);
  Pair both = pair();
  const GpuMemory to(kSize);
  MemoryKey* const to_key = register_gpu(*both.receiver, to.region_by_address());
  Bytes sent = test::pattern(kSize, 1);
  MemoryKey* const from_key = register_host(*both.sender, sent);
  const auto receive = test::post_recv(*both.receiver, to.bytes(), to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  Request* const send = test::post_until_taken(*both.sender, sent, from_key);
  ASSERT_NE(send, nullptr);
  finish_both(**receive, *send, kSize);
  const auto flushed = flush(both, to, to_key);
  ASSERT_TRUE(flushed && *flushed != nullptr);
  ASSERT_TRUE(test::finish(**flushed)) << log_.warned();
  EXPECT_TRUE(test::are_equal(to.seen(), sent));
  EXPECT_TRUE(both.sender->deregister_memory(from_key));
  EXPECT_TRUE(both.receiver->deregister_memory(to_key));
}

// NCCL begins as many as it has receives, and the first of them have nobody joined yet.
TEST_F(IwarpGpu, FlushesThatBeginBeforeTheTwoAreJoinedWaitForIt) {
  Pair both = pair();
  const GpuMemory memory(kSize);
  MemoryKey* const key = register_gpu(*both.receiver, memory.region());
  std::deque<Request*> flushes;
  while (flushes.size() < 32) {
    const auto one = flush(both, memory, key);
    ASSERT_TRUE(one && *one != nullptr);
    flushes.push_back(*one);
  }
  for (Request* const one : flushes) ASSERT_TRUE(test::finish(*one)) << log_.warned();
  EXPECT_TRUE(both.receiver->deregister_memory(key));
}

TEST_F(IwarpGpu, AFlushThatFailsEndsItsConnectionInWords) {
  Pair both = pair();
  const GpuMemory memory(kSize);
  MemoryKey* const key = register_gpu(*both.receiver, memory.region());
  host_.devices.fail_next(IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
  const auto begun = flush(both, memory, key);
  ASSERT_TRUE(begun && *begun != nullptr);
  EXPECT_FALSE(test::finish(**begun));
  EXPECT_THAT(log_.warned(), HasSubstr("the flush of GPU memory: "));
  EXPECT_TRUE(both.receiver->deregister_memory(key));
}

// --- What keeps the two from being joined --------------------------------------------------------

TEST_F(IwarpGpu, AFlushThatHasNothingToGoOverEndsItsConnectionInTime) {
  Pair both = pair_with_unjoined_flusher();
  const GpuMemory memory(kSize);
  MemoryKey* const key = register_gpu(*both.receiver, memory.region());
  const auto begun = flush(both, memory, key);
  ASSERT_TRUE(begun && *begun != nullptr);
  EXPECT_FALSE(test::finish(**begun)) << "memory that was not flushed is not handed to NCCL";
  EXPECT_THAT(log_.warned(),
              HasSubstr("the flush of GPU memory: its queue pairs can't be joined to one another: "
                        "nothing was heard of it in time"));
  EXPECT_TRUE(both.receiver->deregister_memory(key));
}

// While no thread of the process runs, an answer of the connection manager waits unread.
TEST_F(IwarpGpu, TimeInWhichTheProcessIsStoppedDoesNotEndTheJoinOfFlushQueuePairs) {
  transport_.reset();
  host_.fabric.tcp.connect_timeout_ms = 1000;
  transport_ = *create(host_.fabric, host_.list());
  Pair both = pair_with_unjoined_flusher();
  const GpuMemory memory(kSize);
  MemoryKey* const key = register_gpu(*both.receiver, memory.region());
  const auto begun = flush(both, memory, key);
  ASSERT_TRUE(begun && *begun != nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(host_.fabric.tcp.connect_timeout_ms));
  const auto tested = (*begun)->test({});
  ASSERT_TRUE(tested) << log_.warned();
  EXPECT_FALSE(*tested);
  EXPECT_FALSE(test::finish(**begun)) << "nothing joins them later";
  EXPECT_TRUE(both.receiver->deregister_memory(key));
}

TEST_F(IwarpGpu, CloseWhileFlushQueuePairsAreJoinedLeavesNothing) {
  Pair both = pair();
  const GpuMemory memory(kSize);
  MemoryKey* const key = register_gpu(*both.receiver, memory.region());
  host_.devices.ignore_requests();
  const auto begun = flush(both, memory, key);
  ASSERT_TRUE(begun && *begun != nullptr);
  EXPECT_TRUE(both.receiver->deregister_memory(key));
  both = {};
}

TEST_F(IwarpGpu, WhereTheTwoCantBeJoinedGpuDirectIsOffAndHostMemoryIsCarried) {
  host_.devices.ignore_requests();
  restart_with_trials_of(100);
  host_.devices.ignore_requests(false);
  EXPECT_FALSE(transport_->devices()[0].dmabuf);
  EXPECT_FALSE(transport_->devices()[0].cuda_pointers);
  EXPECT_THAT(transport_->describe_device(0),
              HasSubstr("GPUDirect RDMA off: it can't flush its writes into GPU memory: its "
                        "queue pairs can't be joined to one another: nothing was heard of it"));
  Pair both = pair();
  exchange(both, kSize, 1);
  const GpuMemory memory(kSize);
  EXPECT_FALSE(both.receiver->register_memory(memory.region()));
}

TEST_F(IwarpGpu, WhereAReadIsNotAnsweredGpuDirectIsOff) {
  transport_.reset();
  host_.devices.hold_arrivals(true);
  EXPECT_THAT(host_.list()[0].gpu_direct, HasSubstr("a read of its own memory has no answer"));
  host_.devices.hold_arrivals(false);
}

TEST_F(IwarpGpu, WhereTheLibraryRefusesTheTwoGpuDirectIsOffByName) {
  transport_.reset();
  host_.devices.refuse("ibv_create_qp", ENOMEM);
  EXPECT_THAT(host_.list()[0].gpu_direct,
              HasSubstr("off: it can't flush its writes into GPU memory: ibv_create_qp: Cannot "
                        "allocate memory"));
  host_.devices.refuse("ibv_create_qp", 0);
}

TEST_F(IwarpGpu, WhereNothingIsFlushedNothingIsTried) {
  transport_.reset();
  host_.devices.ignore_requests();
  host_.variables.is_flush_disabled = true;
  EXPECT_EQ(host_.list()[0].gpu_direct, "on (DMA-BUF)");
}

}  // namespace
}  // namespace ztcp::verbs
