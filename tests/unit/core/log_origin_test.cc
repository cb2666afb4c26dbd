// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/log_origin.h"

#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::log {
namespace {

std::string origin(std::initializer_list<const char*> variables) {
  std::vector<const char*> all(variables);
  all.push_back(nullptr);
  return origin_of("gpu1", all.data());
}

TEST(LogOrigin, NamesExpandAsNcclsDo) {
  EXPECT_EQ(expand_name("/tmp/ztcp-%h-%p.log", "gpu1", 4711), "/tmp/ztcp-gpu1-4711.log");
  EXPECT_EQ(expand_name("100%%", "gpu1", 4711), "100%");
  EXPECT_EQ(expand_name("%%h%x%", "gpu1", 4711), "%h%x%");
  EXPECT_EQ(expand_name("plain.log", "gpu1", 4711), "plain.log");
  EXPECT_EQ(expand_name("", "gpu1", 4711), "");
}

TEST(LogOrigin, RankComesFromTheLaunchersVariables) {
  EXPECT_EQ(origin({}), "gpu1");
  EXPECT_EQ(origin({"HOME=/root", "RANK=3"}), "gpu1 rank 3");
  EXPECT_EQ(origin({"OMPI_COMM_WORLD_RANK=4"}), "gpu1 rank 4");
  EXPECT_EQ(origin({"PMI_RANK=5"}), "gpu1 rank 5");
  EXPECT_EQ(origin({"SLURM_PROCID=6"}), "gpu1 rank 6");
  EXPECT_EQ(origin({"SLURM_PROCID=0", "PMI_RANK=5"}), "gpu1 rank 5")
      << "a shell's, and its child's";
  EXPECT_EQ(origin({"SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=1", "RANK=12"}), "gpu1 rank 12");
  EXPECT_EQ(origin_of("", nullptr), "");
  const char* const ranked[] = {"RANK=0", nullptr};
  EXPECT_EQ(origin_of("", ranked), "rank 0");
}

TEST(LogOrigin, ARankMustBeANumber) {
  EXPECT_EQ(origin({"RANK="}), "gpu1");
  EXPECT_EQ(origin({"RANK=\x1b[31m"}), "gpu1");
  EXPECT_EQ(origin({"RANK=1234567890"}), "gpu1");
  EXPECT_EQ(origin({"RANKS=3", "LOCAL_RANK=2"}), "gpu1");
}

TEST(LogOrigin, PlaceInTheJobComesFromTheLauncher) {
  const char* const none[] = {"HOME=/root", nullptr};
  EXPECT_EQ(launcher_ranks(none).rank, -1);
  EXPECT_EQ(launcher_ranks(none).ranks, 0);
  const char* const torchrun[] = {"RANK=11", "WORLD_SIZE=16", "LOCAL_RANK=3", "SLURM_PROCID=1",
                                  nullptr};
  EXPECT_EQ(launcher_ranks(torchrun).rank, 11);
  EXPECT_EQ(launcher_ranks(torchrun).ranks, 16);
  EXPECT_EQ(launcher_ranks(torchrun).local_rank, 3);
  const char* const slurm[] = {"SLURM_PROCID=5", "SLURM_NTASKS=8", "SLURM_LOCALID=x", nullptr};
  EXPECT_EQ(launcher_ranks(slurm).ranks, 8);
  EXPECT_EQ(launcher_ranks(slurm).local_rank, -1);
}

TEST(LogOrigin, HostNameIsOneWordWithoutADot) {
  const std::string host = short_host_name();
  EXPECT_FALSE(host.empty());
  EXPECT_EQ(host.find_first_of("./ \n"), std::string::npos);
}

}  // namespace
}  // namespace ztcp::log
