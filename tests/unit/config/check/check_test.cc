// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Config against machine: a machine where all is well, then one thing wrong at a time. Each fault
// names both values and what mends it.
#include "config/check/check.h"

#include <functional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr const char* kNic = "sys/devices/pci0000:00/0000:00:05.0";
constexpr const char* kMachine =
    "node id=0 cpus=0-1 memory_mib=65536\n"
    "pages node=0 kib=2048 total=4096 free=3000\n"
    "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=vfio-pci group=7\n"
    "pci path=pci0000:00/0000:00:1e.0 id=10de:20b2 class=030200 numa=0 driver=nvidia\n"
    "file path=etc/machine-id text=0123456789abcdef0123456789abcdef\n"
    "file path=dev/vfio/vfio text=\n"
    "file path=dev/vfio/7 text=\n"
    "dir path=run\n"
    "file path=proc/self/cgroup text=0::/user.slice/job\n"
    "file path=sys/fs/cgroup/user.slice/job/hugetlb.2MB.max text=max\n"
    "file path=proc/self/limits text=Limit Soft Limit Hard Limit Units\\n"
    "Max locked memory         unlimited            unlimited            bytes\n"
    "file path=proc/self/status text=Name:\\tx\\nCapEff:\\t0000000000000000\n"
    "file path=proc/self/mountinfo text=22 1 259:1 / / rw - ext4 /dev/root rw\n";

struct Machine {
  test::Tree tree{kMachine};
  Fabric fabric;
  mutable LiveMachine live{tree.root()};
  GpuList gpus{"0000:00:1e.0"};

  Machine() {
    fabric.path = "/etc/ztcp.conf";
    fabric.run_dir = "/run";
    fabric.host = {"0123456789abcdef0123456789abcdef", "gpu-7", HostClass::kIommu, "", ""};
    fabric.hugepages = {2048, 5120, 0};
    Nic nic;
    nic.name = "ztcp0";
    nic.driver = NicDriver::kPci;
    nic.pci = "0000:00:05.0";
    nic.mac = *parse_mac("02:00:00:00:00:05");
    nic.address = *parse_ipv4_prefix("10.0.0.5/24");
    nic.mtu_bytes = 9001;
    nic.numa_node = 0;
    nic.speed_mbps = 100000;
    nic.gpu_pci = "0000:00:1e.0";
    fabric.nics.push_back(nic);
  }
  Nic& nic() { return fabric.nics.front(); }

  // Gives the NIC back to its kernel driver.
  void unbind(const std::string& mac, int mtu, int speed = -1) {
    tree.add(
        "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=ena group=7");
    tree.remove(std::string(kNic) + "/driver");
    tree.add_link(std::string(kNic) + "/driver", "../../../bus/pci/drivers/ena");
    tree.add("net path=pci0000:00/0000:00:05.0 name=ens5 mac=" + mac +
             " mtu=" + std::to_string(mtu) + " speed=" + std::to_string(speed));
  }

  std::vector<Check> of_severity(Severity severity) const {
    std::vector<Check> found;
    for (const Check& check : run_checks(fabric, live, gpus))
      if (check.severity == severity) found.push_back(check);
    return found;
  }
  // The only fault, which must be of this check.
  Problem fault(const std::string& name) const {
    const auto faults = of_severity(Severity::kFault);
    EXPECT_THAT(faults, SizeIs(1)) << name;
    if (faults.size() != 1) return {};
    EXPECT_EQ(faults[0].name, name);
    EXPECT_FALSE(faults[0].problem.mend.empty());
    return faults[0].problem;
  }
};

// Permissions mean nothing to root, so root asks as somebody else.
template <class Ask>
auto as_nobody(Ask&& ask) {
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) throw std::runtime_error("seteuid");
  auto answer = ask();
  if (root && ::seteuid(0) != 0) throw std::runtime_error("seteuid");
  return answer;
}

