// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/machine/live_machine.h"
#include "tests/support/tree.h"
#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSwitch = "pci0000:16/0000:16:00.0/0000:17:00.0";
constexpr const char* kNicBridge = "sys/bus/pci/devices/0000:18:02.0/config";
constexpr const char* kGpuBridge = "sys/bus/pci/devices/0000:18:00.0/config";

std::string device(const std::string& name, const std::string& interface,
                   const std::string& address, int mtu) {
  const std::string port = "file path=sys/class/infiniband/" + name + "/ports/1/";
  return "file path=sys/class/infiniband/" + name + "/node_type text=1: CA\\n\n" + port +
         "state text=4: ACTIVE\\n\n" + port + "rate text=100 Gb/sec (4X EDR)\\n\n" + port +
         "link_layer text=Ethernet\\n\n" + port +
         "gids/0 text=fe80:0000:0000:0000:0000:0000:0000:0001\\n\n" + port +
         "gid_attrs/types/0 text=RoCE v2\\n\n" + port + "gids/1 text=" + address + "\\n\n" + port +
         "gid_attrs/types/1 text=IB/RoCE v1\\n\n" + port + "gids/2 text=" + address + "\\n\n" +
         port + "gid_attrs/types/2 text=RoCE v2\\n\n" + port +
         "gid_attrs/ndevs/0 text=" + interface + "\\n\nfile path=sys/class/net/" + interface +
         "/mtu text=" + std::to_string(mtu) + "\\n\n";
}

std::string mapped(const std::string& last) { return "0000:0000:0000:0000:0000:ffff:0a00:" + last; }

// A function's config space with ACS's control register, at the end of a chain of two.
std::string config_space(unsigned control) {
  std::string bytes(4096, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0x100, 0x15010001);  // Advanced error reporting, then 0x150.
  put(0x150, 0x0001000d);
  put(0x154, control << 16U);
  return bytes;
}

// A host with a good RDMA device; each test breaks one thing.
class CheckVerbs : public testing::Test {
 protected:
  CheckVerbs() {
    fabric_.path = "/etc/ztcp.conf";
    fabric_.run_dir = "/nowhere";  // No locks are needed.
    fabric_.nics.push_back(nic("ztcp0", "mlx5_0", "10.0.0.5/24"));
    addresses_.push_back(
        {.interface = "eth1", .index = 3, .prefix = fabric_.nics[0].address, .is_up = true});
    tree_.add_file("sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
    tree_.add_file("dev/infiniband/uverbs3", "");
    tree_.add_file("proc/self/limits",
                   "Max locked memory         unlimited            unlimited            bytes\n");
    tree_.add_file("proc/self/status", "CapEff:\t0000000000000000\n");
    allow(true);
    const std::string way(kSwitch);
    tree_.add(
        "bridge path=pci0000:16/0000:16:00.0 numa=0 buses=17-1e\nbridge path=" + way +
        " numa=0 buses=18-1e\nbridge path=" + way +
        "/0000:18:00.0 numa=0 buses=19-19\npci "
        "path=" +
        way +
        "/0000:18:00.0/0000:19:00.0 id=10de:2324 class=030200 numa=0 "
        "driver=nvidia\nbridge path=" +
        way + "/0000:18:02.0 numa=0 buses=1b-1b\npci path=" + way +
        "/0000:18:02.0/0000:1b:00.0 id=15b3:1021 class=020000 numa=0 "
        "driver=mlx5_core\nlink path=sys/class/infiniband/mlx5_0/device to=../../../devices/" +
        way + "/0000:18:02.0/0000:1b:00.0\n");
    tree_.add_file("sys/module/mlx5_ib/refcnt", "1\n");
    tree_.add_file(kNicBridge, config_space(0));
    tree_.add_file(kGpuBridge, config_space(0));
  }

  static Nic nic(const char* name, const char* device, const char* address) {
    Nic out;
    out.name = name;
    out.driver = NicDriver::kVerbs;
    out.device = device;
    out.address = *parse_ip_prefix(address);
    return out;
  }
  void allow(bool all) const {
    ASSERT_EQ(::chmod(tree_.path("dev/infiniband/uverbs3").c_str(), all ? 0666 : 0600), 0);
  }

  Check said(const std::string& name, const std::string& where = "") {
    Check found;
    for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_)) {
      EXPECT_NE(check.severity, Severity::kFault) << to_string(check.problem);
      if (check.name == name && (where.empty() || check.problem.where == where)) found = check;
    }
    EXPECT_EQ(found.name, name);
    return found;
  }
  // Expects a warning: the other NICs still work.
  Problem warning(const std::string& name, const std::string& where = "") {
    const Check check = said(name, where);
    EXPECT_EQ(check.severity, Severity::kWarning) << to_string(check.problem);
    EXPECT_FALSE(check.problem.mend.empty());
    return check.problem;
  }
  std::string good(const std::string& name) {
    const Check check = said(name);
    EXPECT_EQ(check.severity, Severity::kGood) << to_string(check.problem);
    return check.problem.what;
  }

  test::Tree tree_{device("mlx5_0", "eth1", mapped("0005"), 9000)};
  LiveMachine machine_{tree_.root()};
  Fabric fabric_;
  AddressList addresses_;
};

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

