// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/check/job_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"
#include "tools/ztcp_setup/check/library.h"

namespace ztcp::setup {
namespace {

using config::Check;
using config::Severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A host with one taken NIC, one kernel NIC, and the plugin at its place.
struct JobScene {
  ztcp::test::Tree tree{
      "pci path=pci0000:00/0000:00:04.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"
      "net path=pci0000:00/0000:00:04.0 name=ens4 mac=0a:00:00:00:00:04 mtu=9001 speed=-1\n"
      "pci path=pci0000:00/0000:00:06.0 id=1af4:1000 class=020000 numa=0 driver=virtio-pci\n"
      "net path=pci0000:00/0000:00:06.0/virtio2 name=eth6 mac=0a:00:00:00:00:06 mtu=9001 speed=-1\n"
      "file path=etc/ld.so.conf text=include /etc/ld.so.conf.d/*.conf\n"
      "file path=etc/ld.so.conf.d/a.conf text=# first\\n/usr/local/lib\n"
      "file path=etc/ld.so.conf.d/not-read text=/nowhere\n"
      "file path=usr/local/lib/libnccl-net.so text=ELF this "
      "libnccl-net.so is ztcp's\n"
      "file path=proc/self/status text=Cpus_allowed_list:\\t0-1,4-9\n"};
  mutable config::LiveMachine machine{tree.root()};
  config::Fabric fabric;
  tools::Variables variables;
  std::string program = "/usr/local/sbin/ztcp_setup";
  std::string default_interface;

