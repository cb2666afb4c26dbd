// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/startup.h"

#include <gtest/gtest.h>

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
    return start_up({.load =
                         [this](const std::string& path) {
                           loaded_.path = path;
                           return loaded_;
                         },
                     .check_host = [this](const config::Fabric&) { return host_problems_; },
                     .transports = sources_},
                    environment_, "host-a");
  }

  static Created create(const config::Fabric& fabric, TransportKind kind,
                        const std::optional<Error>& error) {
    if (error) return in_words(tl::unexpected<Error>(*error));
    std::vector<DeviceProperties> devices(fabric.nics.size());
    for (std::size_t i = 0; i < devices.size(); ++i) devices[i].name = fabric.nics[i].name;
    return std::make_unique<test::MemoryTransport>(std::move(devices), kind);
  }

  // Two interfaces, or what went wrong.
  tl::expected<config::Fabric, std::string> over_interfaces(config::Fabric settings) {
    if (!interfaces_error_.empty()) return tl::unexpected(interfaces_error_);
    settings.chosen_by = "NCCL_SOCKET_IFNAME=eth";
    for (const char* name : {"eth0", "eth1"}) {
      settings.nics.emplace_back();
      settings.nics.back().name = name;
      settings.nics.back().driver = config::NicDriver::kTap;
    }
    return settings;
  }

  void ask_for(config::TransportWish wish, std::string text) {
    environment_.transport = wish;
    environment_.transport_text = std::move(text);
  }

  void break_config(config::LoadFailure failure, config::Problems problems) {
    loaded_.fabric.reset();
    loaded_.failure = failure;
    loaded_.problems = std::move(problems);
  }

  config::LoadResult loaded_{one_nic_fabric(), {}, {}, {}};
  config::Problems host_problems_;
  std::optional<Error> transport_error_;
  std::string interfaces_error_;
  std::vector<TransportSource> sources_ = {
      {.kind = TransportKind::kUstack,
       .carries = [](const config::Nic& nic) { return nic.driver != config::NicDriver::kTap; },
       .create =
           [this](const config::Fabric& fabric) {
             return create(fabric, TransportKind::kUstack, transport_error_);
           },
       .find_nics = nullptr}};
  config::Environment environment_;
  test::LogCapture log_;
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(StartupTest, AHealthyHostSaysOneLinePerDevice) {
  const auto startup = start();
  ASSERT_TRUE(startup);
  ASSERT_EQ(startup->devices.size(), 1U);
  EXPECT_TRUE(startup->devices[0].refusal.empty());
  EXPECT_NE(startup->devices[0].transport, nullptr);
  EXPECT_TRUE(log_.warnings().empty());
  ASSERT_EQ(log_.infos().size(), 1U);
  EXPECT_TRUE(contains(log_.infos()[0], " ztcp0: in memory")) << log_.infos()[0];
}

config::Nic merged_nic(const char* name, const char* merge) {
  config::Nic nic;
  nic.name = name;
  nic.merge = merge;
  return nic;
}

// The transport makes one device of them, and so it is numbered here.
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

TEST_F(StartupTest, ARailIsWhatTheConfigSaysElseThePlace) {
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

TEST_F(StartupTest, FallbackThatNcclForbidsIsNotPromised) {
  environment_.on_error = config::OnError::kFallback;
  environment_.ztcp_is_demanded = true;
  host_problems_ = {{"nic.ztcp0.mtu", "9000 wanted, 1500 found", ""}};
  EXPECT_FALSE(start());
  EXPECT_FALSE(contains(log_.warned(), "goes on without ztcp")) << log_.warned();
  EXPECT_TRUE(contains(log_.warned(), "in spite of ZTCP_ON_ERROR=fallback")) << log_.warned();
}

std::vector<std::string> names_of(const Startup& startup) {
  std::vector<std::string> names;
  for (const Device& device : startup.devices) names.push_back(device.properties.name);
  return names;
}

TEST_F(StartupTest, ATransportThatIsNoneIsRefusedAndSoHeardOf) {
  for (const bool configured : {true, false}) {
    if (!configured) break_config(config::LoadFailure::kMissing, {});
    ask_for(config::TransportWish::kUnknown, "socket");
    const auto startup = start();
    ASSERT_TRUE(startup) << "what was asked for by a wrong name must not be slow in silence";
    EXPECT_TRUE(startup->transports.empty());
    EXPECT_TRUE(contains(startup->devices[0].refusal,
                         "ZTCP_TRANSPORT=socket is none of sockets, ustack and verbs (did you "
                         "mean sockets?)"))
        << startup->devices[0].refusal;
  }
}

TEST_F(StartupTest, ATransportThatThisBuildLacksIsRefused) {
  ask_for(config::TransportWish::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal,
                       "ZTCP_TRANSPORT=sockets, but this build has no kernel sockets"));
}

TEST_F(StartupTest, TheUserspaceTcpNeedsAConfig) {
  ask_for(config::TransportWish::kUstack, "ustack");
  EXPECT_TRUE(start());
  break_config(config::LoadFailure::kMissing, {});
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(log_.warned(), "no fabric config at")) << log_.warned();
}

TEST_F(StartupTest, AMisspeltVariableIsSaid) {
  environment_.problems = {{"ZTCP_CONFG", "no such variable", "ZTCP_CONFIG"}};
  EXPECT_TRUE(start());
  EXPECT_TRUE(contains(log_.warned(), "ZTCP_CONFG"));
}

