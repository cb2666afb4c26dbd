// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A job that starts before its NIC has a carrier: a port negotiates, or a switch starts.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/listen_address.h"
#include "tests/support/cpu_share.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

using namespace test;

using namespace std::chrono_literals;

// Two processes whose NICs are joined by a cable; `state` is the carrier of the first.
struct Cabled {
  explicit Cabled(
      LinkState at_start, const HostOptions& options = {},
      const std::function<void(config::Fabric&)>& change = [](config::Fabric&) {})
      : state(at_start) {
    link::MemoryLinkOptions cable;
    cable.mtu_bytes = options.mtu_bytes;
    cable.states = {&state, nullptr};
    auto links = link::make_memory_links(cable);
    const std::array sources = {std::make_shared<MemoryNics>(), std::make_shared<MemoryNics>()};
    sources[0]->add("mem0", std::move(links.first));
    sources[1]->add("mem1", std::move(links.second));
    config::Fabric fabric = one_nic_fabric(0, options);
    change(fabric);
    here = *create(fabric, test::cpus_of_this_process(), nullptr, sources[0]);
    there = *create(one_nic_fabric(1, options), test::cpus_of_this_process(), nullptr, sources[1]);
  }

  std::atomic<LinkState> state;
  std::unique_ptr<Transport> here;
  std::unique_ptr<Transport> there;
};

// The link is down for longer than handshake_timeout_ms, which applies to peers only, and shorter
// than tcp.connect_timeout_ms.
TEST(LateLink, ConnectWaitsForTheCarrier) {
  Cabled cabled(LinkState::kDown, {.handshake_timeout_ms = 500});

  std::thread carrier([&] {
    std::this_thread::sleep_for(800ms);
    cabled.state.store(LinkState::kUp);
  });
  const Pair pair = connect(*cabled.here, *cabled.there);
  carrier.join();
  EXPECT_NE(pair.sender, nullptr);
  EXPECT_NE(pair.receiver, nullptr);
}

// Connects two NICs of this driver, pulls the cable of the first, and puts it back.
std::vector<std::string> lines_of_an_outage(config::NicDriver driver) {
  Cabled cabled(LinkState::kUp, {}, [driver](config::Fabric& fabric) {
    fabric.nics[0].driver = driver;
    fabric.nics[0].tap_interface = "tap7";
  });
  test::LogCapture log;
  const Pair pair = connect(*cabled.here, *cabled.there);
  EXPECT_NE(pair.sender, nullptr);
  cabled.state.store(LinkState::kDown);
  const auto all = [&log] {
    std::vector<std::string> lines = log.warnings();
    for (std::string line : log.infos()) lines.push_back(std::move(line));
    return lines;
  };
  const auto has = [&all](const char* text) {
    for (const std::string& line : all())
      if (line.find(text) != std::string::npos) return true;
    return false;
  };
  const auto wait_for = [&has](const char* text, std::chrono::milliseconds most) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (!has(text) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(10ms);
  };
  const bool is_expected = driver == config::NicDriver::kTap;
  wait_for("no carrier on", is_expected ? 20s : 1500ms);
  cabled.state.store(LinkState::kUp);
  wait_for("has a carrier again", is_expected ? 20s : 100ms);
  return all();
}

TEST(LateLink, LossOfTheCarrierAndItsReturnAreLoggedWhileConnectionsAreOpen) {
  const std::vector<std::string> lines = lines_of_an_outage(config::NicDriver::kTap);
  EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("no carrier on")));
  EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("has a carrier again, after")));
}

TEST(LateLink, AMemifThatGoesDownWithItsPeerIsNotLogged) {
  EXPECT_THAT(lines_of_an_outage(config::NicDriver::kMemif),
              testing::Not(testing::Contains(testing::HasSubstr("no carrier on"))));
}

TEST(LateLink, ConnectWithoutCarrierFailsWithAdviceForTheDriver) {
  struct Row {
    config::NicDriver driver;
    config::MemifRole role;
    const char* advice;
  };
  for (const Row& row : {
           Row{config::NicDriver::kMemif, config::MemifRole::kClient, "is ztcp_switch, or"},
           Row{config::NicDriver::kMemif, config::MemifRole::kMesh, "any other NIC of this mesh"},
           Row{config::NicDriver::kTap, config::MemifRole::kClient, "ip link show tap7"},
           Row{config::NicDriver::kPci, config::MemifRole::kClient, "cable"},
       }) {
    std::atomic<LinkState> state{LinkState::kDown};
    auto links = link::make_memory_links({.mtu_bytes = 9000, .states = {&state, nullptr}});
    const auto source = std::make_shared<MemoryNics>();
    source->add("mem0", std::move(links.first));
    config::Fabric fabric = one_nic_fabric(0);
    fabric.tcp.connect_timeout_ms = 10;
    fabric.nics[0].driver = row.driver;
    fabric.nics[0].memif_role = row.role;
    fabric.nics[0].tap_interface = "tap7";
    const auto here = *create(fabric, test::cpus_of_this_process(), nullptr, source);
    test::LogCapture log;
    const auto to = to_bytes(ListenAddress{
        {Ipv4Address{0x0a010002}, 7471}, {}, {}, row.role == config::MemifRole::kMesh});
    auto sender = here->begin_connect(0, {TransportKind::kUstack, to}, {});
    ASSERT_TRUE(sender);
    for (Result<bool> ready = false; ready && !*ready; ready = (*sender)->is_ready())
      std::this_thread::yield();
    sender->reset();
    EXPECT_THAT(log.warnings(), testing::Contains(testing::HasSubstr(row.advice)));
  }
}

TEST(LateLink, AProcessThatSharesTheNicIsNotReachedOverIt) {
  auto links = link::make_memory_links({.mtu_bytes = 9000});
  const auto source = std::make_shared<MemoryNics>();
  source->add("mem0", std::move(links.first));
  const config::Fabric fabric = one_nic_fabric(0);
  const auto here = *create(fabric, test::cpus_of_this_process(), nullptr, source);
  const test::LogCapture log;
  ListenAddress other{.endpoint = {fabric.nics[0].address.address, 7472}, .watch = {}};
  other.shares_nic = true;
  const auto sender = here->begin_connect(0, {TransportKind::kUstack, to_bytes(other)}, {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
  EXPECT_THAT(log.warnings(), testing::Contains(testing::HasSubstr("shares this NIC")));
}

}  // namespace
}  // namespace ztcp::ustack
