// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/ustack_transport.h"

#include <atomic>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/listen_address.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

using namespace test;

TEST(ConnectionLimit, IsReportedToNcclAndLoggedWhenReached) {
  TwoHosts hosts({.max_connections = 8});
  EXPECT_EQ(hosts[0].devices()[0].max_comms, 8);
  std::vector<Pair> pairs;
  for (int i = 0; i < 8; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    ASSERT_TRUE(pairs.back().sender && pairs.back().receiver) << i;
  }
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const test::LogCapture log;
  const auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kFull);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_EQ(
      log.warnings()[0],
      "mem0: connection limit reached: 8 of 8 (tcp.max_connections), sends and receives together: "
      "raise max_connections in [tcp] of test.conf (up to 32768), or let NCCL open fewer on all "
      "hosts (NCCL_NCHANNELS_PER_NET_PEER=1)");
}

TEST(ConnectionLimit, OfThePeerFailsTheConnectAtOnceWithTheReason) {
  TwoHosts hosts({.max_connections = 16}, {.max_connections = 8});
  std::vector<Pair> pairs;
  for (int i = 0; i < 8; ++i) pairs.push_back(connect(hosts[0], hosts[1]));
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const test::LogCapture log;
  auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(sender);
  auto ready = (*sender)->is_ready();
  while (ready && !*ready) {
    std::this_thread::yield();
    ready = (*sender)->is_ready();
  }
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kFull);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(log.warnings()[0].find("the peer refused: connection limit of its NIC reached: 8"),
            std::string::npos)
      << log.warnings()[0];
  EXPECT_NE(log.warnings()[0].find(
                "raise max_connections in [tcp] of that host's ztcp.conf (up to 32768)"),
            std::string::npos)
      << log.warnings()[0];
}

// The whole connection table is reserved at once. If that fails, the line names the limit to
// change.
TEST(ConnectionLimit, IsLoggedWhenItsMemoryCannotBeReserved) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more than any limit leaves";
#endif
  TwoHosts hosts({.max_connections = 4096});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 512U << 20U;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const test::LogCapture log;
  const auto listener = hosts[0].listen(0, {});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::kOutOfMemory);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_THAT(log.warnings()[0],
              testing::ContainsRegex("can't reserve [0-9]+ MiB of address space for 4096 "));
  EXPECT_NE(log.warnings()[0].find("max_connections in [tcp] of test.conf"), std::string::npos);
}

