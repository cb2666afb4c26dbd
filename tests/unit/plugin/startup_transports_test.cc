// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A start with NICs of two transports, and with a request for one.
#include "tests/unit/plugin/startup_host.h"

namespace ztcp::plugin {
namespace {

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
         .is_tunable = [](const config::Fabric&) { return true; },
         .create =
             [this](const config::Fabric& fabric) {
               created_ = fabric;
               return create(fabric, TransportKind::kSockets, other_error_);
             },
         .find_nics =
             [this](config::Fabric settings) { return over_interfaces(std::move(settings)); }});
  }
  std::optional<Error> other_error_;
  config::Fabric created_;  // With sockets.
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

TEST_F(TwoTransportsStart, OnlyNicsOfTheRequestedTransportAreUsed) {
  ask_for(config::TransportRequest::kSockets, "sockets");
  auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), (std::vector<std::string>{"tap0", "tap1"}));
  EXPECT_TRUE(contains(log_.infos()[0],
                       "ZTCP_TRANSPORT=sockets: 1 of the 3 NICs in /etc/ztcp.conf are not used"))
      << log_.infos()[0];
  ask_for(config::TransportRequest::kUstack, "ustack");
  startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), std::vector<std::string>{"ztcp0"});
}

TEST_F(TwoTransportsStart, SocketsByNameNeedNoConfig) {
  break_config(config::LoadFailure::kMissing, {});
  ask_for(config::TransportRequest::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(startup->devices[0].transport->kind(), TransportKind::kSockets);
  EXPECT_TRUE(log_.warnings().empty()) << log_.warned();
}

TEST_F(TwoTransportsStart, AMissingConfigThatTheUserNamedIsReported) {
  break_config(config::LoadFailure::kMissing, {});
  environment_.config_path = "/etc/ztcp.cnf";
  ask_for(config::TransportRequest::kSockets, "sockets");
  ASSERT_TRUE(start());
  EXPECT_TRUE(contains(log_.warned(), "ZTCP_CONFIG=/etc/ztcp.cnf: no such file")) << log_.warned();
}

// Its cluster key and timeouts apply all the same.
TEST_F(TwoTransportsStart, SocketsByNameTakeInterfacesWhereTheConfigHasNone) {
  std::erase_if(loaded_.fabric->nics,
                [](const auto& nic) { return nic.driver == config::NicDriver::kTap; });
  loaded_.fabric->tcp.connect_timeout_ms = 1234;
  ask_for(config::TransportRequest::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(names_of(*startup), (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(startup->connect_timeout, std::chrono::milliseconds(1234));
}

TEST_F(TwoTransportsStart, ChannelsAreChosenWhereAllNicsAreSockets) {
  EXPECT_FALSE(start()->tuned);
  EXPECT_EQ(log_.infos().size(), 3U) << "nothing to say of it";
  ask_for(config::TransportRequest::kUstack, "ustack");
  EXPECT_FALSE(start()->tuned);
  ask_for(config::TransportRequest::kSockets, "sockets");
  EXPECT_EQ(start()->tuned, TransportKind::kSockets);
  EXPECT_TRUE(contains(log_.infos().back(), "ZTCP_TUNER=off on all hosts leaves them to NCCL"))
      << log_.infos().back();
  environment_.untuned_by = "NCCL_MIN_NCHANNELS=8";
  EXPECT_FALSE(start()->tuned);
  EXPECT_TRUE(contains(log_.infos().back(), "NCCL_MIN_NCHANNELS=8: NCCL chooses its channels"))
      << log_.infos().back();
}

TEST_F(TwoTransportsStart, ChannelsAreChosenWhereTheTransportIsTunable) {
  for (config::Nic& nic : loaded_.fabric->nics)
    if (nic.driver != config::NicDriver::kTap) nic.nccl_devices = 4;
  EXPECT_FALSE(start()->tuned) << "there are sockets beside it";
  ask_for(config::TransportRequest::kUstack, "ustack");
  EXPECT_EQ(start()->tuned, TransportKind::kUstack);
  environment_.untuned_by = "ZTCP_TUNER=off";
  EXPECT_FALSE(start()->tuned);
}

// It goes into this rank's handles (plugin/agreement.h).
TEST_F(TwoTransportsStart, NcclsChannelsPerPeerAreKept) {
  EXPECT_EQ(start()->channels_per_peer, 0);
  environment_.channels_per_peer = 4;
  EXPECT_EQ(start()->channels_per_peer, 4);
}

TEST_F(TwoTransportsStart, TransportsAreToldWhetherChannelsAreChosen) {
  ask_for(config::TransportRequest::kSockets, "sockets");
  ASSERT_TRUE(start());
  EXPECT_TRUE(created_.tunes_channels);
  environment_.untuned_by = "ZTCP_TUNER=off";
  ASSERT_TRUE(start());
  EXPECT_FALSE(created_.tunes_channels);
}

TEST_F(TwoTransportsStart, SocketsWithoutAnInterfaceRefuse) {
  break_config(config::LoadFailure::kMissing, {});
  interfaces_error_ = "no interface fits NCCL_SOCKET_IFNAME=ens";
  ask_for(config::TransportRequest::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->transports.empty());
  EXPECT_TRUE(contains(startup->devices[0].refusal, "no interface fits NCCL_SOCKET_IFNAME=ens"));
}

TEST_F(TwoTransportsStart, AConfigWithoutNicsGivesSocketsItsSettings) {
  break_config(config::LoadFailure::kBroken, {{"ztcp.conf:1:1", "no NIC", ""}});
  loaded_.without_nics.emplace().tcp.connect_timeout_ms = 1234;
  EXPECT_TRUE(start()->transports.empty()) << "nobody said which";
  ask_for(config::TransportRequest::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->devices.size(), 2U);
  EXPECT_EQ(startup->connect_timeout, std::chrono::milliseconds(1234));
}

TEST_F(TwoTransportsStart, ABrokenConfigIsNotIgnoredForSockets) {
  break_config(config::LoadFailure::kBroken, {{"ztcp.conf:3:1", "mtu is \"big\"", ""}});
  ask_for(config::TransportRequest::kSockets, "sockets");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal, "mtu is \"big\""));
}

TEST_F(TwoTransportsStart, AFabricWithoutRequestedNicsRefuses) {
  std::erase_if(loaded_.fabric->nics,
                [](const auto& nic) { return nic.driver != config::NicDriver::kTap; });
  ask_for(config::TransportRequest::kUstack, "ustack");
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(contains(startup->devices[0].refusal,
                       "ZTCP_TRANSPORT=ustack, but /etc/ztcp.conf has no NIC for userspace TCP"))
      << startup->devices[0].refusal;
}

TEST_F(TwoTransportsStart, AFailedTransportRefusesAndTheOtherWorks) {
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

TEST_F(TwoTransportsStart, WithFallbackAFailedTransportFailsInit) {
  environment_.on_error = config::OnError::kFallback;
  other_error_ = Error{Errc::kNoDevice, 0, "interface"};
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(log_.warned(), "all hosts of the job must do the same")) << log_.warned();
}

}  // namespace
}  // namespace ztcp::plugin
