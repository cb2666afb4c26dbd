// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/startup.h"

#include <gtest/gtest.h>

#include "plugin/device_lines.h"
#include "tests/support/log_capture.h"
#include "tests/support/memory_transport.h"

namespace ztcp::plugin {
namespace {

config::Fabric one_nic_fabric() {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  config::Nic nic;
  nic.name = "ztcp0";
  nic.driver = config::NicDriver::kMemif;
  nic.memif_socket = "/run/ztcp.sock";
  nic.memif_id = 3;
  nic.address = *parse_ipv4_prefix("10.77.1.10/24");
  nic.mtu_bytes = 9000;
  nic.speed_mbps = 25000;
  fabric.nics.push_back(nic);
  return fabric;
}

// A healthy host; each test breaks one thing.
class StartupTest : public testing::Test {
 protected:
  Told<Startup> start() {
    return start_up(
        {.load =
             [this](const std::string& path) {
               loaded_.path = path;
               return loaded_;
             },
         .check_host = [this](const config::Fabric&) { return host_problems_; },
         .create_transport =
             [this](const config::Fabric& fabric) -> Result<std::unique_ptr<Transport>> {
           if (transport_error_) return tl::unexpected<Error>(*transport_error_);
           std::vector<DeviceProperties> devices(fabric.nics.size());
           for (std::size_t i = 0; i < devices.size(); ++i) {
             devices[i].name = fabric.nics[i].name;
             devices[i].speed_mbps = fabric.nics[i].speed_mbps;
           }
           return std::make_unique<test::MemoryTransport>(std::move(devices));
         }},
        environment_, "host-a");
  }

  void break_config(config::LoadFailure failure, config::Problems problems) {
    loaded_.fabric.reset();
    loaded_.failure = failure;
    loaded_.problems = std::move(problems);
  }

  config::LoadResult loaded_{one_nic_fabric(), {}, {}, {}};
  config::Problems host_problems_;
  std::optional<Error> transport_error_;
  config::Environment environment_;
  test::LogCapture log_;
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(StartupTest, AHealthyHostSaysOneLinePerDevice) {
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->refusal.empty());
  EXPECT_NE(startup->transport, nullptr);
  EXPECT_EQ(startup->devices.size(), 1U);
  EXPECT_TRUE(log_.warnings().empty());
  ASSERT_EQ(log_.infos().size(), 1U);
  for (const char* part :
       {"ztcp0", "memif /run/ztcp.sock 3", "10.77.1.10/24", "25000 Mb/s", "any GPU",
        "NUMA node unknown", "MTU 9000", "no hugepages", "sends copy once", "GPUDirect RDMA off"})
    EXPECT_TRUE(contains(log_.infos()[0], part)) << part << " in " << log_.infos()[0];
}

TEST_F(StartupTest, WithoutConfigInitFailsAndSaysHowToSetUp) {
  break_config(config::LoadFailure::kMissing, {});
  environment_.config_path = "/usr/local/tfabric/tools/config/ztcp.conf";
  EXPECT_FALSE(start());
  ASSERT_EQ(log_.warnings().size(), 1U);
  for (const char* part : {"/usr/local/tfabric/tools/config/ztcp.conf", "ztcp_setup",
                           "NCCL goes on without ztcp", "ZTCP_CONFIG"})
    EXPECT_TRUE(contains(log_.warned(), part)) << part;
}

TEST_F(StartupTest, WithoutConfigAJobThatDemandsZtcpHearsThatItEnds) {
  break_config(config::LoadFailure::kMissing, {});
  environment_.ztcp_is_demanded = true;
  EXPECT_FALSE(start());
  EXPECT_FALSE(contains(log_.warned(), "goes on without ztcp")) << log_.warned();
  EXPECT_TRUE(contains(log_.warned(), "the job ends here: NCCL_NET=ztcp")) << log_.warned();
}

TEST_F(StartupTest, ABrokenConfigShowsOneErrorDeviceAndRefuses) {
  break_config(config::LoadFailure::kBroken, {{"ztcp.conf:3:1", "mtu is \"big\"", "set mtu = 1500"},
                                              {"ztcp.conf:9:1", "no such key", ""}});
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->transport, nullptr);
  ASSERT_EQ(startup->devices.size(), 1U);
  EXPECT_EQ(startup->devices[0].name, "ztcp-error");
  EXPECT_TRUE(startup->devices[0].host_pointers);
  EXPECT_FALSE(startup->devices[0].cuda_pointers);
  EXPECT_TRUE(startup->devices[0].pci_path.empty());
  EXPECT_TRUE(contains(startup->refusal, "ztcp.conf:3:1: mtu is \"big\""));
  EXPECT_TRUE(contains(startup->refusal, "and 1 more"));
  EXPECT_TRUE(contains(log_.warned(), "ztcp.conf:9:1")) << "every problem is said";
}

TEST_F(StartupTest, AnUnreadableConfigIsNotAMissingOne) {
  break_config(config::LoadFailure::kUnreadable, {{"ztcp.conf", "permission denied", ""}});
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->refusal, "permission denied"));
}

