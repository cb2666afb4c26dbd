// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC that is removed or reset while a job runs. Links in memory report the state.
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/support/transfers.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

using namespace test;

// The GPU that the process currently drives: a process with several GPUs claims a NIC for each.
std::string g_gpu;
ProcessGpus current_gpu() { return {.current = GpuIdentity{g_gpu}, .driven = {{g_gpu}}}; }

// A host with two GPUs and a NIC for each; each NIC is joined to a peer host of its own.
class NicRemoval : public testing::TestWithParam<config::PollerMode> {
 protected:
  NicRemoval() {
    config::Fabric ours = one_nic_fabric(0, options());
    ours.nics.push_back(ours.nics[0]);
    ours.nics[1].name = "mem1";
    ours.nics[1].address = Ipv4Prefix{{0x0a020001U}, 24};
    for (std::size_t i = 0; i < 2; ++i) {
      ours.nics[i].gpu_pci = gpu(i);
      link::MemoryLinkOptions cable;
      cable.mtu_bytes = options().mtu_bytes;
      cable.states = {&states_[i], nullptr};
      auto [left, right] = link::make_memory_links(cable);
      source_->add(ours.nics[i].name, std::move(left));

      config::Fabric theirs = one_nic_fabric(1, options());
      theirs.nics[0].address =
          Ipv4Prefix{{0x0a010002U + (static_cast<std::uint32_t>(i) << 16U)}, 24};
      auto peer_source = std::make_shared<MemoryNics>();
      peer_source->add(theirs.nics[0].name, std::move(right));
      peers_[i] = *create(theirs, test::cpus_of_this_process(), nullptr, peer_source);
    }
    host_ = *create(ours, test::cpus_of_this_process(), current_gpu, source_);
  }

  // Timeouts are long, so that only the removal can end a test.
  static HostOptions options() { return {.mode = GetParam(), .drain_timeout_ms = 600'000}; }
  static std::string gpu(std::size_t i) { return "0000:0" + std::to_string(i) + ":00.0"; }
  static void drive(std::size_t i) { g_gpu = gpu(i); }
  void take_out(std::size_t i) { states_[i].store(LinkState::kGone); }

  // Connects from NIC i to its peer, or from the peer to NIC i.
  Pair connect_out(std::size_t i) {
    drive(i);
    return connect(*host_, *peers_[i]);
  }
  Pair connect_in(std::size_t i) {
    drive(i);
    return connect(*peers_[i], *host_, static_cast<int>(i));
  }

  std::array<std::atomic<LinkState>, 2> states_{};
  std::shared_ptr<MemoryNics> source_ = std::make_shared<MemoryNics>();
  std::array<std::unique_ptr<Transport>, 2> peers_;
  std::unique_ptr<Transport> host_;
};
INSTANTIATE_TEST_SUITE_P(Modes, NicRemoval,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         mode_name);

// The poller's thread logs after it has released the baton, so a request may report the removal
// earlier.
void await_warnings(const test::LogCapture& log, std::size_t count) {
  const auto ends = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (log.warnings().size() < count && std::chrono::steady_clock::now() < ends)
    std::this_thread::yield();
}

TEST_P(NicRemoval, FailsRequestsInFlightAndLogsTheNic) {
  Pair out = connect_out(0);
  Pair in = connect_in(0);
  const Bytes large(4U << 20U);  // No buffer is posted for it.
  Bytes buffer(100);
  Request* sending = post_until_taken(*out.sender, large, nullptr);
  ASSERT_NE(sending, nullptr);
  const auto receiving = post_recv(*in.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);

  const test::LogCapture log;
  take_out(0);
  const auto sent = finish(*sending);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kNoDevice);
  const auto received = finish(**receiving);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Errc::kNoDevice);
  await_warnings(log, 2);
  EXPECT_NE(log.warned().find("NIC mem0 (memory) was taken out of this machine"), std::string::npos)
      << log.warned();
  // One line is the NIC's, one is of its first connection; the other connection is only counted.
  EXPECT_EQ(log.warnings().size(), 2U) << log.warned();
}

