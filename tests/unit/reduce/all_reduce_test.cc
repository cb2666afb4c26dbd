// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/all_reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "tests/unit/reduce/gradients.h"
#include "tests/unit/reduce/group.h"
#include "transport/reduce/block_float.h"
#include "transport/reduce/block_kernels.h"
#include "transport/reduce/kernels.h"
#include "transport/reduce/narrow_float.h"

namespace ztcp::reduce {
namespace {

using test::Bytes;
using test::floats_of;
using test::Group;

// One vector on every host.
struct Work {
  ElementType type;
  Reduction reduction;
  std::size_t count;
  bool in_place = false;
  std::vector<Bytes> from;
  std::vector<Bytes> to;
  std::vector<Job*> jobs;

  Work(const Group& group, ElementType of, Reduction by, std::size_t elements, std::uint32_t seed)
      : type(of), reduction(by), count(elements) {
    std::mt19937 random(seed);
    for (std::size_t rank = 0; rank < group.hosts(); ++rank) {
      Bytes one(count * size_of(type));
      for (std::byte& byte : one) byte = static_cast<std::byte>(random());
      // Floats below 2: a NaN's bits are not promised.
      for (std::size_t top = size_of(type) - 1; top < one.size(); top += size_of(type))
        one[top] &= std::byte{0xbf};
      from.push_back(std::move(one));
    }
    to.resize(group.hosts(), Bytes(count * size_of(type), std::byte{0x5a}));
    jobs.resize(group.hosts());
  }

