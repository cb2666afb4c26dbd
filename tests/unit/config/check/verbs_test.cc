// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "tests/unit/config/check/checked_machine.h"
#include "tests/unit/config/check/verbs_host.h"

namespace ztcp::config {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CheckVerbs, AHealthyHostIsGood) {
  EXPECT_EQ(good("rdma_device"), "port 1 of mlx5_0 is active: Ethernet, 100000 Mb/s, eth1");
  EXPECT_EQ(good("rdma_access"), "/dev/infiniband/uverbs3 may be opened");
  EXPECT_EQ(good("rdma_address"), "10.0.0.5/24 is on eth1");
  EXPECT_EQ(good("rdma_gid"), "GID 2 10.0.0.5 (RoCE v2), chosen by itself");
  EXPECT_EQ(good("rdma_mtu"),
            "eth1 has an MTU of 9000, so that a packet of RoCE carries 4096 bytes");
  EXPECT_EQ(good("rdma_memory"), "unlimited");
  EXPECT_EQ(good("rdma_acs"),
            "off at 0000:18:02.0, 0000:18:00.0, between 0000:1b:00.0 and its GPUs");
}

// Forwards to another machine, and counts reads of GID tables.
class CountingMachine final : public Machine {
 public:
  explicit CountingMachine(Machine& other) : other_(other) {}
  FileFacts facts(const std::string& path) override { return other_.facts(path); }
  FileFacts facts_behind(const std::string& path) override { return other_.facts_behind(path); }
  Result<std::string> read_value(const std::string& path) override {
    return other_.read_value(path);
  }
  std::optional<std::string> link_target(const std::string& path) override {
    return other_.link_target(path);
  }
  std::vector<std::string> list(const std::string& folder) override {
    tables += folder.ends_with("/gids") ? 1 : 0;
    return other_.list(folder);
  }
  bool may_access(const std::string& path, int mode) override {
    return other_.may_access(path, mode);
  }
  std::vector<std::uint32_t> allowed_cpus() override { return other_.allowed_cpus(); }
  int tables = 0;

 private:
  Machine& other_;
};

// Init runs the checks, too, and a port has 256 GID entries.
TEST_F(CheckVerbs, EachPortIsReadOnce) {
  tree_.add(device("mlx5_1", "eth2", mapped("0006"), 9000));
  fabric_.nics.push_back(nic("ztcp1", "mlx5_1", "10.0.0.6/24"));
  CountingMachine machine(machine_);
  run_checks(fabric_, machine, {}, {}, addresses_);
  EXPECT_EQ(machine.tables, 2);
}

// --- The device ----------------------------------------------------------------------------------

TEST_F(CheckVerbs, AMissingDeviceIsReportedWithThePresentOnes) {
  fabric_.nics[0].device = "mlx5_9";
  const Problem said = warning("rdma_device");
  EXPECT_THAT(said.what, HasSubstr("no RDMA device mlx5_9 is here; this host has mlx5_0"));
  EXPECT_THAT(said.mend, HasSubstr("correct device in /etc/ztcp.conf"));
}

TEST_F(CheckVerbs, TheMendLoadsAMissingModule) {
  tree_.remove("sys/class/infiniband");
  tree_.remove("sys/module/mlx5_ib");
  EXPECT_THAT(warning("rdma_device").mend, StartsWith("sudo modprobe -a mlx5_ib; else rdma link"));
  fabric_.nics[0].device = "rxe0";
  EXPECT_EQ(warning("rdma_device").mend,
            "sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev eth1");
}

