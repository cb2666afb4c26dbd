// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/environment.h"

#include <map>

#include <gtest/gtest.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

Lookup variables(std::map<std::string, std::string> set) {
  return [set = std::move(set)](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(PerfEnvironment, ReadsRankAndHostFromMpirun) {
  std::map<std::string, std::string> set = {{"OMPI_COMM_WORLD_RANK", "3"},
                                            {"OMPI_COMM_WORLD_SIZE", "4"},
                                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  auto place = place_in(variables(set));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->ranks, 4);
  EXPECT_EQ(place->local_rank, 3);
  EXPECT_EQ(place->first_host, "127.0.0.1");
  set["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  place = place_in(variables(set));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->first_host, "") << "mpirun does not say where rank 0 is";
}

TEST(PerfEnvironment, ReadsRankAndHostFromMpichAndAfterSlurm) {
  std::map<std::string, std::string> set = {
      {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  auto place = place_in(variables(set));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->ranks, 2);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->first_host, "127.0.0.1");
  set.insert({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", "gpu[1-2]"}});
  place = place_in(variables(set));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->first_host, "gpu1");
}

TEST(PerfEnvironment, SrunNamesItsFirstHost) {
  const auto place = place_in(variables({{"SLURM_PROCID", "1"},
                                         {"SLURM_NTASKS", "2"},
                                         {"SLURM_LOCALID", "0"},
                                         {"SLURM_STEP_NODELIST", "gpu[07-08]"}}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->local_rank, 0);
  EXPECT_EQ(place->first_host, "gpu07");
}

TEST(PerfEnvironment, AShellInAnAllocationIsNotARank) {
  EXPECT_FALSE(place_in(variables({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})));
  EXPECT_FALSE(place_in(variables({})));
}

TEST(PerfEnvironment, Rank0LeavesTheMasterPortToTorchrunsStore) {
  EXPECT_EQ(rendezvous_port(variables({})), kDefaultPort);
  EXPECT_EQ(rendezvous_port(variables({{"MASTER_PORT", "29500"}})), 29500);
  EXPECT_EQ(rendezvous_port(
                variables({{"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})),
            29501);
  EXPECT_EQ(rendezvous_port(
                variables({{"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}})),
            29500);
  EXPECT_EQ(rendezvous_port(
                variables({{"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})),
            65534);
  EXPECT_THROW(rendezvous_port(variables({{"MASTER_PORT", "65536"}})), Failure);
}

TEST(PerfEnvironment, MalformedNumbersAreReportedWithTheirVariable) {
  try {
    place_in(variables({{"RANK", "zero"}, {"WORLD_SIZE", "2"}}));
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "RANK=zero is not a number");
  }
}

TEST(PerfEnvironment, FirstHostOfASlurmList) {
  EXPECT_EQ(first_host("vm"), "vm");
  EXPECT_EQ(first_host("gpu1,gpu2"), "gpu1");
  EXPECT_EQ(first_host("gpu[1-4]"), "gpu1");
  EXPECT_EQ(first_host("gpu[03,07-09],cpu1"), "gpu03");
  EXPECT_EQ(first_host("rack[2-3]n[01-16]"), "rack2n01");
  EXPECT_EQ(first_host("gpu[1-2]-ib,cpu"), "gpu1-ib");
}

}  // namespace
}  // namespace ztcp::perf
