// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All-gather and reduce-scatter of windows, alone and between all-reduces.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "tests/unit/reduce/call.h"
#include "tests/unit/reduce/gradients.h"
#include "tests/unit/reduce/group.h"
#include "transport/reduce/all_reduce.h"
#include "transport/reduce/block_float.h"
#include "transport/reduce/block_kernels.h"
#include "transport/reduce/kernels.h"

namespace ztcp::reduce {
namespace {

using test::Bytes;
using test::Call;
using test::floats_of;
using test::Group;

class WindowsTest : public testing::TestWithParam<std::size_t> {
 protected:
  // A window anywhere in the parts of all hosts.
  Call any_call(const Group& group, Collective collective, std::uint32_t seed,
                bool is_in_place = false) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t end) { return random() % end; };
    constexpr std::size_t kParts[] = {1, 63, 1000, 20'011, 60'001};
    const Window whole{.part = kParts[below(std::size(kParts))]};
    const std::size_t all = group.hosts() * whole.part;
    const Window window{.part = whole.part, .offset = below(all)};
    const auto type = collective == Collective::kAllGather
                          ? ElementType::kUint8
                          : static_cast<ElementType>(below(kTypes));
    Call call(group, collective, type, window, 1 + below(all - window.offset), seed, is_in_place);
    call.reduction = static_cast<Reduction>(below(4));
    return call;
  }

  void expect_right_for_any_window(Collective collective) {
    Group group(GetParam());
    for (std::uint32_t seed = 0; seed < 24; ++seed) {
      Call call = any_call(group, collective, seed, seed % 2 == 1);
      call.start(group);
      call.finish();
      call.expect_right();
    }
  }

  static constexpr std::size_t kTypes = static_cast<std::size_t>(ElementType::kBfloat16) + 1;
};
INSTANTIATE_TEST_SUITE_P(Hosts, WindowsTest, testing::Values(1, 2, 3, 4, 5, 8));

TEST(PartInWindow, CoversEveryElementOnce) {
  const Window window{.part = 10, .offset = 17};
  EXPECT_EQ(part_in_window(window, {0, 20}, 0).count, 0U);
  const Range second = part_in_window(window, {0, 20}, 1);
  EXPECT_EQ(second.begin, 0U);
  EXPECT_EQ(second.count, 3U);
  const Range third = part_in_window(window, {0, 20}, 2);
  EXPECT_EQ(third.begin, 3U);
  EXPECT_EQ(third.count, 10U);
  const Range fourth = part_in_window(window, {0, 20}, 3);
  EXPECT_EQ(fourth.begin, 13U);
  EXPECT_EQ(fourth.count, 7U);
  EXPECT_EQ(part_in_window(window, {0, 20}, 4).count, 0U);
  const Range middle = part_in_window(window, {5, 4}, 2);
  EXPECT_EQ(middle.begin, 5U);
  EXPECT_EQ(middle.count, 4U);
}

TEST_P(WindowsTest, AllGather_GivesEachHostTheWholeWindow) {
  expect_right_for_any_window(Collective::kAllGather);
}

TEST_P(WindowsTest, AllGather_OfMoreThanASegment) {
  Group group(GetParam());
  const std::size_t part = 9'000'001 / GetParam();
  Call call(group, Collective::kAllGather, ElementType::kUint8, {.part = part, .offset = 3},
            GetParam() * part - 5, 1);
  call.start(group);
  call.finish();
  call.expect_right();
}

TEST_P(WindowsTest, ReduceScatter_GivesEachHostItsPartReducedInTheOrderOfTheHosts) {
  expect_right_for_any_window(Collective::kReduceScatter);
}

TEST_P(WindowsTest, ReduceScatter_EveryTypeAndReduction) {
  Group group(GetParam());
  for (std::size_t type = 0; type < kTypes; ++type)
    for (int reduction = 0; reduction <= static_cast<int>(Reduction::kMin); ++reduction) {
      Call call(group, Collective::kReduceScatter, static_cast<ElementType>(type),
                {.part = 1003, .offset = 1}, GetParam() * 1003 - 2,
                static_cast<std::uint32_t>(type));
      call.reduction = static_cast<Reduction>(reduction);
      call.start(group);
      call.finish();
      call.expect_right();
    }
}