TEST(Check, AllIsWell) {
  const Machine machine;
  EXPECT_THAT(check_host(machine.fabric, machine.live, machine.gpus), IsEmpty());
  std::vector<std::string> names;
  for (const Check& check : run_checks(machine.fabric, machine.live, machine.gpus)) {
    // 3000 pages are 6000 MiB, more than the 5120 of one GPU.
    EXPECT_EQ(check.severity, Severity::kGood) << to_string(check.problem);
    EXPECT_FALSE(check.problem.what.empty());
    names.push_back(check.name);
  }
  EXPECT_THAT(names, UnorderedElementsAre("schema", "host", "run_dir", "gpu", "pci", "driver",
                                          "vfio", "mac", "speed", "hugepages", "memlock"));
}

TEST(Check, Schema) {
  Machine machine;
  machine.fabric.schema = 2;
  EXPECT_THAT(machine.fault("schema").what, HasSubstr("schema 2, this ztcp reads 1"));
}

TEST(Check, HostIdentity) {
  Machine machine;
  machine.tree.add_file("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
  EXPECT_THAT(
      machine.fault("host").what,
      HasSubstr("written for host gpu-7 (machine id 0123456789abcdef0123456789abcdef), this "
                "machine id is ffffffffffffffffffffffffffffffff"));
}

TEST(Check, AContainerHasAnIdentityOfItsOwn) {
  Machine machine;
  machine.tree.add_file("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
  EXPECT_THAT(machine.fault("host").mend, StartsWith("sudo ztcp_setup"));
  machine.tree.add_file("run/.containerenv", "");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, AMissingMachineIdIsNotCompared) {
  Machine machine;
  machine.tree.remove("etc/machine-id");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, RunFolderMissing) {
  Machine machine;
  machine.tree.remove("run");
  EXPECT_THAT(machine.fault("run_dir").mend, HasSubstr("sudo ztcp_setup"));
}

TEST(Check, RunFolderNotWritable) {
  Machine machine;
  ::chmod(machine.tree.path("run").c_str(), 0755);
  if (::geteuid() != 0) ::chmod(machine.tree.path("run").c_str(), 0555);
  ::chmod(machine.tree.path("dev/vfio/7").c_str(), 0666);
  EXPECT_THAT(as_nobody([&] { return machine.fault("run_dir"); }).what,
              HasSubstr("can't write to it"));
}

TEST(Check, GpuOfTheConfigIsGone) {
  Machine machine;
  machine.nic().gpu_pci = "0000:17:00.0";
  machine.gpus.clear();
  const Problem problem = machine.fault("gpu");
  EXPECT_EQ(problem.where, "0000:17:00.0");
  EXPECT_THAT(problem.what, HasSubstr("not in this machine"));
}

TEST(Check, GpuOfTheProcessHasNoNic) {
  Machine machine;
  machine.gpus = {"0000:00:1f.0"};
  EXPECT_THAT(machine.fault("gpu").what,
              HasSubstr("sees GPU 0000:00:1f.0, the config has NICs for 0000:00:1e.0"));
}

TEST(Check, GpuNumberedAnewIsAWarningWhenUuidsAreKnown) {
  Machine machine;
  machine.gpus = {"0001:00:00.0"};
  machine.nic().gpu_uuid = "GPU-1";
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  EXPECT_THAT(machine.of_severity(Severity::kWarning), SizeIs(1));
}

TEST(Check, PciFunctionIsGone) {
  Machine machine;
  machine.nic().pci = "0000:00:06.0";
  const Problem problem = machine.fault("pci");
  EXPECT_EQ(problem.where, "ztcp0");
  EXPECT_THAT(problem.what, HasSubstr("0000:00:06.0, where there is no device"));
}

TEST(Check, PciFunctionIsNoNic) {
  Machine machine;
  machine.nic().pci = "0000:00:1e.0";
  EXPECT_THAT(machine.fault("pci").what, HasSubstr("its class is 0x030200"));
}

TEST(Check, Driver) {
  Machine machine;
  machine.unbind("02:00:00:00:00:05", 9001);
  const Problem problem = machine.fault("driver");
  EXPECT_THAT(problem.what, HasSubstr("0000:00:05.0 is bound to ena, wanted vfio-pci"));
  EXPECT_THAT(problem.mend, HasSubstr("sudo ztcp_setup"));
}

TEST(Check, NoDriver) {
  Machine machine;
  machine.tree.remove(std::string(kNic) + "/driver");
  EXPECT_THAT(machine.fault("driver").what, HasSubstr("bound to no driver"));
}

TEST(Check, Mac) {
  Machine machine;
  machine.unbind("02:00:00:00:00:99", 9001);
  const auto faults = machine.of_severity(Severity::kFault);
  ASSERT_THAT(faults, SizeIs(2));  // The driver, too.
  EXPECT_EQ(faults[1].name, "mac");
  EXPECT_THAT(faults[1].problem.what,
              HasSubstr("mac = 02:00:00:00:00:05 in the config, ens5 has 02:00:00:00:00:99"));
}

TEST(Check, Mtu) {
  Machine machine;
  machine.unbind("02:00:00:00:00:05", 1500);
  const auto faults = machine.of_severity(Severity::kFault);
  ASSERT_THAT(faults, SizeIs(2));
  EXPECT_EQ(faults[1].name, "mtu");
  EXPECT_THAT(faults[1].problem.what, HasSubstr("mtu_bytes = 9001 in the config, ens5 has 1500"));
  EXPECT_THAT(faults[1].problem.mend, HasSubstr("mtu_bytes = 1500"));
}

TEST(Check, AVirtioNicIsReadThroughItsOwnDevice) {
  Machine machine;
  machine.unbind("02:00:00:00:00:05", 9001);
  machine.tree.remove(std::string(kNic) + "/net");
  machine.tree.add(
      "net path=pci0000:00/0000:00:05.0/virtio3 name=ens5 mac=02:00:00:00:00:98 mtu=9001 speed=-1");
  const auto faults = machine.of_severity(Severity::kFault);
  ASSERT_THAT(faults, SizeIs(2));
  EXPECT_THAT(faults[1].problem.what, HasSubstr("ens5 has 02:00:00:00:00:98"));
}

TEST(Check, VfioGroupMissing) {
  Machine machine;
  machine.tree.remove("dev/vfio/7");
  EXPECT_THAT(machine.fault("vfio").mend, HasSubstr("sudo ztcp_setup"));
}

TEST(Check, VfioGroupAccess) {
  Machine machine;
  ::chmod(machine.tree.path("run").c_str(), 0777);
  ::chmod(machine.tree.path("dev/vfio/7").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  const Problem problem = as_nobody([&] { return machine.fault("vfio"); });
  EXPECT_THAT(problem.what, HasSubstr("may not open /dev/vfio/7"));
  EXPECT_THAT(problem.mend, HasSubstr("--group"));
}

TEST(Check, HostClassChanged) {
  Machine machine;
  machine.fabric.host.host_class = HostClass::kNoIommu;
  EXPECT_THAT(machine.fault("vfio").what,
              HasSubstr("host.class = \"no-iommu\" in the config, the machine is \"iommu\""));
}

TEST(Check, NoIommuNeedsTwoCapabilities) {
  Machine machine;
  machine.fabric.host.host_class = HostClass::kNoIommu;
  machine.tree.remove("dev/vfio/7");
  machine.tree.add_file("dev/vfio/noiommu-7", "");
  const Problem problem = machine.fault("vfio");
  EXPECT_THAT(problem.what, EndsWith("missing: CAP_SYS_RAWIO, CAP_SYS_ADMIN"));
  EXPECT_THAT(problem.mend, HasSubstr("--user 0 --cap-add SYS_RAWIO --cap-add SYS_ADMIN"));
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000020000\n");
  EXPECT_THAT(machine.fault("vfio").what, EndsWith("missing: CAP_SYS_ADMIN"));
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000200000\n");
  EXPECT_THAT(machine.fault("vfio").what, EndsWith("missing: CAP_SYS_RAWIO"));
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000220000\n");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

// 12288 frames of 9001 bytes and their overhead, and what DPDK wants: 143 MiB, in whole pages.
TEST(Check, HugepagesOfTheNode) {
  Machine machine;
  machine.tree.add("pages node=0 kib=2048 total=4096 free=50");
  const Problem problem = machine.fault("hugepages");
  EXPECT_EQ(problem.where, "NUMA node 0");
  EXPECT_THAT(problem.what,
              HasSubstr("needs 72 x 2 MiB hugepages on NUMA node 0, has 50 free of 4096"));
  EXPECT_THAT(problem.mend, HasSubstr("echo 4118 > "));
}

TEST(Check, HugepagesOfTheHost) {
  Machine machine;
  machine.fabric.hugepages.spare_mib = 1024;
  machine.tree.add("pages node=0 kib=2048 total=3071 free=1000");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].problem.what,
              HasSubstr("set-up reserves 6144 MiB for all processes, which needs 3072 x 2 MiB "
                        "hugepages on NUMA node 0, has 3071"));
  EXPECT_THAT(warnings[0].problem.mend, HasSubstr("echo 3072 > "));
}

TEST(Check, ANodeThatTheMachineLacks) {
  Machine machine;
  machine.nic().numa_node = 3;
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].name, "numa");
  EXPECT_THAT(warnings[0].problem.what,
              HasSubstr("numa_node = 3 in the config, which this machine does not have"));
}

