// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::job {
namespace {

using testing::ElementsAre;

TEST(JobFacts, SurviveTheWayToRank0) {
  RankFacts facts;
  facts.host = "gpu1";
  facts.problem = "no plugin";
  facts.nics = {"ztcp0", "ztcp1"};
  facts.has_started = true;
  facts.cpus = 8;
  EXPECT_EQ(to_json(facts_of(to_json(facts).dump())), to_json(facts));
}

TEST(JobFacts, MalformedFactsAreRefused) {
  EXPECT_THROW(facts_of("{\"host\": 1}"), Failure);
  EXPECT_THROW(facts_of("nonsense"), Failure);
}

TEST(JobFacts, TransportAndReasonComeFromThePluginsLines) {
  RankFacts facts;
  facts.lines = {
      "0.1.0 eth0: kernel sockets, eth0 10.0.0.1, PCI 0000:17:00.0, MTU 9000; GPUDirect RDMA off; "
      "chosen by NCCL_SOCKET_IFNAME=eth; in NCCL's threads",
      "eth0: kernel sockets on eth0, listening at 10.0.0.1:4000",
      "0.1.0 ib0: RDMA verbs, mlx5_0 port 1; chosen by NCCL_IB_HCA=mlx5; in NCCL's threads"};
  read_lines(facts, "sockets", "");
  EXPECT_EQ(facts.transport, "kernel sockets and RDMA verbs");
  EXPECT_EQ(facts.reason, "ZTCP_TRANSPORT=sockets; NCCL_SOCKET_IFNAME=eth; NCCL_IB_HCA=mlx5");
  EXPECT_THAT(facts.nics, ElementsAre("eth0", "ib0"));
}

TEST(JobFacts, TheConfigIsTheReasonWhereNoVariableIs) {
  RankFacts facts;
  facts.lines = {"0.1.0 ztcp0: userspace TCP, 0000:18:00.0, 25000 Mb/s"};
  read_lines(facts, "", "/etc/ztcp.conf");
  EXPECT_EQ(facts.transport, "userspace TCP");
  EXPECT_EQ(facts.reason, "/etc/ztcp.conf");
}

TEST(JobFacts, RanksOfOneMachineAndNamespaceAreOneHost) {
  std::vector<RankFacts> ranks(4);
  ranks[0].machine = ranks[2].machine = "a";
  ranks[1].machine = ranks[3].machine = "b";
  EXPECT_THAT(ranks_by_host(ranks), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(JobFacts, NeighbouringRanksAreJoined) {
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
}

}  // namespace
}  // namespace ztcp::perf::job