TEST(Devices, ListenFailsWhenAnotherProcessHasTheNic) {
  auto source = std::make_shared<MemoryNics>();
  source->take("mem0");
  auto transport = create(one_nic_fabric(0), test::cpus_of_this_process(), nullptr, source);
  ASSERT_TRUE(transport);
  const auto listener = (*transport)->listen(0, {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::kBusy);
}

TEST(Devices, NoThreadStartsBeforeTheFirstListen) {
  auto source = std::make_shared<MemoryNics>();
  auto transport = create(one_nic_fabric(0), test::cpus_of_this_process(), nullptr, source);
  ASSERT_TRUE(transport);
  ASSERT_EQ((*transport)->devices().size(), 1U);
  EXPECT_EQ((*transport)->devices()[0].name, "mem0");
  EXPECT_EQ(source->threads_started.load(), 0);
}

TEST(Devices, ThreadsEndWithTheTransport) {
  auto hosts = std::make_unique<TwoHosts>();
  const auto sources = hosts->sources;
  static_cast<void>(connect((*hosts)[0], (*hosts)[1]));
  hosts.reset();
  for (const auto& source : sources) {
    EXPECT_EQ(source->threads_started.load(), 1);
    EXPECT_EQ(source->threads_ended.load(), 1);
  }
}

TEST(Devices, ConnectToAnAddressWithoutARouteFails) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  PeerHandle far = (*listener)->handle();
  far.bytes[13] = std::byte{200};  // 10.200...: outside the /24, and there is no gateway.
  const auto sender = hosts[0].begin_connect(0, far, {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
}

TEST(Drain, ReturnsWhenEverythingIsAcknowledged) {
  TwoHosts hosts({.drain_timeout_ms = 60000});
  Pair pair = connect(hosts[0], hosts[1]);
  pair.sender.reset();
  pair.receiver.reset();
  hosts[0].drain();  // With a timeout of a minute, a prompt return is the test.
  hosts[1].drain();
}

TEST(Devices, ConnectToAnIpv6PeerFailsWithTheReason) {
  TwoHosts hosts;
  test::LogCapture log;
  const PeerHandle peer{TransportKind::kUstack,
                        to_bytes({.endpoint = {*parse_ip("2001:db8::1"), 7471}, .watch = {}})};
  const auto sender = hosts[0].begin_connect(0, peer, {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
  EXPECT_NE(log.warned().find("no route from 10.1.0.1/24 to 2001:db8::1"), std::string::npos)
      << log.warned();
}

TEST(Ipv6, HostsConnectAndTheAddressIsTold) {
  const test::LogCapture log;
  TwoHosts hosts({.address = "fd00::1/64"}, {.address = "fd00::2/64"});
  EXPECT_EQ(hosts[0].devices()[0].address, "fd00::1");
  EXPECT_NE(hosts[0].describe_device(0).find(" fd00::1/64,"), std::string::npos);
  const Pair pair = connect(hosts[0], hosts[1]);
  ASSERT_TRUE(pair.sender && pair.receiver);
  EXPECT_NE(pair.sender->describe_peer().find("[fd00::2]:7471"), std::string::npos)
      << pair.sender->describe_peer();
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

TEST(Ipv6, ADuplicateAddressIsNamedWithTheMacOfTheOtherHost) {
  const test::LogCapture log;
  TwoHosts hosts({.address = "fd00::1/64"}, {.address = "fd00::1/64"});
  const auto first = hosts[0].listen(0, {});
  const auto second = hosts[1].listen(0, {});
  ASSERT_TRUE(first && second);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (log.warnings().empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_FALSE(log.warnings().empty());
  const std::string line = log.warnings().front();
  EXPECT_NE(line.find("the host with MAC address 02:00:00:00:00:0"), std::string::npos) << line;
  EXPECT_NE(line.find("has address fd00::1, too"), std::string::npos) << line;
}

// A link to a device that stops answering: the poller's thread stays inside the turn.
class StoppingLink final : public link::Link {
 public:
  explicit StoppingLink(std::unique_ptr<link::Link> inner) : inner_(std::move(inner)) {}

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override {
    if (stop) {
      stopped = true;
      stopped.notify_all();
      stop.wait(true);
    }
    return inner_->receive(frames);
  }
  void release(std::span<RxFrame> frames) override { inner_->release(frames); }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    return inner_->transmit(frames);
  }
  LinkState state() override { return inner_->state(); }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return inner_->describe(); }

  std::atomic<bool> stop{false};
  std::atomic<bool> stopped{false};

 private:
  std::unique_ptr<link::Link> inner_;
};

TEST(Drain, ReturnsWhenAThreadIsStuckInATurn) {
  auto [left, right] = link::make_memory_links({});
  auto source = std::make_shared<MemoryNics>();
  auto owned = std::make_unique<StoppingLink>(std::move(left));
  StoppingLink& stopping = *owned;
  source->add("mem0", std::move(owned));
  auto transport = create(one_nic_fabric(0, {.drain_timeout_ms = 20}), test::cpus_of_this_process(),
                          nullptr, source);
  ASSERT_TRUE(transport && (*transport)->listen(0, {}));
  stopping.stop = true;
  stopping.stopped.wait(false);
  (*transport)->drain();  // Returning is the test.
  stopping.stop = false;
  stopping.stop.notify_all();
}

}  // namespace
}  // namespace ztcp::ustack