// The windows of a long vector, as NCCL makes them: one after the other, several in flight.
TEST_P(WindowsTest, ConsecutiveWindows_CoverTheVector) {
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    Group group(GetParam());
    constexpr std::size_t kPart = 100'003;
    constexpr std::size_t kChunk = 32'768;
    std::deque<Call> calls;
    for (std::size_t at = 0; at < GetParam() * kPart; at += kChunk) {
      if (calls.size() == 8) {
        calls.front().finish();
        calls.front().expect_right();
        calls.pop_front();
      }
      calls.emplace_back(group, collective, ElementType::kUint8,
                         Window{.part = kPart, .offset = at},
                         std::min(kChunk, GetParam() * kPart - at), static_cast<std::uint32_t>(at));
      calls.back().start(group);
    }
    for (Call& call : calls) {
      call.finish();
      call.expect_right();
    }
  }
}

// Each host starts the calls in the same order, but at other times than the others.
TEST_P(WindowsTest, AnyMixtureOfKinds_KeepsTheOrder) {
  for (const Wire wire : {Wire::kAsIs, Wire::kBfloat16})
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      Group group(GetParam(), wire, seed);
      std::mt19937 random(seed);
      std::deque<Call> calls;
      for (std::uint32_t i = 0; i < 12; ++i) {
        const auto collective = static_cast<Collective>(random() % 3);
        if (collective == Collective::kAllReduce)
          calls.emplace_back(group, collective, ElementType::kInt32, Window{},
                             1 + random() % 150'000, i);
        else
          calls.push_back(any_call(group, collective, static_cast<std::uint32_t>(random())));
        calls.back().reduction = Reduction::kMax;  // Exact with any wire.
      }
      std::vector<std::size_t> started(group.hosts());
      for (std::size_t left = group.hosts() * calls.size(); left > 0; --left) {
        std::size_t rank = random() % group.hosts();
        while (started[rank] == calls.size()) rank = (rank + 1) % group.hosts();
        calls[started[rank]++].start_on(group, rank);
      }
      for (auto call = calls.rbegin(); call != calls.rend(); ++call) call->finish();
      for (Call& call : calls) call.expect_right();
    }
}

TEST_P(WindowsTest, EachHostSendsNoMoreThanTheOthersNeed) {
  const std::size_t hosts = GetParam();
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    Group group(hosts);
    Call call(group, collective, ElementType::kUint8, {.part = 50'000}, hosts * 50'000, 1);
    call.start(group);
    call.finish();
    EXPECT_EQ(group.network().sent_bytes(), hosts * (hosts - 1) * 50'000);
  }
}

Call scatter_of_gradients(const Group& group, std::size_t part) {
  Call call(group, Collective::kReduceScatter, ElementType::kFloat32, {.part = part},
            group.hosts() * part, 0);
  call.set_gradients();
  return call;
}

TEST_P(WindowsTest, ReduceScatterWithBfloat16Wire_RoundsEachContributionOnce) {
  Group exact(GetParam());
  Group rounded(GetParam(), Wire::kBfloat16);
  constexpr std::size_t kPart = 50'001;
  Call a = scatter_of_gradients(exact, kPart);
  Call b = scatter_of_gradients(rounded, kPart);
  for (const auto& [call, group] : {std::pair{&a, &exact}, std::pair{&b, &rounded}}) {
    call->start(*group);
    call->finish();
  }
  a.expect_right();
  EXPECT_EQ(rounded.network().sent_bytes() * 2, exact.network().sent_bytes());
  for (std::size_t rank = 0; rank < GetParam(); ++rank) {
    // The sum of the rounded contributions, in their order, as a float.
    std::vector<Bytes> halves(GetParam(), Bytes(kPart * 2));
    std::vector<const std::byte*> sources;
    for (std::size_t host = 0; host < GetParam(); ++host) {
      narrow_to_bfloat16(halves[host].data(), b.from(host).data() + rank * kPart * sizeof(float),
                         {0, kPart});
      sources.push_back(halves[host].data());
    }
    Bytes sum(kPart * sizeof(float));
    sum_bfloat16_as_float(sum.data(), sources, {0, kPart});
    ASSERT_TRUE(b.result(rank) == sum) << rank;
    const std::vector<float> right = floats_of(a.result(rank));
    const std::vector<float> got = floats_of(b.result(rank));
    std::vector<double> magnitudes(kPart);
    for (std::size_t host = 0; host < GetParam(); ++host) {
      const std::vector<float> contribution = floats_of(b.from(host));
      for (std::size_t i = 0; i < kPart; ++i)
        magnitudes[i] += std::abs(contribution[rank * kPart + i]);
    }
    for (std::size_t i = 0; i < kPart; ++i)
      ASSERT_LE(std::abs(got[i] - right[i]), std::ldexp(magnitudes[i], -8) * 1.01) << i;
  }
}

// A window that is one segment, so a part's blocks begin where the window's elements of it do.
TEST_P(WindowsTest, ReduceScatterWithFloat8Wire_RoundsEachContributionOnce) {
  const std::size_t hosts = GetParam();
  Group group(hosts, Wire::kFloat8);
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    const std::size_t part = 40'003 / hosts;
    // Without the first 7 elements of the first part, and the last of the last.
    Call call(group, Collective::kReduceScatter, type, {.part = part, .offset = 7},
              hosts * part - 8, 1);
    call.start(group);
    call.finish();
    for (std::size_t rank = 0; rank < hosts; ++rank) {
      const Range own = call.own(rank);
      std::vector<Bytes> blocks(hosts, Bytes(block_bytes(own.count)));
      std::vector<const std::byte*> sources;
      for (std::size_t host = 0; host < hosts; ++host) {
        narrow_to_blocks(type, blocks[host].data(),
                         call.from(host).data() + own.begin * size_of(type), {0, own.count});
        sources.push_back(blocks[host].data());
      }
      Bytes sum(own.count * size_of(type));
      sum_of_blocks(type, sum.data(), sources, {0, own.count});
      ASSERT_TRUE(call.result(rank) == sum) << rank;
    }
  }
}