TEST_F(CheckVerbs, ADownOrMissingPortIsAWarning) {
  tree_.add_file("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  EXPECT_EQ(warning("rdma_device").what, "port 1 of mlx5_0 is DOWN");
  EXPECT_THAT(warning("rdma_device").mend, StartsWith("sudo ip link set dev eth1 up"));
  tree_.add_file("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  EXPECT_THAT(warning("rdma_device").mend, HasSubstr("subnet manager"));
  fabric_.nics[0].device_port = 2;
  EXPECT_EQ(warning("rdma_device").what, "mlx5_0 has no port 2");
}

TEST_F(CheckVerbs, OddInterfaceNamesAreQuotedInCommands) {
  tree_.add_file("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "e;$(x)\n");
  addresses_[0].prefix = *parse_ip_prefix("10.0.0.6/24");
  EXPECT_THAT(warning("rdma_gid").mend, EndsWith(" dev 'e;$(x)'"));
  tree_.add_file("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  EXPECT_THAT(warning("rdma_device").mend, StartsWith("sudo ip link set dev 'e;$(x)' up"));
}

TEST_F(CheckVerbs, IwarpNeedsItsConnectionManagerAndItsInterfacesAddress) {
  tree_.add_file("sys/class/infiniband/mlx5_0/node_type", "4: RNIC\n");
  tree_.add_file("sys/class/infiniband/mlx5_0/ports/1/gids/0",
                 "0200:0000:0007:0000:0000:0000:0000:0000\n");
  for (const char* const name : {"eth1.7", "eth1"}) {
    tree_.add_file(std::string("sys/class/net/") + name + "/address", "02:00:00:00:00:07\n");
    tree_.add_file(std::string("sys/class/net/") + name + "/iflink", "3\n");
  }
  tree_.add_file("sys/class/net/eth1/ifindex", "3\n");
  tree_.add_file("sys/class/net/eth1.7/ifindex", "4\n");
  EXPECT_THAT(good("rdma_device"), HasSubstr("port 1 of mlx5_0 is active: iWARP, "));
  EXPECT_THAT(warning("rdma_manager").mend, StartsWith("sudo modprobe rdma_ucm"));
  tree_.add_file("dev/infiniband/rdma_cm", "");
  EXPECT_EQ(good("rdma_manager"), "/dev/infiniband/rdma_cm may be opened");
  EXPECT_THAT(good("rdma_address"), HasSubstr("is on eth1"));
  addresses_[0].interface = "eth9";
  EXPECT_THAT(warning("rdma_address").what,
              HasSubstr("is on eth9, but iWARP's queue pairs use eth1, mlx5_0's own"));
  fabric_.nics[0].merge = "ib0";
  EXPECT_EQ(warning("rdma_device").what, "mlx5_0 is an iWARP device, and those can't be merged");
  EXPECT_EQ(warning("rdma_device").mend, "remove merge = \"ib0\" of that NIC from /etc/ztcp.conf");
}

// --- Access --------------------------------------------------------------------------------------

TEST_F(CheckVerbs, WithoutANodeTheMendNamesTheModuleOrTheContainer) {
  tree_.remove("dev/infiniband/uverbs3");
  EXPECT_THAT(warning("rdma_access").mend, HasSubstr("--device /dev/infiniband"));
  tree_.remove("sys/class/infiniband_verbs/uverbs3");
  EXPECT_EQ(warning("rdma_access").mend, "sudo modprobe ib_uverbs");
}

TEST_F(CheckVerbs, TheNodeOfAnotherDeviceDoesNotCount) {
  tree_.add_file("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_1\n");
  tree_.add_file("dev/infiniband/uverbs0", "");
  ASSERT_EQ(::chmod(tree_.path("dev/infiniband/uverbs0").c_str(), 0666), 0);
  allow(false);
  const Problem said = as_nobody([&] { return warning("rdma_access"); });
  EXPECT_THAT(said.what, HasSubstr("may not open /dev/infiniband/uverbs3, which is mlx5_0's"));
  EXPECT_THAT(said.mend, StartsWith("sudo chmod 666 /dev/infiniband/uverbs3"));
}

TEST_F(CheckVerbs, TooLittleLockedMemoryIsAWarning) {
  const auto limit = [&](const std::string& bytes) {
    tree_.add_file("proc/self/limits", "Max locked memory  " + bytes + "  " + bytes + "  bytes\n");
  };
  limit("8388608");
  EXPECT_THAT(warning("rdma_memory").what,
              HasSubstr("max locked memory is 8192 KiB, wanted unlimited, or 4194304 KiB"));
  EXPECT_THAT(warning("rdma_memory").mend, StartsWith("ulimit -l unlimited"));
  limit("4294967296");
  EXPECT_EQ(good("rdma_memory"), "max locked memory is 4194304 KiB");
  limit("8388608");
  tree_.add_file("proc/self/status", "CapEff:\t0000000000004000\n");
  EXPECT_THAT(good("rdma_memory"), HasSubstr("CAP_IPC_LOCK"));
}

TEST_F(CheckVerbs, AnAddressOfAnotherHostIsAWarning) {
  addresses_.clear();
  EXPECT_THAT(warning("rdma_address").what,
              HasSubstr("\"10.0.0.5/24\" is not an address of this host"));
}

// For a kernel socket NIC this is a fault; here the other NICs still work.
TEST_F(CheckVerbs, NoFreePortIsAWarning) {
  fabric_.nics[0].first_port = fabric_.nics[0].last_port = 7472;
  tree_.add_file("proc/net/tcp",
                 "  sl  local_address rem_address   st\n   0: 00000000:1D30 00000000:0000 0A\n");
  EXPECT_EQ(warning("ports").what, "all ports 7472-7472 are in use");
}

}  // namespace
}  // namespace ztcp::config