// One host with NICs of two transports.
class TwoTransportsStart : public StartupTest {
 protected:
  TwoTransportsStart() {
    config::Nic other = loaded_.fabric->nics[0];
    other.name = "tap0";
    other.driver = config::NicDriver::kTap;
    loaded_.fabric->nics.insert(loaded_.fabric->nics.begin(), other);
    other.name = "tap1";
    loaded_.fabric->nics.push_back(other);
    sources_.push_back(
        {.kind = TransportKind::kSockets,
         .carries = [](const config::Nic& nic) { return nic.driver == config::NicDriver::kTap; },
         .create =
             [this](const config::Fabric& fabric) {
               return create(fabric, TransportKind::kSockets, other_error_);
             },
         .find_nics =
             [this](config::Fabric settings) { return over_interfaces(std::move(settings)); }});
  }
  std::optional<Error> other_error_;
};

TEST_F(TwoTransportsStart, DevicesKeepTheOrderOfTheConfig) {
  const auto startup = start();
  ASSERT_TRUE(startup);
  ASSERT_EQ(startup->transports.size(), 2U);
  ASSERT_EQ(startup->devices.size(), 3U);
  const auto& devices = startup->devices;
  EXPECT_EQ(devices[0].properties.name, "tap0");
  EXPECT_EQ(devices[1].properties.name, "ztcp0");
  EXPECT_EQ(devices[2].properties.name, "tap1");
  EXPECT_EQ(devices[0].transport, devices[2].transport);
  EXPECT_NE(devices[0].transport, devices[1].transport);
  EXPECT_EQ(devices[0].number, 0);
  EXPECT_EQ(devices[1].number, 0);
  EXPECT_EQ(devices[2].number, 1);
  EXPECT_EQ(log_.infos().size(), 3U);
}

TEST_F(TwoTransportsStart, OnlyTheNicsOfTheTransportThatWasAskedForAreUsed) {
  ask_for(config::TransportWish::kSockets, "sockets");
  auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), (std::vector<std::string>{"tap0", "tap1"}));
  EXPECT_TRUE(contains(log_.infos()[0],
                       "ZTCP_TRANSPORT=sockets: 1 of the 3 NICs of /etc/ztcp.conf are left alone"))
      << log_.infos()[0];
  ask_for(config::TransportWish::kUstack, "ustack");
  startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), std::vector<std::string>{"ztcp0"});
}

TEST_F(TwoTransportsStart, SocketsByNameNeedNoConfig) {
  break_config(config::LoadFailure::kMissing, {});
  ask_for(config::TransportWish::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(startup->devices[0].transport->kind(), TransportKind::kSockets);
  EXPECT_TRUE(log_.warnings().empty()) << log_.warned();
}

// Its cluster key and timeouts hold all the same.
TEST_F(TwoTransportsStart, SocketsByNameTakeInterfacesWhereTheConfigHasNone) {
  std::erase_if(loaded_.fabric->nics,
                [](const auto& nic) { return nic.driver == config::NicDriver::kTap; });
  loaded_.fabric->tcp.connect_timeout_ms = 1234;
  ask_for(config::TransportWish::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(startup->connect_timeout, std::chrono::milliseconds(1234));
}

TEST_F(TwoTransportsStart, SocketsWithoutAnInterfaceRefuse) {
  break_config(config::LoadFailure::kMissing, {});
  interfaces_error_ = "no interface fits NCCL_SOCKET_IFNAME=ens";
  ask_for(config::TransportWish::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->transports.empty());
  EXPECT_TRUE(contains(startup->devices[0].refusal, "no interface fits NCCL_SOCKET_IFNAME=ens"));
}

TEST_F(TwoTransportsStart, ABrokenConfigIsNotPassedByForSockets) {
  break_config(config::LoadFailure::kBroken, {{"ztcp.conf:3:1", "mtu is \"big\"", ""}});
  ask_for(config::TransportWish::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal, "mtu is \"big\""));
}

TEST_F(TwoTransportsStart, AFabricWithoutTheWishedNicsRefuses) {
  std::erase_if(loaded_.fabric->nics,
                [](const auto& nic) { return nic.driver != config::NicDriver::kTap; });
  ask_for(config::TransportWish::kUstack, "ustack");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal,
                       "ZTCP_TRANSPORT=ustack, but /etc/ztcp.conf has no NIC for userspace TCP"))
      << startup->devices[0].refusal;
}

TEST_F(TwoTransportsStart, OneThatCannotStartRefusesByNameAndTheOtherServes) {
  other_error_ = Error{Errc::kNoDevice, 0, "interface"};
  const auto startup = start();
  ASSERT_TRUE(startup);
  ASSERT_EQ(startup->transports.size(), 1U);
  ASSERT_EQ(startup->devices.size(), 3U);
  EXPECT_EQ(startup->devices[0].transport, nullptr);
  EXPECT_TRUE(contains(startup->devices[0].refusal, "the kernel sockets transport can't start"));
  EXPECT_EQ(startup->devices[1].transport, startup->transports[0].get());
  EXPECT_TRUE(startup->devices[1].refusal.empty());
  EXPECT_TRUE(contains(log_.warned(), "tap1: the kernel sockets transport can't start"))
      << log_.warned();
  EXPECT_TRUE(contains(log_.warned(), "those over the other NICs are not"));
}

TEST_F(TwoTransportsStart, WithFallbackOneThatCannotStartTakesTheOtherDown) {
  environment_.on_error = config::OnError::kFallback;
  other_error_ = Error{Errc::kNoDevice, 0, "interface"};
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(log_.warned(), "all hosts of the job must do the same")) << log_.warned();
}

}  // namespace
}  // namespace ztcp::plugin