TEST_P(WindowsTest, ReduceScatterOfManySegmentsWithFloat8Wire_BoundsTheError) {
  Group group(GetParam(), Wire::kFloat8);
  const std::size_t part = 300'007 / GetParam();
  Call call = scatter_of_gradients(group, part);
  call.start(group);
  call.finish();
  for (std::size_t rank = 0; rank < GetParam(); ++rank) {
    const std::vector<float> right = floats_of(call.expected(rank));
    const std::vector<float> got = floats_of(call.result(rank));
    std::vector<double> bounds(part, 1e-6);
    for (std::size_t host = 0; host < GetParam(); ++host) {
      const std::vector<float> values = floats_of(call.from(host));
      for (std::size_t i = 0; i < part; ++i)  // No value is above 8.
        bounds[i] += std::max(std::abs(values[rank * part + i]) / 16.0, std::ldexp(8, -17));
    }
    for (std::size_t i = 0; i < part; ++i) ASSERT_LE(std::abs(got[i] - right[i]), bounds[i]) << i;
  }
}

TEST(WindowsRounding, SmallWindowsAndOtherReductions_StayExact) {
  Group group(3, Wire::kBfloat16);
  const std::size_t part = AllReduce::kRoundedBytes / sizeof(float) / 3;
  Call small = scatter_of_gradients(group, part);
  Call largest = scatter_of_gradients(group, 50'000);
  largest.reduction = Reduction::kMax;
  for (Call* const call : {&small, &largest}) {
    call->start(group);
    call->finish();
    call->expect_right();
  }
}

TEST(WindowsRounding, SameRunTwice_GivesTheSameBits) {
  std::vector<Bytes> results;
  for (const std::uint32_t seed : {1, 2}) {
    Group group(4, Wire::kBfloat16, seed);
    Call call = scatter_of_gradients(group, 40'003);
    call.start(group);
    call.finish();
    results.push_back(call.result(3));
  }
  EXPECT_TRUE(results[0] == results[1]);
}

TEST(WindowsEnds, DifferentWindows_FailBothHosts) {
  Group group(2);
  Bytes data(4096);
  const auto start = [&](std::size_t rank, std::size_t part) {
    return *group.member(rank).start({.from = data.data(),
                                      .to = data.data() + 2048,
                                      .count = 16,
                                      .type = ElementType::kUint8,
                                      .collective = Collective::kAllGather,
                                      .window = {.part = part}});
  };
  Job* const jobs[] = {start(0, 8), start(1, 9)};
  for (int i = 0; i < 1000; ++i)
    for (Job* const job : jobs)
      if (const auto done = job->test(); !done) {
        EXPECT_EQ(done.error().code, Errc::kProtocol);
        return;
      }
  FAIL() << "no host noticed";
}

TEST(WindowsEnds, LostPeer_FailsEveryCallFromThenOn) {
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    Group group(3);
    Call call(group, collective, ElementType::kUint8, {.part = 1000}, 3000, 1);
    call.start(group);
    group.network().break_down();
    Result<bool> done = false;
    for (int i = 0; i < 100 && done; ++i) done = call.job(0)->test();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::kPeerClosed);
  }
}

TEST(WindowsSteadyState, AllocatesNothing) {
  Group group(3, Wire::kBfloat16);
  Call scatter = scatter_of_gradients(group, 40'000);
  Call gather(group, Collective::kAllGather, ElementType::kUint8, {.part = 40'000}, 120'000, 1);
  AllocationGuard guard;
  for (Call* const call : {&scatter, &gather}) {
    call->start(group);
    call->finish();
  }
  EXPECT_EQ(guard.count(), 0U);
}

}  // namespace
}  // namespace ztcp::reduce