TEST_F(StartupTest, AnotherHostsConfigShowsItsDevicesAndRefuses) {
  host_problems_ = {{"host.machine_id", "written on A, this is B", "ztcp_setup"}};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->transport, nullptr);
  ASSERT_EQ(startup->devices.size(), 1U);
  EXPECT_EQ(startup->devices[0].name, "ztcp0");
  EXPECT_EQ(startup->devices[0].speed_mbps, 25000U);
  EXPECT_EQ(startup->devices[0].max_comms, 4096);
  EXPECT_TRUE(contains(startup->refusal, "written on A, this is B; mend: ztcp_setup"));
}

TEST_F(StartupTest, ATransportThatCannotStartRefuses) {
  transport_error_ = Error{Errc::kOutOfMemory, 0, "hugepages"};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->refusal, "at hugepages"));
  EXPECT_EQ(startup->devices[0].name, "ztcp0");
}

TEST_F(StartupTest, FallbackIsSoftAndWarnsThatAllMustFallBack) {
  environment_.on_error = config::OnError::kFallback;
  host_problems_ = {{"nic.ztcp0.mtu", "9000 wanted, 1500 found", ""}};
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(log_.warned(), "9000 wanted, 1500 found"));
  EXPECT_TRUE(contains(log_.warned(), "all hosts of the job must do the same"));
}

TEST_F(StartupTest, FallbackThatNcclForbidsIsNotPromised) {
  environment_.on_error = config::OnError::kFallback;
  environment_.ztcp_is_demanded = true;
  host_problems_ = {{"nic.ztcp0.mtu", "9000 wanted, 1500 found", ""}};
  EXPECT_FALSE(start());
  EXPECT_FALSE(contains(log_.warned(), "goes on without ztcp")) << log_.warned();
  EXPECT_TRUE(contains(log_.warned(), "in spite of ZTCP_ON_ERROR=fallback")) << log_.warned();
}

TEST_F(StartupTest, AMisspeltVariableIsSaid) {
  environment_.problems = {{"ZTCP_CONFG", "no such variable", "ZTCP_CONFIG"}};
  EXPECT_TRUE(start());
  EXPECT_TRUE(contains(log_.warned(), "ZTCP_CONFG"));
}

TEST_F(StartupTest, ASpeedThatNobodyToldIsCalledAGuess) {
  loaded_.fabric->nics[0].speed_mbps = 0;
  ASSERT_TRUE(start());
  ASSERT_EQ(log_.infos().size(), 1U);
  EXPECT_TRUE(contains(log_.infos()[0], "Mb/s (a guess: speed_mbps is 0 in the config)"))
      << log_.infos()[0];
  loaded_.fabric->nics[0].driver = config::NicDriver::kPci;
  ASSERT_TRUE(start());
  EXPECT_TRUE(contains(log_.infos()[1], "ztcp_setup --speed MBPS states it")) << log_.infos()[1];
}

struct LineCase {
  const char* name;
  config::NicDriver driver;
  config::HostClass host_class;
  const char* expected;
};

class DeviceLine : public testing::TestWithParam<LineCase> {};

TEST_P(DeviceLine, SaysWhyWhatIsOffIsOff) {
  config::Fabric fabric = one_nic_fabric();
  config::Nic& nic = fabric.nics[0];
  nic.driver = GetParam().driver;
  nic.pci = "0000:3b:00.0";
  nic.tap_interface = "ztap0";
  nic.gpu_pci = "0000:17:00.0";
  nic.numa_node = 1;
  fabric.host.host_class = GetParam().host_class;
  fabric.hugepages.page_kib = 2048;
  DeviceProperties device;
  device.name = "ztcp0";
  const std::string line = device_line(fabric, nic, device);
  EXPECT_FALSE(contains(line, "a guess")) << line;
  EXPECT_TRUE(contains(line, GetParam().expected)) << line;
  EXPECT_TRUE(contains(line, "GPU 0000:17:00.0, NUMA node 1")) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, DeviceLine,
    testing::Values(
        LineCase{
            "iommu", config::NicDriver::kPci, config::HostClass::kIommu,
            "2 MiB pages, at most 5120 MiB for each GPU of a process; kernel bypass, zero-copy"},
        LineCase{"no_iommu", config::NicDriver::kPci, config::HostClass::kNoIommu,
                 "without an IOMMU user pages may move"},
        LineCase{"tap", config::NicDriver::kTap, config::HostClass::kUnprivileged,
                 "kernel bypass off"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ztcp::plugin