// --- The network ---------------------------------------------------------------------------------

TEST_F(CheckVerbs, AMissingGidIsAWarning) {
  fabric_.nics[0].gid_index = 7;
  EXPECT_THAT(warning("rdma_gid").what,
              HasSubstr("gid_index = 7 in the config, but port 1 of mlx5_0 has no such GID now"));
  fabric_.nics[0].gid_index = -1;
  tree_.remove("sys/class/infiniband/mlx5_0/ports/1/gids");
  tree_.add_folder("sys/bus/pci/devices/0000:1b:00.0/net/eth1");
  EXPECT_EQ(warning("rdma_gid").mend, "sudo ip address add ADDRESS/LENGTH dev eth1");
}

TEST_F(CheckVerbs, AnUnreachableGidIsReportedWithABetterOne) {
  fabric_.nics[0].gid_index = 1;
  EXPECT_THAT(warning("rdma_gid").what, HasSubstr("GID 1 10.0.0.5 (RoCE v1) is RoCE v1"));
  EXPECT_EQ(warning("rdma_gid").mend, "write gid_index = 2 into /etc/ztcp.conf");
  fabric_.nics[0].gid_index = 0;
  EXPECT_THAT(warning("rdma_gid").what, HasSubstr("GID 0 fe80::1 (RoCE v2) is link-local"));
}

TEST_F(CheckVerbs, AGidOfAnotherSubnetIsReportedWithTheRightOne) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree_.add_file(port + "gids/2", "0000:0000:0000:0000:0000:ffff:c0a8:0105\n");
  tree_.add_file(port + "gids/3", mapped("0005") + "\n");
  tree_.add_file(port + "gid_attrs/types/3", "RoCE v2\n");
  addresses_.push_back(
      {.interface = "eth1", .index = 3, .prefix = *parse_ip_prefix("192.168.1.5/24")});
  EXPECT_EQ(good("rdma_gid"), "GID 3 10.0.0.5 (RoCE v2), chosen by itself");
  fabric_.nics[0].gid_index = 2;
  const Problem said = warning("rdma_gid");
  EXPECT_THAT(said.what, HasSubstr("GID 2 192.168.1.5 (RoCE v2) is in another subnet than "
                                   "address = \"10.0.0.5/24\""));
  EXPECT_EQ(said.mend, "write gid_index = 3 into /etc/ztcp.conf");
}

TEST_F(CheckVerbs, AGidOfAnotherNetworkNamespaceIsAWarning) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree_.add_file(port + "gids/3", mapped("0007") + "\n");
  tree_.add_file(port + "gid_attrs/types/3", "");
  fabric_.nics[0].gid_index = 3;
  const Problem said = warning("rdma_gid");
  EXPECT_THAT(said.what, HasSubstr("GID 3 10.0.0.7 (of unknown type): the kernel hides its type"));
  EXPECT_EQ(said.mend, "remove gid_index from /etc/ztcp.conf, and one is chosen");
}

TEST_F(CheckVerbs, AGidWithARemovedAddressIsAWarning) {
  addresses_[0].prefix = *parse_ip_prefix("10.0.0.6/24");
  const Problem said = warning("rdma_gid");
  EXPECT_THAT(said.what, HasSubstr("is no longer an address of eth1"));
  EXPECT_EQ(said.mend, "sudo ip address add 10.0.0.5/24 dev eth1");
  fabric_.nics[0].address = *parse_ip_prefix("10.1.0.5/24");
  EXPECT_EQ(warning("rdma_gid").mend, "sudo ip address add 10.0.0.5/LENGTH dev eth1");
}

TEST_F(CheckVerbs, AMissingPartitionKeyIsAWarning) {
  const std::string keys = "sys/class/infiniband/mlx5_0/ports/1/pkeys/";
  tree_.add_file(keys + "0", "0xffff\n");
  tree_.add_file(keys + "1", "0x0000\n");
  fabric_.nics[0].pkey_index = 0;
  EXPECT_EQ(good("rdma_pkey"), "partition key 0 is 0xffff");
  for (const int index : {1, 7}) {
    fabric_.nics[0].pkey_index = index;
    EXPECT_THAT(warning("rdma_pkey").what, HasSubstr("has no such partition key"));
  }
}