  Bytes expected() const {
    std::vector<const std::byte*> sources;
    for (const Bytes& one : from) sources.push_back(one.data());
    Bytes out(count * size_of(type));
    combine(type, reduction, out.data(), sources, {0, count});
    return out;
  }
  void start(Group& group) {
    if (in_place) to = from;
    for (std::size_t rank = 0; rank < group.hosts(); ++rank) {
      const std::byte* const source = in_place ? to[rank].data() : from[rank].data();
      const auto job = group.member(rank).start({.from = source,
                                                 .to = to[rank].data(),
                                                 .count = count,
                                                 .type = type,
                                                 .reduction = reduction});
      ASSERT_TRUE(job);
      ASSERT_NE(*job, nullptr);
      jobs[rank] = *job;
    }
  }
};

void finish(Work& work) { test::finish_all(work.jobs); }

void expect_right(const Work& work) {
  const Bytes expected = work.expected();
  for (const Bytes& got : work.to) ASSERT_TRUE(got == expected) << "count " << work.count;
}

class AllReduceTest : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Hosts, AllReduceTest, testing::Values(1, 2, 3, 4, 5, 9));

TEST_P(AllReduceTest, EveryTypeAndReduction_EqualsTheReductionInRankOrder) {
  Group group(GetParam());
  for (int type = 0; type <= static_cast<int>(ElementType::kBfloat16); ++type)
    for (int reduction = 0; reduction <= static_cast<int>(Reduction::kMin); ++reduction)
      for (const std::size_t count : {1, 1003, 20'001}) {
        Work work(group, static_cast<ElementType>(type), static_cast<Reduction>(reduction), count,
                  static_cast<std::uint32_t>(count));
        work.start(group);
        finish(work);
        expect_right(work);
      }
}

TEST_P(AllReduceTest, OddSizesAcrossSegments_AreReducedWholly) {
  Group group(GetParam());
  for (const std::size_t count : {0, 2, 63, 64, 65, 127, 16'384, 65'536, 65'537, 700'003}) {
    Work work(group, ElementType::kInt32, Reduction::kSum, count, 3);
    work.start(group);
    finish(work);
    expect_right(work);
  }
}

TEST_P(AllReduceTest, EightRequestsInFlight_FinishInAnyOrderOfTests) {
  Group group(GetParam(), Wire::kAsIs, 7);
  std::vector<Work> all;
  for (std::size_t i = 0; i < 8; ++i)
    all.emplace_back(group, ElementType::kUint64, Reduction::kSum, i % 2 == 0 ? 70'001 : 5,
                     static_cast<std::uint32_t>(i));
  for (Work& one : all) one.start(group);
  for (auto one = all.rbegin(); one != all.rend(); ++one) finish(*one);
  for (const Work& one : all) expect_right(one);
}

TEST_P(AllReduceTest, InPlace_GivesTheSame) {
  Group group(GetParam());
  for (const std::size_t count : {7, 300'007}) {
    Work work(group, ElementType::kUint32, Reduction::kMax, count, 5);
    work.in_place = true;
    work.start(group);
    finish(work);
    expect_right(work);
  }
}

TEST_P(AllReduceTest, LargeVector_SendsTwiceTheVectorLessAPart) {
  Group group(GetParam());
  Work work(group, ElementType::kFloat32, Reduction::kSum, 64 * 60 * 100, 5);
  work.start(group);
  finish(work);
  const std::size_t vector = work.count * 4;
  EXPECT_NEAR(static_cast<double>(group.network().sent_bytes()) / static_cast<double>(vector),
              2.0 * static_cast<double>(GetParam() - 1), 0.05);
}

Work work_of_gradients(const Group& group, std::size_t count) {
  Work work(group, ElementType::kFloat32, Reduction::kSum, count, 0);
  for (std::size_t rank = 0; rank < group.hosts(); ++rank)
    std::memcpy(work.from[rank].data(), test::gradients(count, rank).data(), count * sizeof(float));
  return work;
}

TEST_P(AllReduceTest, Bfloat16Wire_HalvesTheBytesAndBoundsTheError) {
  Group exact(GetParam());
  Group rounded(GetParam(), Wire::kBfloat16);
  Work a = work_of_gradients(exact, 150'001);
  Work b = work_of_gradients(rounded, 150'001);
  a.start(exact);
  finish(a);
  b.start(rounded);
  finish(b);
  EXPECT_EQ(rounded.network().sent_bytes() * 2, exact.network().sent_bytes());
  const std::vector<float> right = floats_of(a.to[0]);
  const std::vector<float> got = floats_of(b.to[0]);
  for (const Bytes& other : b.to) ASSERT_TRUE(other == b.to[0]) << "hosts differ";
  // A rounding errs by 2^-8 at most. Between two hosts only contributions are rounded.
  const double roundings = GetParam() <= 2 ? 1 : 2;
  for (std::size_t i = 0; i < right.size(); ++i) {
    double magnitude = 0;
    for (const Bytes& one : b.from) {
      float value = 0;
      std::memcpy(&value, one.data() + i * sizeof value, sizeof value);
      magnitude += std::abs(value);
    }
    ASSERT_LE(std::abs(got[i] - right[i]), std::ldexp(roundings * magnitude, -8) * 1.01) << i;
  }
}

// Vectors of normally distributed floats of any width.
Work work_of_gradients(const Group& group, ElementType type, std::size_t count) {
  Work work(group, type, Reduction::kSum, count, 0);
  for (std::size_t rank = 0; rank < group.hosts(); ++rank) {
    const std::vector<float> values = test::gradients(count, rank);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t narrow =
          type == ElementType::kFloat16 ? narrow_float16(values[i]) : narrow_bfloat16(values[i]);
      if (type == ElementType::kFloat32)
        std::memcpy(&work.from[rank][i * sizeof(float)], &values[i], sizeof(float));
      else
        std::memcpy(&work.from[rank][i * sizeof narrow], &narrow, sizeof narrow);
    }
  }
  return work;
}

// The sum of the contributions in blocks, rounded once more among more than two hosts. Segments and
// parts begin at whole blocks, so they do not matter.
Bytes expected_in_blocks(const Work& work) {
  const Range all{0, work.count};
  std::vector<Bytes> blocks(work.from.size(), Bytes(block_bytes(work.count)));
  std::vector<const std::byte*> sources;
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    narrow_to_blocks(work.type, blocks[rank].data(), work.from[rank].data(), all);
    sources.push_back(blocks[rank].data());
  }
  Bytes sum(block_bytes(work.count));
  if (sources.size() > 2) {
    sum_blocks(sum.data(), sources, all);
    sources = {sum.data()};
  }
  Bytes out(work.count * size_of(work.type));
  sum_of_blocks(work.type, out.data(), sources, all);
  return out;
}

TEST_P(AllReduceTest, Float8Wire_RoundsEachContributionAndASumThatIsSent) {
  Group group(GetParam(), Wire::kFloat8);
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16})
    for (const std::size_t count : {32'801, 150'001, 300'007}) {
      Work work = work_of_gradients(group, type, count);
      work.in_place = count == 150'001;
      work.start(group);
      finish(work);
      const Bytes expected = expected_in_blocks(work);
      for (const Bytes& got : work.to)
        ASSERT_TRUE(got == expected) << "type " << static_cast<int>(type) << " count " << count;
    }
}

TEST_P(AllReduceTest, Float8Wire_QuartersTheBytesAndBoundsTheError) {
  Group exact(GetParam());
  Group rounded(GetParam(), Wire::kFloat8);
  constexpr std::size_t kCount = 150'001;
  Work a = work_of_gradients(exact, kCount);
  Work b = work_of_gradients(rounded, kCount);
  for (const auto& [work, group] : {std::pair{&a, &exact}, std::pair{&b, &rounded}}) {
    work->start(*group);
    finish(*work);
  }
  EXPECT_LE(rounded.network().sent_bytes() * 387, exact.network().sent_bytes() * 100);
  const std::vector<float> right = floats_of(a.to[0]);
  const std::vector<float> got = floats_of(b.to[0]);
  // docs/collnet.md; the largest values of the blocks are not above those of the vectors.
  std::vector<double> bounds(kCount);
  double largest_sum = 0;
  for (const Bytes& one : b.from) {
    const std::vector<float> values = floats_of(one);
    double largest = 0;
    for (const float value : values) largest = std::max<double>(largest, std::abs(value));
    for (std::size_t i = 0; i < kCount; ++i)
      bounds[i] += std::max<double>(std::abs(values[i]) / 16, std::ldexp(largest, -17));
    largest_sum += largest * 17 / 16;
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const double sum = std::abs(right[i]) + bounds[i];  // At most, before it is rounded.
    const double sent = GetParam() <= 2 ? 0 : std::max(sum / 16, std::ldexp(largest_sum, -17));
    ASSERT_LE(std::abs(got[i] - right[i]), bounds[i] + sent + 1e-6) << i;
  }
}

class RoundingTest : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, RoundingTest, testing::Values(Wire::kBfloat16, Wire::kFloat8));

TEST_P(RoundingTest, SmallSumsAndOtherReductions_StayExact) {
  Group group(3, GetParam());
  Work small = work_of_gradients(group, AllReduce::kRoundedBytes / sizeof(float) - 1);
  small.start(group);
  finish(small);
  expect_right(small);
  Work largest = work_of_gradients(group, 100'000);
  largest.reduction = Reduction::kMax;
  largest.start(group);
  finish(largest);
  expect_right(largest);
  Work whole_numbers(group, ElementType::kInt32, Reduction::kSum, 100'000, 1);
  whole_numbers.start(group);
  finish(whole_numbers);
  expect_right(whole_numbers);
  Work wide(group, ElementType::kFloat64, Reduction::kSum, 100'000, 1);
  wide.start(group);
  finish(wide);
  expect_right(wide);
}

TEST(AllReduceRounding, Floats16_AreExactWithBfloat16Wire) {
  Group group(3, Wire::kBfloat16);
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
    Work work = work_of_gradients(group, type, 100'000);
    work.start(group);
    finish(work);
    expect_right(work);
  }
}

TEST_P(RoundingTest, SameRunTwice_GivesTheSameBits) {
  std::vector<Bytes> results;
  for (const std::uint32_t seed : {1, 2}) {
    Group group(4, GetParam(), seed);
    Work work = work_of_gradients(group, 123'457);
    work.start(group);
    finish(work);
    results.push_back(work.to[0]);
  }
  EXPECT_TRUE(results[0] == results[1]);
}

TEST(AllReduceEnds, TableFull_StartsNothing) {
  Group group(2);
  Bytes data(64);
  for (std::size_t i = 0; i < AllReduce::kMaxJobs; ++i)
    ASSERT_NE(*group.member(0).start({.from = data.data(), .to = data.data(), .count = 4}),
              nullptr);
  EXPECT_EQ(*group.member(0).start({.from = data.data(), .to = data.data(), .count = 4}), nullptr);
}

TEST(AllReduceEnds, DifferentSizes_FailBothHosts) {
  Group group(2);
  Bytes data(4096);
  std::array<Job*, 2> jobs{
      *group.member(0).start({.from = data.data(), .to = data.data(), .count = 8}),
      *group.member(1).start({.from = data.data(), .to = data.data(), .count = 9})};
  for (int i = 0; i < 1000; ++i)
    for (Job* job : jobs)
      if (const auto done = job->test(); !done) {
        EXPECT_EQ(done.error().code, Errc::kProtocol);
        return;
      }
  FAIL() << "nobody noticed";
}

TEST(AllReduceEnds, LostPeer_FailsEveryCallFromThenOn) {
  Group group(3);
  Work work(group, ElementType::kFloat32, Reduction::kSum, 1000, 1);
  work.start(group);
  group.network().break_down();
  Result<bool> done = false;
  for (int i = 0; i < 100 && done; ++i) done = work.jobs[0]->test();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kPeerClosed);
  EXPECT_FALSE(group.member(0).start({.from = nullptr, .to = nullptr, .count = 4}));
}

TEST_P(RoundingTest, SteadyState_AllocatesNothing) {
  Group group(3, GetParam());
  Work work = work_of_gradients(group, 100'000);
  AllocationGuard guard;
  work.start(group);
  finish(work);
  EXPECT_EQ(guard.count(), 0U);
}

}  // namespace
}  // namespace ztcp::reduce
