// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_windows.h"

#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/plugin/collnet_fixture.h"

namespace ztcp::plugin {
namespace {

using reduce::ElementType;
using reduce::Reduction;

constexpr std::size_t kFloat = sizeof(float);
constexpr std::size_t kPart = 1000;  // Elements of each host.
constexpr std::size_t kOffset = 500;
constexpr std::size_t kCount = 1200;

std::byte* bytes_of(std::vector<float>& floats) {
  return reinterpret_cast<std::byte*>(floats.data());
}

// Calls for a window that begins and ends inside a host's part. A host's `from` and `to` have room
// for it.
class CollNetWindowsTest : public CollNetTest {
 protected:
  void connect_and_prepare(std::size_t hosts) {
    connect(hosts);
    prepare(kCount);
  }
  static WindowCall window() {
    return {.piece_bytes = kCount * kFloat,
            .part_bytes = kPart * kFloat,
            .offset = kOffset * kFloat,
            .bytes = kCount * kFloat};
  }
  WindowCall gather_on(std::size_t rank) {
    Host& host = hosts_[rank];
    WindowCall call = window();
    call.address = bytes_of(host.to);
    call.memory = host.to_memory;
    call.own = bytes_of(host.from);
    call.own_memory = host.from_memory;
    return call;
  }
  WindowCall scatter_on(std::size_t rank) {
    WindowCall call = gather_on(rank);
    std::swap(call.address, call.own);
    std::swap(call.memory, call.own_memory);
    return call;
  }
  Told<reduce::Job*> scatter(std::size_t rank, const WindowCall& call) {
    return reduce_scatter(*hosts_[rank].group, call, ElementType::kFloat32, Reduction::kSum);
  }
  void expect_refused(const Told<reduce::Job*>& job, std::string_view text) {
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().code(), Errc::kInvalidArgument);
    EXPECT_TRUE(warned(log_, text)) << log_.warned();
  }
};

TEST_F(CollNetWindowsTest, AllGather_GivesAllHostsTheWindow) {
  for (const std::size_t hosts : {2, 3}) {
    hosts_.clear();
    handles_.clear();
    connect_and_prepare(hosts);
    for (std::size_t rank = 0; rank < hosts; ++rank)
      hosts_[rank].job = *all_gather(*hosts_[rank].group, gather_on(rank));
    finish();
    for (const Host& host : hosts_)
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::size_t owner = (kOffset + i) / kPart;
        const std::size_t first = owner == 0 ? 0 : owner * kPart - kOffset;
        ASSERT_EQ(host.to[i], hosts_[owner].from[i - first]) << i;
      }
  }
}

TEST_F(CollNetWindowsTest, ReduceScatter_GivesEachHostItsSums) {
  for (const std::size_t hosts : {2, 3}) {
    hosts_.clear();
    handles_.clear();
    connect_and_prepare(hosts);
    for (std::size_t rank = 0; rank < hosts; ++rank)
      hosts_[rank].job = *scatter(rank, scatter_on(rank));
    finish();
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t owner = (kOffset + i) / kPart;
      const std::size_t first = owner == 0 ? 0 : owner * kPart - kOffset;
      float sum = 0;
      for (const Host& host : hosts_) sum += host.from[i];
      ASSERT_EQ(hosts_[owner].to[i - first], sum) << i;
    }
    if (hosts == 3) {
      EXPECT_EQ(hosts_[2].to[0], -1) << "its part lies behind the window";
    }
  }
}

TEST_F(CollNetWindowsTest, CallsOfAllKindsInFlight_KeepTheirOrder) {
  connect_and_prepare(3);
  std::vector<reduce::Job*> jobs;
  std::vector<std::vector<float>> sums(3, std::vector<float>(kCount));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    Host& host = hosts_[rank];
    SharedMemory* const memory =
        *host.group->register_memory({.address = sums[rank].data(), .size_bytes = kCount * kFloat});
    jobs.push_back(*all_gather(*host.group, gather_on(rank)));
    jobs.push_back(*host.group->start({.from = bytes_of(host.from),
                                       .from_registration = host.from_memory,
                                       .to = bytes_of(sums[rank]),
                                       .to_registration = memory,
                                       .count = kCount}));
    jobs.push_back(*scatter(rank, scatter_on(rank)));
  }
  for (std::size_t left = jobs.size(); left > 0;)
    for (reduce::Job*& job : jobs) {
      if (job == nullptr || !job->test().value()) continue;
      job = nullptr;
      --left;
    }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(hosts_[0].to[0], sums[0][0]);
  EXPECT_EQ(hosts_[1].to[0], sums[0][kPart - kOffset]);
}