TEST(Check, ASpeedThatNobodyTold) {
  Machine machine;
  machine.nic().speed_mbps = 0;
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].name, "speed");
  EXPECT_THAT(warnings[0].problem.what, HasSubstr("NCCL is told 10000 Mb/s, a guess"));
  EXPECT_THAT(warnings[0].problem.mend, HasSubstr("ztcp_setup --speed MBPS"));
}

TEST(Check, ASpeedThatTheDriverDenies) {
  Machine machine;
  machine.unbind("02:00:00:00:00:05", 9001, 25000);
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].problem.what, "speed_mbps = 100000 in the config, ens5 says 25000");
  machine.nic().speed_mbps = 25000;
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
}

// Two NICs, each on a node and with a GPU of its own; the second node has no pages left.
void add_second_nic(Machine& machine) {
  machine.tree.add(
      "node id=1 cpus=2-3 memory_mib=65536\n"
      "pages node=1 kib=2048 total=4096 free=0\n"
      "pci path=pci0000:80/0000:80:05.0 id=1d0f:ec20 class=020000 numa=1 driver=vfio-pci group=8\n"
      "pci path=pci0000:80/0000:80:1e.0 id=10de:20b2 class=030200 numa=1 driver=nvidia\n"
      "file path=dev/vfio/8 text=\n");
  Nic nic = machine.nic();
  nic.name = "ztcp1";
  nic.pci = "0000:80:05.0";
  nic.mac = *parse_mac("02:00:00:00:00:06");
  nic.address = *parse_ipv4_prefix("10.0.0.6/24");
  nic.numa_node = 1;
  nic.gpu_pci = "0000:80:1e.0";
  machine.fabric.nics.push_back(nic);
}