  JobScene() {
    for (const char* pci : {"0000:00:05.0", "0000:00:06.0"}) {
      config::Nic& nic = fabric.nics.emplace_back();
      nic.driver = config::NicDriver::kPci;
      nic.pci = pci;
      nic.name = "ztcp" + std::to_string(fabric.nics.size() - 1);
    }
  }
  JobEnvironment job() const { return {machine, variables, program, default_interface}; }
  std::vector<Check> bad() const {
    std::vector<Check> found;
    for (const Check& check : check_job_environment(fabric, job()))
      if (check.severity != Severity::kGood) found.push_back(check);
    return found;
  }
  Check only() const {
    const auto found = bad();
    EXPECT_THAT(found, SizeIs(1));
    if (found.size() != 1) return {};
    EXPECT_FALSE(found[0].problem.mend.empty());
    return found[0];
  }
};

TEST(JobEnvironment, AGoodEnvironmentHasNoFindings) {
  JobScene scene;
  scene.variables = {{"NCCL_SOCKET_IFNAME", "ens"}, {"NCCL_NET", "ztcp"}};
  EXPECT_THAT(scene.bad(), IsEmpty());
  // NCCL_NET, library, CPUs.
  EXPECT_THAT(check_job_environment(scene.fabric, scene.job()), SizeIs(3));
}

TEST(JobEnvironment, LoaderFoldersAreListedInOrder) {
  JobScene scene;
  scene.variables = {{"LD_LIBRARY_PATH", "/a::/b"}};
  EXPECT_THAT(loader_folders(scene.job()), ElementsAre("/a", "/b", "/usr/local/lib", "/lib64",
                                                       "/usr/lib64", "/lib", "/usr/lib"));
}

TEST(JobEnvironment, AnotherPluginEarlierInThePathIsAFault) {
  JobScene scene;
  scene.tree.add_file("opt/libnccl-net.so", "ELF other");
  scene.variables = {{"LD_LIBRARY_PATH", "/opt"}};
  const Check check = scene.only();
  EXPECT_EQ(check.name, "library");
  EXPECT_EQ(check.severity, Severity::kFault);
  EXPECT_EQ(check.problem.where, "/opt/libnccl-net.so");
  EXPECT_THAT(check.problem.what, HasSubstr("before ztcp's /usr/local/lib/libnccl-net.so"));
  EXPECT_THAT(check.problem.mend,
              HasSubstr("mv /opt/libnccl-net.so /opt/off-libnccl-net.so && ldconfig"));
}

TEST(JobEnvironment, ThePluginsOriginIsNamed) {
  JobScene scene;
  scene.variables = {{"LD_LIBRARY_PATH", "/opt/amazon:/opt/hpcx/lib"}};
  scene.tree.add_file("opt/hpcx/lib/libnccl-net.so", "ELF stripped");
  EXPECT_THAT(scene.only().problem.what, HasSubstr("HPC-X"));
  scene.tree.add_file("opt/amazon/libnccl-net.so", "ELF NET/OFI Initializing aws-ofi-nccl 1.17");
  const Check check = scene.only();
  EXPECT_THAT(check.problem.what, HasSubstr("aws-ofi-nccl"));
  EXPECT_THAT(check.problem.mend, HasSubstr("LD_LIBRARY_PATH=/usr/local/lib:"));
}

TEST(JobEnvironment, TheEnvironmentOverridesNcclsFiles) {
  JobScene scene;
  scene.tree.add_file("etc/nccl.conf", "# site\nNCCL_SOCKET_IFNAME=ens5\n");
  Check check = scene.only();
  EXPECT_EQ(check.problem.where, "NCCL_SOCKET_IFNAME in /etc/nccl.conf");
  EXPECT_THAT(check.problem.what, HasSubstr("\"ens5\" matches nothing"));
  scene.tree.add_file("root/.nccl.conf", "NCCL_SOCKET_IFNAME=eth6\n");
  scene.variables = {{"HOME", "/root"}};
  EXPECT_EQ(scene.only().problem.where, "NCCL_SOCKET_IFNAME in /root/.nccl.conf");
  scene.variables = {{"HOME", "/root"}, {"NCCL_SOCKET_IFNAME", "ens4"}};
  EXPECT_THAT(scene.bad(), IsEmpty());
}

// The result of --check for NCCL_NET without any fault.
config::Problem demand_of(const JobScene& scene) {
  EXPECT_THAT(scene.bad(), IsEmpty());
  for (const Check& check : check_job_environment(scene.fabric, scene.job()))
    if (check.name == "nccl") return check.problem;
  return {};
}

TEST(JobEnvironment, ReportsWhetherNcclMayGoOnWithoutZtcp) {
  JobScene scene;
  scene.variables = {{"HOME", "/root"}};
  EXPECT_EQ(demand_of(scene).where, "NCCL_NET");
  EXPECT_THAT(demand_of(scene).what,
              HasSubstr("nor in /root/.nccl.conf or /etc/nccl.conf: where ztcp "
                        "can't start, NCCL silently goes on with its own network"));
  scene.tree.add_file("etc/nccl.conf", "# site\nNCCL_NET=ZTCP\n");
  EXPECT_EQ(demand_of(scene).where, "NCCL_NET in /etc/nccl.conf");
  EXPECT_THAT(demand_of(scene).what, HasSubstr("where ztcp can't start, the job ends"));
  scene.tree.add_file("root/.nccl.conf", "NCCL_NET=Socket\n");
  EXPECT_EQ(scene.only().problem.where, "NCCL_NET in /root/.nccl.conf");
  // Then the file in the home folder is not read.
  scene.variables["NCCL_CONF_FILE"] = "/site/nccl.conf";
  EXPECT_THAT(scene.only().problem.what, HasSubstr("names /site/nccl.conf, which can't be read"));
  scene.tree.add_file("site/nccl.conf", "NCCL_NET=ztcp\n");
  EXPECT_EQ(demand_of(scene).where, "NCCL_NET in /site/nccl.conf");
}

TEST(JobEnvironment, AnotherPluginWithoutOursIsAFault) {
  JobScene scene;
  scene.tree.add_file("usr/local/lib/libnccl-net.so", "ELF other");
  EXPECT_THAT(scene.only().problem.what, HasSubstr("is not in the loader's path"));
}

TEST(JobEnvironment, NoPluginIsAWarning) {
  JobScene scene;
  scene.tree.remove("usr/local/lib/libnccl-net.so");
  EXPECT_EQ(scene.only().severity, Severity::kWarning);
  EXPECT_THAT(scene.only().problem.mend, HasSubstr("install libnccl-net-ztcp"));
}

TEST(JobEnvironment, ThePluginOutsideTheLoadersPathIsNamed) {
  for (const auto& [program, folder] :
       {std::pair{"/opt/ztcp/sbin/ztcp_setup", "/opt/ztcp/lib/x86_64-linux-gnu"},
        std::pair{"/opt/ztcp/sbin/ztcp_setup", "/opt/ztcp/lib64"},
        std::pair{"/opt/ztcp/sbin/ztcp_setup", "/opt/ztcp/lib"},
        std::pair{"/home/a/build/tools/ztcp_setup/ztcp_setup", "/home/a/build/plugin"}}) {
    JobScene scene;
    scene.program = program;
    scene.tree.remove("usr/local/lib/libnccl-net.so");
    scene.tree.add_file(std::string(folder).substr(1) + "/libnccl-net.so",
                        "ELF this libnccl-net.so is ztcp's\n");
    const std::string mend = std::string("export LD_LIBRARY_PATH=") + folder + ":$LD_LIBRARY_PATH";
    EXPECT_EQ(scene.only().problem.mend, mend);
    scene.tree.add_file("usr/local/lib/libnccl-net.so", "ELF other");
    EXPECT_EQ(scene.only().severity, Severity::kFault);
    EXPECT_EQ(scene.only().problem.mend, mend);
  }
}

struct Case {
  const char* name;
  const char* variable;
  const char* value;
  Severity severity;
  const char* what;
};
class Variable : public testing::TestWithParam<Case> {};

TEST_P(Variable, WrongVariablesAreReported) {
  JobScene scene;
  scene.tree.add_folder("sys/class/infiniband");
  scene.variables = {{GetParam().variable, GetParam().value}};
  const Check check = scene.only();
  EXPECT_EQ(check.severity, GetParam().severity);
  EXPECT_EQ(check.problem.where, GetParam().variable);
  EXPECT_THAT(check.problem.what, HasSubstr(GetParam().what));
}

INSTANTIATE_TEST_SUITE_P(
    Name, Variable,
    testing::Values(
        Case{"socket_interface_gone", "NCCL_SOCKET_IFNAME", "ens5", Severity::kFault,
             "\"ens5\" matches nothing"},
        Case{"socket_interface_exact", "NCCL_SOCKET_IFNAME", "=ens", Severity::kFault,
             "\"ens\" matches nothing"},
        Case{"socket_interface_in_list", "NCCL_SOCKET_IFNAME", "ens4,ens5", Severity::kFault,
             "\"ens5\" matches nothing"},
        Case{"socket_interface_of_ours", "NCCL_SOCKET_IFNAME", "eth", Severity::kFault,
             "names eth6, which ztcp uses as ztcp1"},
        Case{"hca_gone", "NCCL_IB_HCA", "mlx5_0:1", Severity::kFault, "\"mlx5_0\" matches nothing"},
        Case{"plugin_off", "NCCL_NET_PLUGIN", "none", Severity::kWarning,
             "NCCL does not load ztcp"},
        Case{"other_network", "NCCL_NET", "Socket", Severity::kWarning, "is \"Socket\", not ztcp"}),
    [](const auto& row) { return row.param.name; });

TEST(JobEnvironment, TheMendKeepsTheValidNames) {
  JobScene scene;
  scene.variables = {{"NCCL_SOCKET_IFNAME", "ens5"}};
  EXPECT_EQ(scene.only().problem.mend, "unset NCCL_SOCKET_IFNAME");
  scene.default_interface = "ens4";
  EXPECT_EQ(scene.only().problem.mend, "export NCCL_SOCKET_IFNAME='=ens4'");
  scene.variables = {{"NCCL_SOCKET_IFNAME", "eth,lo,ens4"}};
  scene.tree.add_folder("sys/class/net/lo");
  EXPECT_EQ(scene.only().problem.mend, "export NCCL_SOCKET_IFNAME='=lo,ens4'");
  scene.tree.add_folder("sys/class/infiniband/mlx5_1");
  scene.variables = {{"NCCL_IB_HCA", "mlx5_0:1,mlx5_1:2"}};
  EXPECT_EQ(scene.only().problem.mend, "export NCCL_IB_HCA='=mlx5_1:2'");
  scene.variables.clear();
  scene.tree.add_file("etc/nccl.conf", "NCCL_IB_HCA=mlx5_0\n");
  EXPECT_EQ(scene.only().problem.mend, "sudo sed -i '/^NCCL_IB_HCA=/d' /etc/nccl.conf");
}

TEST(JobEnvironment, FindsTheInterfaceOfTheDefaultRoute) {
  config::Network network;
  const auto add = [&](const char* name, bool ipv6, std::uint32_t table, std::uint32_t metric) {
    config::Interface& interface = network.interfaces.emplace_back();
    interface.index = static_cast<std::uint32_t>(network.interfaces.size()) + 1;
    interface.name = name;
    config::Route& route = network.routes.emplace_back();
    route.ipv6 = ipv6;
    route.table = table;
    route.metric = metric;
    route.interface = interface.index;
  };
  EXPECT_EQ(default_interface(network), "");
  add("eth9", false, 1001, 0);
  EXPECT_EQ(default_interface(network), "") << "of another table";
  add("eth8", true, 254, 50);
  EXPECT_EQ(default_interface(network), "eth8");
  add("eth1", false, 254, 200);
  add("eth0", false, 254, 100);
  EXPECT_EQ(default_interface(network), "eth0");
}

TEST(JobEnvironment, EveryWayToAskForZtcpIsRight) {
  for (const char* plugin : {"ztcp", "libnccl-net-ztcp.so", "/opt/ztcp/lib/libnccl-net.so"}) {
    JobScene scene;
    for (const char* file : {"usr/local/lib/libnccl-net-ztcp.so", "opt/ztcp/lib/libnccl-net.so"})
      scene.tree.add_file(file, "ELF this libnccl-net.so is ztcp's\n");
    // Then a library before it does not matter.
    scene.tree.add_file("opt/hpcx/lib/libnccl-net.so", "ELF stripped");
    scene.variables = {{"NCCL_NET_PLUGIN", plugin}, {"LD_LIBRARY_PATH", "/opt/hpcx/lib"}};
    EXPECT_THAT(scene.bad(), IsEmpty()) << plugin;
  }
}

TEST(JobEnvironment, AnotherPluginThatIsNamedIsAFault) {
  JobScene scene;
  scene.tree.add_file("opt/amazon/libnccl-net.so", "ELF NET/OFI");
  scene.tree.add_file("usr/lib/libnccl-net-ofi.so", "ELF NET/OFI");
  for (const char* plugin : {"/opt/amazon/libnccl-net.so", "ofi", "ofi,ztcp"}) {
    scene.variables = {{"NCCL_NET_PLUGIN", plugin}};
    const Check check = scene.only();
    EXPECT_EQ(check.severity, Severity::kFault) << plugin;
    EXPECT_THAT(check.problem.what, HasSubstr("is aws-ofi-nccl")) << plugin;
    EXPECT_EQ(check.problem.mend, "unset NCCL_NET_PLUGIN");
  }
  for (const char* plugin : {"/opt/gone/libnccl-net.so", "ztcp"}) {
    scene.variables = {{"NCCL_NET_PLUGIN", plugin}};
    EXPECT_THAT(scene.only().problem.what, HasSubstr("NCCL loads no plugin")) << plugin;
  }
}

TEST(JobEnvironment, ACpuOutsideTheMaskIsAWarning) {
  JobScene scene;
  scene.fabric.poller.cpus = {1, 3, 99};
  const Check check = scene.only();
  EXPECT_EQ(check.problem.where, "poller.cpus");
  EXPECT_THAT(check.problem.what, HasSubstr("names CPU 3, 99, which this process may not use"));
}

TEST(JobEnvironment, ExcludedNamesNeedNoMatch) {
  JobScene scene;
  scene.variables = {{"NCCL_SOCKET_IFNAME", "^docker0,eth6"}};
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(JobEnvironment, TooFewCpusForPollersAreAWarning) {
  JobScene scene;
  scene.tree.add_file("proc/self/status", "Cpus_allowed_list:\t0-3\n");
  const Check check = scene.only();
  EXPECT_EQ(check.name, "cpus");
  EXPECT_THAT(check.problem.what, HasSubstr("4 CPUs (0-3) for 2 NICs"));
}

TEST(JobEnvironment, TooFewCpusForWorkersAreAWarning) {
  JobScene scene;
  EXPECT_THAT(scene.bad(), IsEmpty());
  scene.fabric.poller.workers = 2;
  const Check check = scene.only();
  EXPECT_EQ(check.name, "cpus");
  EXPECT_THAT(check.problem.what, HasSubstr("pollers, their workers and NCCL's threads need 10"));
  EXPECT_THAT(check.problem.mend, HasSubstr("remove workers = 2 from [poller]"));
}

TEST(JobEnvironment, DisabledRdmaIsAWarning) {
  JobScene scene;
  scene.variables["NCCL_IB_DISABLE"] = "1";
  EXPECT_THAT(scene.bad(), IsEmpty()) << "no NIC is meant";
  scene.fabric.nics[1].driver = config::NicDriver::kVerbs;
  const Check check = scene.only();
  EXPECT_THAT(check.problem.what, HasSubstr("all RDMA devices of the config refuse"));
  EXPECT_EQ(check.problem.mend, "unset NCCL_IB_DISABLE");
}

TEST(JobEnvironment, EachQueueNeedsACpu) {
  JobScene scene;
  scene.fabric.nics[1].queues = 4;
  EXPECT_THAT(scene.only().problem.what, HasSubstr("need 9 and will share"));
  scene.fabric.nics[1].queues = config::kAutoQueues;
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(JobEnvironment, TheCgroupsCpuLimitCounts) {
  JobScene scene;
  scene.tree.add_file("proc/self/cgroup", "0::/job\n");
  scene.tree.add_file("sys/fs/cgroup/job/cpu.max", "300000 100000\n");
  const Check check = scene.only();
  EXPECT_EQ(check.name, "cpus");
  EXPECT_THAT(check.problem.what, HasSubstr("time of 3 CPUs, by the cgroup's limit, for 2 NICs"));
  scene.tree.add_file("sys/fs/cgroup/job/cpu.max", "6400000 100000\n");
  EXPECT_THAT(scene.bad(), IsEmpty());
}

TEST(JobEnvironment, SharedPollersAreNoWarning) {
  JobScene scene;
  scene.tree.add_file("proc/self/status", "Cpus_allowed_list:\t0\n");
  scene.fabric.poller.mode = config::PollerMode::kShared;
  EXPECT_THAT(scene.bad(), IsEmpty());
}

}  // namespace
}  // namespace ztcp::setup