// For example of a virtual function, by its host.
TEST_P(NicRemoval, ResetIsLoggedWithTheAdviceToRestartTheJob) {
  Pair out = connect_out(0);
  Pair other = connect_out(1);
  const Bytes large(4U << 20U);  // No buffer is posted for it.
  drive(0);
  Request* sending = post_until_taken(*out.sender, large, nullptr);
  ASSERT_NE(sending, nullptr);

  const test::LogCapture log;
  states_[0].store(LinkState::kReset);
  const auto sent = finish(*sending);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kNoDevice);
  EXPECT_STREQ(sent.error().where, "NIC reset");
  EXPECT_FALSE(host_->listen(0, {}));
  // Lines of the NIC, of its connection and of the refused listen().
  await_warnings(log, 3);
  ASSERT_EQ(log.warnings().size(), 3U) << log.warned();
  for (const std::string& line : log.warnings()) {
    EXPECT_NE(line.find("NIC mem0 (memory) was reset by its host or its firmware"),
              std::string::npos)
        << line;
    EXPECT_TRUE(line.ends_with(": start the job again")) << line;
  }
  expect_carries(other, pattern(300'000, 5));
}

TEST_P(NicRemoval, DoesNotAffectTheOtherNicOfTheProcess) {
  Pair doomed = connect_out(0);
  Pair other = connect_out(1);
  const Bytes large(4U << 20U);
  take_out(0);
  Request* sending = post_until_taken(*doomed.sender, large, nullptr);
  if (sending != nullptr) {
    EXPECT_FALSE(finish(*sending));
  }
  expect_carries(other, pattern(300'000, 5));
  Pair another = connect_out(1);
  expect_carries(another, pattern(300'000, 5));
}

TEST_P(NicRemoval, LaterCallsFailWithTheSameReason) {
  Pair out = connect_out(0);
  auto listener = host_->listen(0, {});
  ASSERT_TRUE(listener);
  auto peer_listener = peers_[0]->listen(0, {});
  ASSERT_TRUE(peer_listener);
  const Bytes large(4U << 20U);
  {
    const test::LogCapture log;
    take_out(0);
    Request* sending = post_until_taken(*out.sender, large, nullptr);
    if (sending != nullptr) {
      EXPECT_FALSE(finish(*sending));
    }
    await_warnings(log, 2);
  }
  const test::LogCapture log;
  const auto listening = host_->listen(0, {});
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Errc::kNoDevice);
  const auto connecting = host_->begin_connect(0, (*peer_listener)->handle(), {});
  ASSERT_FALSE(connecting);
  EXPECT_EQ(connecting.error().code, Errc::kNoDevice);
  const auto accepting = (*listener)->accept();
  ASSERT_FALSE(accepting);
  EXPECT_EQ(accepting.error().code, Errc::kNoDevice);
  ASSERT_EQ(log.warnings().size(), 3U);
  for (const std::string& line : log.warnings())
    EXPECT_NE(line.find("NIC mem0 (memory) was taken out of this machine"), std::string::npos)
        << line;
}

TEST_P(NicRemoval, FailsAConnectThatIsStillPending) {
  auto peer_listener = peers_[0]->listen(0, {});
  ASSERT_TRUE(peer_listener);
  PeerHandle nobody = (*peer_listener)->handle();
  nobody.bytes[15] = std::byte{77};
  drive(0);
  auto sender = host_->begin_connect(0, nobody, {});
  ASSERT_TRUE(sender);
  take_out(0);
  auto ready = (*sender)->is_ready();
  while (ready && !*ready) {
    std::this_thread::yield();
    ready = (*sender)->is_ready();
  }
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kNoDevice);
}

// Outstanding acknowledgements can't arrive any more.
TEST_P(NicRemoval, TeardownDoesNotWaitForAcknowledgements) {
  Pair out = connect_out(0);
  const Bytes sent = pattern(100, 1);
  Request* sending = post_until_taken(*out.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(*sending));
  out.sender.reset();  // A clean close: its FIN is in flight.
  take_out(0);
  host_->drain();  // With a timeout of ten minutes, a prompt return is the test.
  host_.reset();
  EXPECT_EQ(source_->threads_started.load(), source_->threads_ended.load());
}

}  // namespace
}  // namespace ztcp::ustack