TEST_F(CheckVerbs, AnMtuBelowOthersIsAWarning) {
  tree_.add_file("sys/class/net/eth1/mtu", "1500\n");
  EXPECT_THAT(good("rdma_mtu"), HasSubstr("carries 1024 bytes; it would carry 4096 with an MTU of "
                                          "4200 or more, if the network supports that"));
  tree_.add(device("mlx5_1", "eth2", mapped("0006"), 9000));
  fabric_.nics.push_back(nic("ztcp1", "mlx5_1", "10.0.0.6/24"));
  const Problem said = warning("rdma_mtu", "ztcp0");
  EXPECT_THAT(said.what, HasSubstr("carries 1024 bytes; eth2 has 9000, for 4096"));
  EXPECT_EQ(said.mend, "sudo ip link set dev eth1 mtu 9000, where the network carries it");
}

TEST_F(CheckVerbs, UnequalSpeedsAreAWarning) {
  tree_.add(device("mlx5_1", "eth2", mapped("0006"), 9000));
  fabric_.nics.push_back(nic("ztcp1", "mlx5_1", "10.0.0.6/24"));
  for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_))
    EXPECT_NE(check.name, "speed") << "they are equal";
  fabric_.nics[1].speed_mbps = 25000;
  EXPECT_THAT(warning("speed").what, HasSubstr("(ztcp0 100000, ztcp1 25000 Mb/s)"));
  EXPECT_THAT(warning("speed").mend, StartsWith("sudo ztcp_setup --speed 25000"));
}

TEST_F(CheckVerbs, AVlanWithAnMtuBelowItsParentsIsAWarning) {
  tree_.add_file("sys/class/net/eth1/mtu", "1500\n");
  tree_.add_file("sys/class/net/eth0/mtu", "9000\n");
  tree_.add_file("sys/class/net/eth1/lower_eth0", "");
  EXPECT_THAT(warning("rdma_mtu").what, HasSubstr("eth0 has 9000"));
}

// --- GPUs ----------------------------------------------------------------------------------------

TEST_F(CheckVerbs, AcsBetweenNicAndGpuIsAWarning) {
  tree_.add_file(kGpuBridge, config_space(0x1d));
  const Problem said = warning("rdma_acs");
  EXPECT_THAT(said.what, StartsWith("ACS is on at 0000:18:00.0, between 0000:1b:00.0 and its"));
  EXPECT_THAT(said.mend, HasSubstr("for d in 0000:18:00.0; do sudo setpci -s $d"));
  tree_.add_file(kGpuBridge, config_space(0x01));  // Source validation alone redirects nothing.
  EXPECT_THAT(good("rdma_acs"), StartsWith("off at"));
}

TEST_F(CheckVerbs, AcsThatOnlyRootCanReadIsUnknown) {
  tree_.add_file(kGpuBridge, config_space(0x1d).substr(0, 64));
  EXPECT_EQ(good("rdma_acs"),
            "only root can read whether ACS is on at 0000:18:00.0: sudo ztcp_setup --check");
}

TEST_F(CheckVerbs, ReportsWhyGpuMemoryIsNotReached) {
  tree_.add_file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n");
  tree_.add_file("proc/sys/kernel/osrelease", "6.1.0\n");
  Problem said = warning("rdma_gpu");
  EXPECT_THAT(said.what, HasSubstr("off: DMA-BUFs need NVIDIA's open kernel module, and "
                                   "nvidia_peermem is not loaded"));
  EXPECT_THAT(said.mend, HasSubstr("NVIDIA's open kernel module"));
  tree_.add_file("lib/modules/6.1.0/modules.dep", "updates/dkms/nvidia-peermem.ko: nvidia.ko\n");
  tree_.add_file("lib/modules/6.1.0/modules.symbols",
                 "alias symbol:ib_register_peer_memory_client ib_core\n");
  EXPECT_EQ(warning("rdma_gpu").mend, "sudo modprobe nvidia_peermem");
  tree_.add_file("sys/module/nvidia_peermem/version", "550\n");
  EXPECT_EQ(good("rdma_gpu"), "GPUDirect RDMA by nvidia_peermem");
  tree_.remove("sys/module/nvidia_peermem");
  tree_.add_file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module\n");
  EXPECT_EQ(good("rdma_gpu"), "GPUDirect RDMA by DMA-BUF where the NIC's driver takes it");
  tree_.add_file("proc/sys/kernel/osrelease", "5.4.0\n");
  EXPECT_THAT(warning("rdma_gpu").what, HasSubstr("DMA-BUFs need Linux 5.12 and this is 5.4.0"));
}

}  // namespace
}  // namespace ztcp::config