TEST_F(CollNetWindowsTest, WrongArguments_AreRefusedByName) {
  connect_and_prepare(2);
  const auto gather = [&](const WindowCall& call) { return all_gather(*hosts_[0].group, call); };
  WindowCall call = gather_on(0);
  call.pieces = 2;
  expect_refused(gather(call), "iallgather with 2 pieces of memory; ztcp takes one");
  call = gather_on(0);
  call.piece_bytes -= 4;
  expect_refused(gather(call), "iallgather of a window of 4800 bytes with 4796 bytes of memory");
  call = gather_on(0);
  call.part_bytes = 0;
  expect_refused(gather(call), "the 2 ranks have 0 bytes each");
  call = gather_on(0);
  call.offset = 2 * kPart * kFloat - call.bytes + 1;
  expect_refused(gather(call),
                 "iallgather of a window of 4800 bytes at 3201: the 2 ranks have 4000");
  call = scatter_on(0);
  call.part_bytes = std::numeric_limits<std::size_t>::max();
  expect_refused(scatter(0, call), "ireducescatter of a window of 4800 bytes at 2000");
  call = scatter_on(0);
  call.offset += 2;
  expect_refused(scatter(0, call),
                 "window of 4800 bytes at 2002, ranks with 4000 bytes each: an "
                 "element has 4");
  // None of them was begun.
  hosts_[0].job = *gather(gather_on(0));
  hosts_[1].job = *all_gather(*hosts_[1].group, gather_on(1));
  finish();
}

TEST_F(CollNetWindowsTest, MemoryOfAnotherMhandle_IsRefused) {
  connect_and_prepare(2);
  constexpr std::string_view kText = "are not in the memory that was registered with their mhandle";
  WindowCall call = gather_on(0);
  call.memory = call.own_memory;
  expect_refused(all_gather(*hosts_[0].group, call), "4800 bytes at");
  call = gather_on(0);
  call.own_memory = nullptr;
  expect_refused(all_gather(*hosts_[0].group, call), kText);
  call = scatter_on(0);
  call.own_memory = nullptr;
  expect_refused(scatter(0, call), kText);
  call = scatter_on(0);
  call.address += kFloat;
  expect_refused(scatter(0, call), kText);
  expect_refused(hosts_[0].group->start({.from = bytes_of(hosts_[0].from),
                                         .from_registration = hosts_[0].from_memory,
                                         .to = bytes_of(hosts_[0].to),
                                         .to_registration = hosts_[0].from_memory,
                                         .count = 1}),
                 "4 bytes at");
}

TEST_F(CollNetWindowsTest, LostPeer_FailsTheRequest) {
  connect_and_prepare(2);
  const auto job = all_gather(*hosts_[0].group, gather_on(0));
  ASSERT_TRUE(job && *job != nullptr);
  transport_->kill({Errc::kPeerClosed, 0, "recv"});
  const auto done = (*job)->test();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kPeerClosed);
  EXPECT_FALSE(scatter(0, scatter_on(0)));
}

TEST_F(CollNetWindowsTest, DifferentWindows_AreRefusedByName) {
  connect_and_prepare(2);
  const auto job = all_gather(*hosts_[0].group, gather_on(0));
  ASSERT_TRUE(job && *job != nullptr);
  WindowCall other = gather_on(1);
  other.offset -= kFloat;
  const auto second = all_gather(*hosts_[1].group, other);
  EXPECT_TRUE(!second || !(*second)->test());
  EXPECT_TRUE(warned(log_, "CollNet: a peer sent"));
}

}  // namespace
}  // namespace ztcp::plugin
