// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::perf::job {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two hosts with two ranks each, all over kernel sockets.
std::vector<RankFacts> job() {
  std::vector<RankFacts> ranks(4);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankFacts& rank = ranks[i];
    rank.host = rank.machine = i < 2 ? "gpu1" : "gpu2";
    rank.version = "0.1.0";
    rank.variables = "NCCL_NET_PLUGIN=/opt/libnccl-net.so, NCCL_NET=ztcp";
    rank.library = "/opt/libnccl-net.so";
    rank.digest = "5d8b328e538f";
    rank.table = "ncclNetPlugin_v12";
    rank.has_started = true;
    rank.transport = "kernel sockets";
    rank.reason = "ZTCP_TRANSPORT=sockets";
    rank.nics = {"eth0"};
    rank.cpus = 16;
    rank.plain_reason = "eth0, by NCCL_SOCKET_IFNAME=eth0";
  }
  return ranks;
}

Measured measured(double ours, double plain) {
  return {.size_bytes = 32U << 20U,
          .ours = {ours, ours * 1.01, ours * 0.99},
          .plain = {plain, plain * 0.99, plain * 1.01}};
}

TEST(JobVerdict, SaysHowMuchFasterAndThatNothingIsToChange) {
  EXPECT_EQ(judge(job(), measured(3, 1.2)).sentence,
            "ztcp is 2.5 times as fast as plain kernel sockets; change nothing");
  EXPECT_EQ(judge(job(), measured(1.3, 1)).sentence,
            "ztcp is 30 % faster than plain kernel sockets; change nothing");
  EXPECT_TRUE(judge(job(), measured(1.3, 1)).is_good);
  EXPECT_THAT(judge(job(), measured(1, 1.02)).sentence, HasSubstr("ztcp is as fast as plain"));
}

TEST(JobVerdict, ASlowJobWithoutSpareCpusIsToldToGetSome) {
  auto ranks = job();
  for (RankFacts& rank : ranks) rank.cpus = 2;
  EXPECT_EQ(judge(ranks, measured(1, 2)).sentence,
            "ztcp is 50 % slower than plain kernel sockets; give each rank at least 2 CPUs "
            "(--cpus-per-task); it has one");
}

TEST(JobVerdict, ASlowJobOverUserspaceTcpIsToldToCompare) {
  auto ranks = job();
  ranks[2].transport = "userspace TCP";
  EXPECT_THAT(judge(ranks, measured(1, 2)).sentence, HasSubstr("ZTCP_TRANSPORT=sockets"));
}

TEST(JobVerdict, OverlappingTurnsAreNoClearDifference) {
  const Measured uneven{.size_bytes = 1 << 20, .ours = {1, 3, 3}, .plain = {2, 2, 2.9}};
  EXPECT_THAT(judge(job(), uneven).sentence, HasSubstr("no clear difference"));
}

TEST(JobVerdict, RanksOfOneHostMeasureNoNetwork) {
  auto ranks = job();
  for (RankFacts& rank : ranks) rank.machine = "gpu1";
  EXPECT_THAT(judge(ranks, measured(2, 1)).sentence, HasSubstr("between ranks of one host"));
}

TEST(JobVerdict, ARankWhoseNcclWillNotUseZtcpIsNamedFirst) {
  auto ranks = job();
  ranks[2].problem = ranks[3].problem = "NCCL_NET=IB chooses another network";
  ranks[2].mend = ranks[3].mend = "unset NCCL_NET";
  const Verdict verdict = judge(ranks, measured(2, 1));
  EXPECT_FALSE(verdict.is_good);
  EXPECT_EQ(verdict.sentence,
            "NCCL of gpu2 (ranks 2-3) will not use ztcp: NCCL_NET=IB chooses another network; "
            "unset NCCL_NET");
  EXPECT_THAT(render_ranks(ranks), HasSubstr("NCCL will NOT use ztcp"));
}

TEST(JobVerdict, DifferentFilesAreAFault) {
  auto ranks = job();
  ranks[3].digest = "000000000000";
  const Verdict verdict = judge(ranks, measured(2, 1));
  EXPECT_FALSE(verdict.is_good);
  EXPECT_THAT(verdict.sentence, HasSubstr("0.1.0 000000000000 on gpu2 (rank 3)"));
}

TEST(JobVerdict, AHealthyJobHasFewLines) {
  const std::string text = render_ranks(job()) + render_measured(job(), {0, 2}, measured(3, 1.2));
  EXPECT_EQ(text,
            "ztcp_perf check-job 0.1.0: 4 ranks on 2 hosts\n"
            "gpu1, gpu2 (ranks 0-3): kernel sockets on eth0: ZTCP_TRANSPORT=sockets\n"
            "all ranks: NCCL_NET_PLUGIN=/opt/libnccl-net.so, NCCL_NET=ztcp; NCCL will use "
            "/opt/libnccl-net.so, ncclNetPlugin_v12 (5d8b328e538f)\n"
            "ring all-reduce of 32 MiB over ranks 0, 2, busbw, median of 3 turns:\n"
            "  ztcp              3.000 GB/s (2.970 to 3.030)\n"
            "  plain sockets     1.200 GB/s (1.188 to 1.212), eth0, by NCCL_SOCKET_IFNAME=eth0\n");
}

TEST(JobVerdict, ManyHostsThatAreAlikeShareALine) {
  std::vector<RankFacts> ranks;
  for (int host = 0; host < 64; ++host) {
    ranks.push_back(job().front());
    ranks.back().host = ranks.back().machine = fmt::format("gpu{}", host);
  }
  EXPECT_THAT(render_ranks(ranks), HasSubstr("gpu0, gpu1, gpu2, gpu3 and 60 more (ranks 0-63):"));
  EXPECT_THAT(render_ranks(ranks), Not(HasSubstr("gpu4")));
}

TEST(JobVerdict, TheDocumentHasTheSentenceAndEveryTurn) {
  const auto result = measured(3, 1.5);
  const auto json = document_of(job(), {0, 2}, result, judge(job(), result));
  EXPECT_EQ(json.at("good"), true);
  EXPECT_EQ(json.at("ring").at("ratio"), 2);
  EXPECT_EQ(json.at("ring").at("ztcp_busbw_gb_per_s").at("turns").size(), 3U);
  EXPECT_EQ(json.at("ranks").size(), 4U);
}

}  // namespace
}  // namespace ztcp::perf::job