TEST(Check, AProcessIsAskedForPagesOfItsOwnNicsOnly) {
  Machine machine;
  add_second_nic(machine);
  const auto faults_of = [&](const NicList& own) {
    return check_host(machine.fabric, machine.live, machine.gpus, own);
  };
  EXPECT_THAT(faults_of({0}), IsEmpty());
  ASSERT_THAT(faults_of({1}), SizeIs(1));
  EXPECT_THAT(faults_of({1})[0].what, HasSubstr("needs 72 x 2 MiB hugepages on NUMA node 1"));
  ASSERT_THAT(faults_of({0, 1}), SizeIs(1));
  // --check speaks for the processes of all NICs, each by itself.
  EXPECT_THAT(machine.fault("hugepages").what, HasSubstr("on NUMA node 1, has 0 free of 4096"));
  machine.tree.add("pages node=1 kib=2048 total=4096 free=72");
  machine.tree.add("pages node=0 kib=2048 total=4096 free=72");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, UnequalSpeeds) {
  Machine machine;
  add_second_nic(machine);
  machine.tree.add("pages node=1 kib=2048 total=4096 free=4096");
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
  machine.fabric.nics[1].speed_mbps = 25000;
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].problem.what, HasSubstr("(ztcp0 100000, ztcp1 25000 Mb/s)"));
}

