// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/rendezvous_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::probe {
namespace {

class ProbeRendezvousFile : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ztcp-rendezvous.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/place";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(ProbeRendezvousFile, IsReadBackAndEndsWithItsObject) {
  EXPECT_FALSE(read_rendezvous_file(path_));
  {
    const RendezvousFile file(path_, {"gpu01", 4711, "secret"});
    struct stat facts {};
    ASSERT_EQ(stat(path_.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    const auto place = read_rendezvous_file(path_);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->host, "gpu01");
    EXPECT_EQ(place->port, 4711);
    EXPECT_EQ(place->secret, "secret");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ProbeRendezvousFile, AnEarlierRunsFileIsReplaced) {
  std::ofstream(path_) << "{\"host\": \"gpu09\", \"port\": 1, \"secret\": \"old\"}\n";
  const RendezvousFile file(path_, {"gpu01", 4711, "secret"});
  EXPECT_EQ(read_rendezvous_file(path_)->host, "gpu01");
}

TEST_F(ProbeRendezvousFile, OneThatOthersMayUseIsRefused) {
  const RendezvousFile file(path_, {"gpu01", 4711, "secret"});
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_THROW(read_rendezvous_file(path_), Failure);
}

TEST_F(ProbeRendezvousFile, AnUnfinishedOneIsNoneYet) {
  std::ofstream(path_) << "{\"host\": ";
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  EXPECT_FALSE(read_rendezvous_file(path_));
}

TEST_F(ProbeRendezvousFile, AFolderThatDoesNotExistIsNamed) {
  EXPECT_THROW(RendezvousFile(folder_ + "/none/place", {"gpu01", 1, "s"}), Failure);
}

}  // namespace
}  // namespace ztcp::perf::probe
