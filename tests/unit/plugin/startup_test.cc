// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/startup.h"

#include <algorithm>

#include "tests/unit/plugin/startup_host.h"

namespace ztcp::plugin {
namespace {

TEST_F(StartupTest, AHealthyHostLogsOneLinePerDevice) {
  const auto startup = start();
  ASSERT_TRUE(startup);
  ASSERT_EQ(startup->devices.size(), 1U);
  EXPECT_TRUE(startup->devices[0].refusal.empty());
  EXPECT_NE(startup->devices[0].transport, nullptr);
  EXPECT_TRUE(log_.warnings().empty());
  ASSERT_EQ(log_.infos().size(), 1U);
  EXPECT_TRUE(contains(log_.infos()[0], " ztcp0: in memory")) << log_.infos()[0];
}

// One line for a NIC, even if it is exposed several times.
TEST_F(StartupTest, ANicMayBeShownAsSeveralDevices) {
  loaded_.fabric->nics.resize(2, loaded_.fabric->nics.front());
  sources_.front().create = [](const config::Fabric&) {
    std::vector<DeviceProperties> devices(2);
    devices[0].name = "a";
    devices[0].speed_mbps = 100'000;
    devices[0].nccl_devices = 3;
    devices[1].name = "b";
    devices[1].speed_mbps = 25'000;
    devices[1].port = 2;
    devices[1].nccl_devices = 2;
    return Created(std::make_unique<test::MemoryTransport>(devices, TransportKind::kUstack));
  };
  loaded_.fabric->nics[1].rail = 7;
  const auto startup = start();
  ASSERT_TRUE(startup);
  struct Row {
    const char* name;
    int number;
    std::uint32_t speed_mbps;
    std::uint16_t port;
    int rail;
  } const rows[] = {{"a", 0, 33'333, 1, 0},
                    {"b", 1, 12'500, 2, 7},
                    {"a#2", 0, 33'333, 2, 0},
                    {"b#2", 1, 12'500, 3, 7},
                    {"a#3", 0, 33'333, 3, 0}};
  ASSERT_EQ(startup->devices.size(), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const Device& device = startup->devices[i];
    EXPECT_EQ(device.properties.name, rows[i].name);
    EXPECT_EQ(device.number, rows[i].number);
    EXPECT_EQ(device.properties.speed_mbps, rows[i].speed_mbps);
    EXPECT_EQ(device.properties.port, rows[i].port);
    EXPECT_EQ(device.rail, rows[i].rail);
    EXPECT_EQ(device.transport, startup->transports.front().get());
  }
  ASSERT_EQ(log_.infos().size(), 2U);
  EXPECT_TRUE(contains(log_.infos()[0], "; exposed to NCCL as 3 devices,")) << log_.infos()[0];
}

config::Nic merged_nic(const char* name, const char* merge) {
  config::Nic nic;
  nic.name = name;
  nic.merge = merge;
  return nic;
}

// The transport makes one device of them, and it is numbered as one here.
TEST_F(StartupTest, NicsThatTheConfigMergesAreOneDevice) {
  loaded_.fabric->nics = {merged_nic("a", ""), merged_nic("b", "pair"), merged_nic("c", "pair"),
                          merged_nic("d", "")};
  sources_.front().create = [](const config::Fabric& fabric) {
    std::vector<DeviceProperties> devices;
    for (const config::Nic& nic : fabric.nics)
      if (nic.name != "c") devices.emplace_back().name = config::device_name(nic);
    return Created(std::make_unique<test::MemoryTransport>(devices, TransportKind::kUstack));
  };
  const auto startup = start();
  ASSERT_TRUE(startup);
  ASSERT_EQ(startup->devices.size(), 3U);
  for (const int i : {0, 1, 2}) EXPECT_EQ(startup->devices[static_cast<std::size_t>(i)].number, i);
  EXPECT_EQ(startup->devices[1].properties.name, "pair");
  EXPECT_EQ(startup->devices[1].rail, 1);
  EXPECT_EQ(startup->devices[2].properties.name, "d");
  EXPECT_EQ(startup->devices[2].rail, 2);
}

TEST_F(StartupTest, ARailIsTheConfigsElseThePlace) {
  loaded_.fabric->nics = {merged_nic("a", ""), merged_nic("b", ""), merged_nic("c", "pair"),
                          merged_nic("d", "pair")};
  loaded_.fabric->nics[0].rail = 7;
  loaded_.fabric->nics[3].rail = 9;
  loaded_.fabric->nics[1].plane = 2;
  loaded_.fabric->nics[2].plane = loaded_.fabric->nics[3].plane = 3;
  host_problems_ = {};
  sources_.front().create = [](const config::Fabric&) {
    return Created(std::make_unique<test::MemoryTransport>(std::vector<DeviceProperties>(3),
                                                           TransportKind::kUstack));
  };
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->devices[0].rail, 7);
  EXPECT_EQ(startup->devices[1].rail, 1);
  EXPECT_EQ(startup->devices[2].rail, -1) << "of rails 2 and 9";
  EXPECT_EQ(startup->devices[0].plane, -1);
  EXPECT_EQ(startup->devices[1].plane, 2);
  EXPECT_EQ(startup->devices[2].plane, 3);
}

TEST_F(StartupTest, WithoutConfigInitFailsAndSaysHowToSetUp) {
  break_config(config::LoadFailure::kMissing, {});
  environment_.config_path = "/usr/local/tfabric/tools/config/ztcp.conf";
  EXPECT_FALSE(start());
  ASSERT_EQ(log_.warnings().size(), 1U);
  for (const char* part : {"/usr/local/tfabric/tools/config/ztcp.conf", "ztcp_setup",
                           "NCCL goes on without ztcp", "ZTCP_CONFIG", "ZTCP_TRANSPORT=sockets"})
    EXPECT_TRUE(contains(log_.warned(), part)) << part;
}

TEST_F(StartupTest, WithoutConfigAJobThatDemandsZtcpIsToldItEnds) {
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
  EXPECT_TRUE(startup->transports.empty());
  ASSERT_EQ(startup->devices.size(), 1U);
  EXPECT_EQ(startup->devices[0].properties.name, "ztcp-error");
  EXPECT_TRUE(startup->devices[0].properties.host_pointers);
  EXPECT_FALSE(startup->devices[0].properties.cuda_pointers);
  EXPECT_TRUE(startup->devices[0].properties.pci_path.empty());
  EXPECT_TRUE(contains(startup->devices[0].refusal, "ztcp.conf:3:1: mtu is \"big\""));
  EXPECT_TRUE(contains(startup->devices[0].refusal, "and 1 more"));
  EXPECT_TRUE(contains(log_.warned(), "ztcp.conf:9:1")) << "every problem is said";
}

TEST_F(StartupTest, AnUnreadableConfigIsNotAMissingOne) {
  break_config(config::LoadFailure::kUnreadable, {{"ztcp.conf", "permission denied", ""}});
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal, "permission denied"));
}

TEST_F(StartupTest, AnotherHostsConfigShowsItsDevicesAndRefuses) {
  host_problems_ = {{"host.machine_id", "written on A, this is B", "ztcp_setup"}};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->transports.empty());
  ASSERT_EQ(startup->devices.size(), 1U);
  EXPECT_EQ(startup->devices[0].properties.name, "ztcp0");
  EXPECT_EQ(startup->devices[0].properties.speed_mbps, 25000U);
  EXPECT_EQ(startup->devices[0].properties.max_comms, 4096);
  EXPECT_TRUE(contains(startup->devices[0].refusal, "written on A, this is B; mend: ztcp_setup"));
}

TEST_F(StartupTest, ATransportThatCannotStartRefuses) {
  transport_error_ = Error{Errc::kOutOfMemory, 0, "hugepages"};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal, "at hugepages"));
  EXPECT_EQ(startup->devices[0].properties.name, "ztcp0");
}

TEST_F(StartupTest, FallbackIsSoftAndWarnsThatAllMustFallBack) {
  environment_.on_error = config::OnError::kFallback;
  host_problems_ = {{"nic.ztcp0.mtu", "9000 wanted, 1500 found", ""}};
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(log_.warned(), "9000 wanted, 1500 found"));
  EXPECT_TRUE(contains(log_.warned(), "all hosts of the job must do the same"));
}

TEST_F(StartupTest, FallbackForbiddenByNcclIsReported) {
  environment_.on_error = config::OnError::kFallback;
  environment_.ztcp_is_demanded = true;
  host_problems_ = {{"nic.ztcp0.mtu", "9000 wanted, 1500 found", ""}};
  EXPECT_FALSE(start());
  EXPECT_FALSE(contains(log_.warned(), "goes on without ztcp")) << log_.warned();
  EXPECT_TRUE(contains(log_.warned(), "in spite of ZTCP_ON_ERROR=fallback")) << log_.warned();
}

TEST_F(StartupTest, AnUnknownTransportRefusesConnections) {
  for (const bool configured : {true, false}) {
    if (!configured) break_config(config::LoadFailure::kMissing, {});
    ask_for(config::TransportRequest::kUnknown, "socket");
    const auto startup = start();
    ASSERT_TRUE(startup) << "what was asked for by a wrong name must not be slow in silence";
    EXPECT_TRUE(startup->transports.empty());
    EXPECT_TRUE(contains(startup->devices[0].refusal,
                         "ZTCP_TRANSPORT=socket is none of sockets, ustack and verbs (did you "
                         "mean sockets?)"))
        << startup->devices[0].refusal;
  }
}

TEST_F(StartupTest, AnUnknownTunerValueRefusesConnections) {
  environment_.tuner_fault = "ZTCP_TUNER=no is neither on (1) nor off (0)";
  const auto startup = start();
  ASSERT_TRUE(startup) << "the other hosts' connections fail with the reason, too";
  EXPECT_TRUE(startup->transports.empty());
  EXPECT_EQ(startup->devices[0].refusal, environment_.tuner_fault);
  EXPECT_TRUE(contains(log_.warned(), environment_.tuner_fault)) << log_.warned();
}

// The others' number follows from the NICs and the tuner, and NCCL ends a job whose hosts differ.
TEST_F(StartupTest, AnUnknownValue_ShowsAsManyDevicesAsTheOtherHosts) {
  for (TransportSource& source : sources_) {
    source.is_tunable = [](const config::Fabric&) { return true; };
    source.nccl_devices = [](const config::Fabric& fabric, const config::Nic&) {
      return fabric.tunes_channels ? 3 : 1;
    };
  }
  for (std::string* const fault : {&environment_.tuner_fault, &environment_.collnet_fault}) {
    *fault = "is neither on (1) nor off (0)";
    const auto startup = start();
    ASSERT_TRUE(startup);
    EXPECT_EQ(startup->devices.size(), 3 * loaded_.fabric->nics.size());
    fault->clear();
  }
}

TEST_F(StartupTest, ATransportMissingInThisBuildIsRefused) {
  ask_for(config::TransportRequest::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal,
                       "ZTCP_TRANSPORT=sockets, but this build has no kernel sockets"));
}

TEST_F(StartupTest, TheUserspaceTcpNeedsAConfig) {
  ask_for(config::TransportRequest::kUstack, "ustack");
  EXPECT_TRUE(start());
  break_config(config::LoadFailure::kMissing, {});
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(log_.warned(), "no fabric config at")) << log_.warned();
}

TEST_F(StartupTest, AMisspeltVariableIsReported) {
  environment_.problems = {{"ZTCP_CONFG", "no such variable", "ZTCP_CONFIG"}};
  EXPECT_TRUE(start());
  EXPECT_TRUE(contains(log_.warned(), "ZTCP_CONFG"));
}

}  // namespace
}  // namespace ztcp::plugin