TEST(Check, AContainersLimitIsForOneProcess) {
  Machine machine;
  add_second_nic(machine);
  machine.tree.add("pages node=1 kib=2048 total=4096 free=4096");
  machine.tree.add_file("sys/fs/cgroup/user.slice/hugetlb.2MB.max", "167772160\n");  // 160 MiB.
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, ALimitBelowWhatAProcessNeeds) {
  Machine machine;
  machine.fabric.hugepages.per_process_mib = 100;
  const Problem problem = machine.fault("hugepages");
  EXPECT_THAT(problem.what,
              HasSubstr("hugepages.per_process_mib = 100 lets a process take 100 MiB, "
                        "which needs 143 MiB for its 1 NICs"));
  EXPECT_THAT(problem.mend, HasSubstr("per_process_mib = 144 or more"));
}

TEST(Check, HugepagesOfAnotherSize) {
  Machine machine;
  machine.fabric.hugepages.page_kib = 1048576;
  EXPECT_THAT(machine.fault("hugepages").what,
              HasSubstr("needs 1 x 1 GiB hugepages on NUMA node 0, where the kernel has none"));
}

// DPDK is told node by node what to take, and NICs that know no node are counted on node 0.
TEST(Check, ANicWithoutANodeTakesPagesOfTheFirstNode) {
  Machine machine;
  machine.nic().numa_node = -1;
  machine.tree.add(
      "pages node=0 kib=2048 total=100 free=40\npages node=1 kib=2048 total=400 free=400");
  EXPECT_THAT(machine.fault("hugepages").what, HasSubstr("has 40 free of 100"));
  machine.tree.add("pages node=0 kib=2048 total=100 free=80");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, CgroupLimit) {
  Machine machine;
  machine.tree.add_file("sys/fs/cgroup/user.slice/hugetlb.2MB.max", "67108864\n");
  EXPECT_THAT(machine.fault("cgroup").what,
              HasSubstr("needs 72 x 2 MiB hugepages, the container's cgroup leaves 32"));
}

