// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/local/local.h"

#include <filesystem>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "config/mesh.h"
#include "tests/support/tree.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

config::LoadResult load(const std::string& path) {
  config::LiveMachine machine;
  return config::load(machine, path);
}

TEST(Local, WritesAFabricThatLoadsAndFitsThisMachine) {
  const ztcp::test::Tree tree;
  LocalRequest request;
  request.ranks = 4;
  request.topology = LocalTopology::kSwitch;
  request.folder = tree.path("new/folder");
  const auto fabric = plan_local(request);
  ASSERT_TRUE(fabric);
  ASSERT_TRUE(write_local(*fabric));

  const auto loaded = load(tree.path("new/folder/ztcp.conf"));
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  ASSERT_EQ(loaded.fabric->nics.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const config::Nic& nic = loaded.fabric->nics[i];
    EXPECT_EQ(nic.name, "ztcp" + std::to_string(i));
    EXPECT_EQ(to_string(nic.address), "10.99.0." + std::to_string(i + 1) + "/24");
    EXPECT_THAT(to_string(nic.mac), StartsWith("02:5a:"));
    EXPECT_EQ(nic.mtu_bytes, 9000);
    EXPECT_EQ(nic.driver, config::NicDriver::kMemif);
    EXPECT_EQ(nic.memif_role, config::MemifRole::kClient);
    EXPECT_EQ(nic.memif_socket, tree.path("new/folder/port" + std::to_string(i) + ".sock"));
  }
  EXPECT_EQ(loaded.fabric->run_dir, tree.path("new/folder/run"));
  config::LiveMachine machine;
  EXPECT_TRUE(config::check_host(*loaded.fabric, machine, {}).empty());
}

TEST(Local, EachPairOfMeshQueuesHasASocketWithOneServer) {
  const ztcp::test::Tree tree;
  LocalRequest request;
  request.ranks = 4;
  request.cpus = 4 * (2 + 2);
  request.folder = tree.root();
  request.mtu_bytes = 1500;
  const auto fabric = plan_local(request);
  ASSERT_TRUE(fabric);
  ASSERT_TRUE(write_local(*fabric));
  const auto loaded = load(tree.path("ztcp.conf"));
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  std::map<std::string, int> servers, ends;
  for (const config::Nic& nic : loaded.fabric->nics) {
    EXPECT_EQ(nic.memif_role, config::MemifRole::kMesh);
    EXPECT_EQ(nic.mtu_bytes, 1500);
    const auto ports = config::mesh_peers(*loaded.fabric, nic);
    EXPECT_EQ(ports.size(), 3U);
    for (const config::MeshPeer& peer : ports) {
      ASSERT_EQ(peer.sockets.size(), 2U);
      for (const std::string& socket : peer.sockets) {
        EXPECT_THAT(socket, StartsWith(tree.path("mesh+ztcp")));
        ++ends[socket];
        servers[socket] += peer.serves ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(ends.size(), 12U);
  for (const auto& [socket, count] : ends) EXPECT_EQ(count, 2) << socket;
  for (const auto& [socket, count] : servers) EXPECT_EQ(count, 1) << socket;
  config::LiveMachine machine;
  EXPECT_TRUE(config::check_host(*loaded.fabric, machine, {}).empty());
}

TEST(Local, QueuesFollowTheCpusOfARankBeyondTwo) {
  const auto queues = [](unsigned ranks, unsigned cpus) {
    LocalRequest request;
    request.ranks = ranks;
    request.cpus = cpus;
    return plan_local(request)->nics.front().queues;
  };
  EXPECT_EQ(queues(2, 1), 1U);
  EXPECT_EQ(queues(2, 7), 1U);
  EXPECT_EQ(queues(2, 8), 2U);
  EXPECT_EQ(queues(2, 12), 4U);
  EXPECT_EQ(queues(2, 16), 6U);
  EXPECT_EQ(queues(2, 32), 6U) << "no more are chosen";
  EXPECT_EQ(queues(4, 16), 2U);
  EXPECT_EQ(queues(4, 64), 4U) << "nor here";
  EXPECT_EQ(queues(1, 32), 1U) << "nobody to talk to";
  EXPECT_EQ(queues(16, 256), 4U);
}

TEST(Local, MayBeRepeatedWithAnotherSize) {
  const ztcp::test::Tree tree;
  LocalRequest request;
  request.folder = tree.root();
  ASSERT_TRUE(write_local(*plan_local(request)));
  request.ranks = 8;
  ASSERT_TRUE(write_local(*plan_local(request)));
  EXPECT_EQ(load(tree.path("ztcp.conf")).fabric->nics.size(), 8U);
}

TEST(Local, DoesNotOverwriteTheConfigOfARealHost) {
  ztcp::test::Tree tree;
  const std::string text =
      "schema = 1\n[hugepages]\npage_kib = 2048\n[[nic]]\nname = \"ztcp0\"\ndriver = \"pci\"\n"
      "pci = \"0000:00:05.0\"\naddress = \"10.0.0.5/24\"\nmac = \"0a:00:00:00:00:05\"\n";
  tree.add_file("ztcp.conf", text);
  LocalRequest request;
  request.folder = tree.root();
  const auto written = write_local(*plan_local(request));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what, HasSubstr("not a local fabric"));
  EXPECT_FALSE(std::filesystem::exists(tree.path("run")));
  EXPECT_EQ(ztcp::test::Tree::read(tree.path("ztcp.conf")), text);
}

struct Refusal {
  const char* name;
  LocalRequest request;
  const char* where;
  const char* what;
};
class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesTheOptionAndTheValue) {
  const auto fabric = plan_local(GetParam().request);
  ASSERT_FALSE(fabric);
  EXPECT_THAT(fabric.error().where, StartsWith(GetParam().where));
  EXPECT_THAT(fabric.error().what, HasSubstr(GetParam().what));
  EXPECT_FALSE(fabric.error().mend.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Request, Refused,
    testing::Values(
        Refusal{"no_rank", {.ranks = 0}, "--local", "0 ranks, wanted 1..32"},
        Refusal{"too_many_ranks", {.ranks = 33}, "--local", "33 ranks, wanted 1..32"},
        Refusal{"large_mesh", {.ranks = 17}, "--topology mesh", "17 ranks, a mesh has at most 16"},
        Refusal{"small_mtu", {.mtu_bytes = 100}, "--mtu", "100 is outside 576..65280"},
        Refusal{"large_mtu", {.mtu_bytes = 65281}, "--mtu", "65281 is outside 576..65280"},
        Refusal{"blank_in_folder",
                {.folder = "/tmp/my fabric"},
                "--dir",
                "\"/tmp/my fabric\" has a blank in its path"},
        Refusal{"comma_in_folder", {.folder = "/tmp/a,b"}, "--dir", "has one of , ="},
        Refusal{"equals_in_folder", {.folder = "/tmp/a=b"}, "--dir", "has one of , ="},
        Refusal{"list_in_folder", {.folder = "/tmp/a[b]"}, "--dir", "has one of , ="},
        Refusal{"no_folder", {.folder = ""}, "--dir", "\"\" is not a folder"},
        Refusal{"long_folder",
                {.folder = "/" + std::string(100, 'x')},
                "--dir",
                "have 120 characters, the kernel takes 107"}),
    [](const auto& row) { return row.param.name; });

TEST(Local, AFolderThatCannotBeCreatedIsReported) {
  ztcp::test::Tree tree;
  tree.add_file("file", "");
  LocalRequest request;
  request.folder = tree.path("file/folder");
  const auto written = write_local(*plan_local(request));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().where, tree.path("file/folder"));
  EXPECT_THAT(written.error().what, HasSubstr("Not a directory"));
}

// A user that can change the folder can redirect root's writes.
TEST(Local, AFolderThatOthersMayChangeIsRefused) {
  ztcp::test::Tree tree;
  tree.add_folder("open");
  ASSERT_EQ(::chmod(tree.path("open").c_str(), 01777), 0);
  LocalRequest request;
  request.folder = tree.path("open");
  auto written = write_local(*plan_local(request));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what, HasSubstr("is writable by every user"));
  EXPECT_TRUE(std::filesystem::is_empty(tree.path("open")));
  if (::geteuid() != 0) GTEST_SKIP() << "giving a folder away needs root";
  ASSERT_EQ(::chmod(tree.path("open").c_str(), 0755), 0);
  ASSERT_EQ(::chown(tree.path("open").c_str(), 65534, 65534), 0);
  written = write_local(*plan_local(request));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what, HasSubstr("belongs to user 65534"));
  EXPECT_TRUE(std::filesystem::is_empty(tree.path("open")));
}

TEST(Local, ALinkOfAnotherUserIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving a link away needs root";
  ztcp::test::Tree tree;
  tree.add_folder("victim");
  tree.add_folder("shared");
  const auto link = [&](const std::string& name, const std::string& target, uid_t user) {
    std::filesystem::create_symlink(target, tree.path(name));
    ASSERT_EQ(::lchown(tree.path(name).c_str(), user, user), 0);
  };
  link("shared/evil", "../victim", 65534);
  link("shared/own", "evil", 0);
  link("shared/good", "../victim", 0);
  for (const char* folder : {"shared/evil", "shared/evil/deeper", "shared/own"}) {
    LocalRequest request;
    request.folder = tree.path(folder);
    const auto written = write_local(*plan_local(request));
    ASSERT_FALSE(written) << folder;
    EXPECT_THAT(written.error().what, HasSubstr("is a symbolic link that belongs to user 65534"))
        << folder;
    EXPECT_FALSE(written.error().mend.empty());
    EXPECT_TRUE(std::filesystem::is_empty(tree.path("victim"))) << folder;
  }
  LocalRequest request;
  request.folder = tree.path("shared/good");
  EXPECT_TRUE(write_local(*plan_local(request))) << "a link of one's own";
  EXPECT_TRUE(std::filesystem::exists(tree.path("victim/ztcp.conf")));
}

TEST(Local, NextCommandsAreQuotedForTheShell) {
  LocalRequest request;
  request.folder = "/tmp/it's $HOME";
  auto fabric = *plan_local({});
  fabric.path = "/tmp/it's $HOME/ztcp.conf";
  for (const std::string& command : next_commands(fabric, LocalTopology::kSwitch))
    EXPECT_THAT(command, HasSubstr("--config '/tmp/it'\\''s $HOME/ztcp.conf'"));
}

TEST(Local, PrintsTheNextCommands) {
  LocalRequest request;
  request.folder = "/tmp/x";
  const auto fabric = plan_local(request);
  const std::string text = to_text(*fabric, LocalTopology::kSwitch);
  EXPECT_THAT(text, HasSubstr("\nsetup successfully\n"));
  EXPECT_THAT(text, HasSubstr("ztcp_switch --config /tmp/x/ztcp.conf"));
  EXPECT_THAT(text, HasSubstr("--ranks 2"));
  EXPECT_THAT(to_text(*fabric, LocalTopology::kMesh), testing::Not(HasSubstr("ztcp_switch")));
}

}  // namespace
}  // namespace ztcp::setup