TEST(Check, CgroupLimitThatIsWideEnough) {
  Machine machine;
  machine.tree.add_file("sys/fs/cgroup/user.slice/hugetlb.2MB.max", "8589934592\n");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

void limit_locked_memory(Machine& machine, std::uint64_t bytes) {
  machine.tree.add_file("proc/self/limits",
                        fmt::format("Max locked memory {0} {0} bytes\n", bytes));
}

TEST(Check, LockedMemory) {
  Machine machine;
  limit_locked_memory(machine, 8 << 20);
  const Problem problem = machine.fault("memlock");
  EXPECT_THAT(problem.what, HasSubstr("8192 KiB, wanted unlimited, or more than the 5242880 KiB"));
  EXPECT_THAT(problem.mend, HasSubstr("ulimit -l unlimited"));
  // All of it for the pages leaves nothing for the buffers.
  limit_locked_memory(machine, std::uint64_t{5120} << 20);
  EXPECT_THAT(machine.fault("memlock").what, HasSubstr("5242880 KiB, wanted"));
  limit_locked_memory(machine, (std::uint64_t{5120} << 20) + 1);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, LockedMemoryOfThoseWhoMayLockAnything) {
  Machine machine;
  limit_locked_memory(machine, 8 << 20);
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000004000\n");  // CAP_IPC_LOCK
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, LockedMemoryCountsOnlyBehindAnIommu) {
  Machine machine;
  limit_locked_memory(machine, 8 << 20);
  machine.fabric.host.host_class = HostClass::kNoIommu;
  machine.tree.remove("dev/vfio/7");
  machine.tree.add_file("dev/vfio/noiommu-7", "");
  // CAP_SYS_ADMIN and CAP_SYS_RAWIO
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000220000\n");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

// --- memif and tap -------------------------------------------------------------------------------

struct Software : Machine {
  explicit Software(NicDriver driver) {
    fabric.hugepages.page_kib = 0;
    nic().driver = driver;
    nic().pci.clear();
    nic().gpu_pci.clear();
    gpus.clear();
    tree.add_folder("sockets");
    nic().memif_socket = "/sockets/a.sock";
    nic().tap_interface = "tap0";
    tree.add(
        "file path=dev/net/tun text=\nfile path=sys/class/net/tap0/mtu text=9001\n"
        "file path=sys/class/net/tap0/tun_flags text=0x1002");
    ::chmod(tree.path("run").c_str(), 0777);
    ::chmod(tree.path("dev/net/tun").c_str(), 0666);
  }
};

TEST(Check, AMemifSwitchThatDoesNotRunIsNoFault) {
  const Software machine(NicDriver::kMemif);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, APeerOfAMeshIsOneHoweverManyItsQueues) {
  Software machine(NicDriver::kMemif);
  machine.nic().memif_role = MemifRole::kMesh;
  machine.nic().queues = 3;
  for (const char* name : {"second", "third"}) {
    machine.fabric.nics.push_back(machine.nic());
    machine.fabric.nics.back().name = name;
  }
  std::string all;
  for (const config::Check& good : machine.of_severity(Severity::kGood)) all += good.problem.what;
  EXPECT_THAT(all, HasSubstr("mesh /sockets/a.sock, 2 peers"));
}

// Who may write there can hold every NIC back: it is opened to a group, not to all.
TEST(Check, RunFolderOfSoftwareNicsIsNotOpenedToAll) {
  Software machine(NicDriver::kMemif);
  ::chmod(machine.tree.path("run").c_str(), ::geteuid() == 0 ? 0700 : 0500);
  ::chmod(machine.tree.path("sockets").c_str(), 0777);
  const Problem problem = as_nobody([&] { return machine.fault("run_dir"); });
  EXPECT_THAT(problem.mend, HasSubstr("sudo chmod 770 /run"));
}

TEST(Check, MemifFolderMissing) {
  Software machine(NicDriver::kMemif);
  machine.nic().memif_socket = "/nowhere/a.sock";
  EXPECT_THAT(machine.fault("memif").mend, HasSubstr("mkdir -p /nowhere"));
}

TEST(Check, MemifNeedsAWritableFolder) {
  for (const MemifRole role : {MemifRole::kServer, MemifRole::kClient}) {
    Software machine(NicDriver::kMemif);
    machine.nic().memif_role = role;
    ::chmod(machine.tree.path("sockets").c_str(), ::geteuid() == 0 ? 0755 : 0555);
    EXPECT_THAT(as_nobody([&] { return machine.fault("memif"); }).what,
                HasSubstr("may not write to"));
  }
}

// What lies beside the sockets is the config: a folder open to all would give it away.
TEST(Check, NoMendOpensAFolderToAll) {
  Software machine(NicDriver::kMemif);
  ::chmod(machine.tree.path("sockets").c_str(), ::geteuid() == 0 ? 0755 : 0555);
  const Problem problem = as_nobody([&] { return machine.fault("memif"); });
  EXPECT_THAT(problem.mend, testing::Not(HasSubstr("chmod")));
  EXPECT_THAT(problem.mend, HasSubstr("ztcp_setup --local N --dir FOLDER"));
}

TEST(Check, WhatIsNoSocketIsNamed) {
  for (const MemifRole role : {MemifRole::kServer, MemifRole::kClient}) {
    Software machine(NicDriver::kMemif);
    machine.nic().memif_role = role;
    machine.tree.add_file("sockets/a.sock", "precious");
    EXPECT_THAT(machine.fault("memif").what, HasSubstr("is there and is no socket"));
  }
}

TEST(Check, AFileInPlaceOfAFolderIsNamed) {
  Software machine(NicDriver::kMemif);
  machine.tree.add_file("file", "");
  ::chmod(machine.tree.path("file").c_str(), 0777);
  machine.fabric.run_dir = "/file";
  EXPECT_THAT(machine.fault("run_dir").what, HasSubstr("is no folder"));
  machine.fabric.run_dir = "/run";
  machine.nic().memif_socket = "/file/a.sock";
  EXPECT_THAT(machine.fault("memif").what, HasSubstr("is no folder"));
}

TEST(Check, MendsAreWordsOfAShell) {
  Software machine(NicDriver::kMemif);
  machine.fabric.run_dir = "/my run";
  EXPECT_THAT(machine.fault("run_dir").mend, HasSubstr("mkdir -p '/my run'"));
}

TEST(Check, MemifClientNeedsTheSocket) {
  Software machine(NicDriver::kMemif);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  machine.tree.path("sockets/a.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  ::chmod(machine.tree.path("sockets").c_str(), 0777);
  ::chmod(machine.tree.path("sockets/a.sock").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  EXPECT_THAT(as_nobody([&] { return machine.fault("memif"); }).what,
              HasSubstr("may not open " + machine.nic().memif_socket));
}

TEST(Check, MemifPathLength) {
  Software machine(NicDriver::kMemif);
  machine.nic().memif_socket = "/" + std::string(107, 'x');
  EXPECT_THAT(machine.fault("memif").what, HasSubstr("has 108 characters, the kernel takes 107"));
}

TEST(Check, OfAMeshEachSocketIsLookedAt) {
  Software machine(NicDriver::kMemif);
  machine.nic().memif_role = MemifRole::kMesh;
  Nic peer = machine.nic();
  peer.name = "ztcp1";
  machine.fabric.nics.push_back(peer);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  const std::string socket = machine.nic().memif_socket + "+ztcp0+ztcp1+0";
  machine.tree.add_file("sockets/a.sock+ztcp0+ztcp1+0", "");
  for (const Check& check : machine.of_severity(Severity::kFault))
    EXPECT_THAT(check.problem.what, HasSubstr(socket + " is there and is no socket"));
  EXPECT_EQ(machine.of_severity(Severity::kFault).size(), 2U) << "one on each side";
  for (Nic& nic : machine.fabric.nics) nic.memif_socket = "/" + std::string(93, 'x');
  for (const Check& check : machine.of_severity(Severity::kFault))
    EXPECT_THAT(check.problem.what, HasSubstr("has 108 characters, the kernel takes 107"));
  EXPECT_EQ(machine.of_severity(Severity::kFault).size(), 2U);
}

TEST(Check, TapIsWell) {
  const Software machine(NicDriver::kTap);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, TapInterfaceMissing) {
  Software machine(NicDriver::kTap);
  machine.nic().tap_interface = "tap1";
  EXPECT_THAT(machine.fault("tap").mend, HasSubstr("ip tuntap add dev tap1 mode tap"));
}

TEST(Check, TapDeviceAccess) {
  Software machine(NicDriver::kTap);
  ::chmod(machine.tree.path("dev/net/tun").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  EXPECT_THAT(as_nobody([&] { return machine.fault("tap"); }).what, HasSubstr("may not open"));
}

TEST(Check, TapMtu) {
  Software machine(NicDriver::kTap);
  machine.nic().mtu_bytes = 1500;
  EXPECT_THAT(machine.fault("mtu").what,
              HasSubstr("mtu_bytes = 1500 in the config, tap0 has 9001"));
}

// Nothing of the machine is asked for such a NIC: its transport would know what.
TEST(Check, KindsThatAreNotBuiltAreRefusedByName) {
  for (const NicDriver driver : {NicDriver::kSocket, NicDriver::kVerbs}) {
    Machine machine;
    machine.nic().driver = driver;
    const Problem problem = machine.fault("driver");
    EXPECT_EQ(problem.where, "ztcp0");
    EXPECT_THAT(problem.what,
                HasSubstr(fmt::format("driver = \"{}\" is not in this build",
                                      driver == NicDriver::kSocket ? "socket" : "verbs")));
    EXPECT_THAT(problem.mend, HasSubstr("ztcp_setup"));
  }
}

}  // namespace
}  // namespace ztcp::config
