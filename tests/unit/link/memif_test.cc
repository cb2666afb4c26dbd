// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two memif links of this process, joined through a socket in a folder of their own.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "config/schema.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "tests/unit/link/memif_links.h"
#include "tests/unit/link/peer.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::Peer;
using test::SentFrame;
using test::within_seconds;

void expect_exchanged(Link& from, Link& to, SentFrame& sent) {
  ASSERT_EQ(from.transmit({&sent.frame(), 1}), 1U);
  sent.scribble();  // memif no longer needs the payload when transmit() returns.
  std::array<RxFrame, 4> received;
  ASSERT_EQ(to.receive(received), 1U);
  EXPECT_GE(received[0].head.size(), std::min<std::size_t>(118, sent.bytes().size()));
  EXPECT_EQ(flatten(received[0]), sent.bytes());
  to.release(std::span(received).first(1));
}

// docs/sizing.md ("Memory of a process").
TEST(MemifMemory, MatchesTheDocuments) {
  const auto mib = [](int mtu_bytes) {
    MemifConfig config;
    config.mtu_bytes = static_cast<std::uint16_t>(mtu_bytes);
    return memif_memory_mib(config);
  };
  EXPECT_EQ(mib(1500), 36U);
  EXPECT_EQ(mib(9000), 71U);
  std::uint32_t most = 0;
  for (int mtu_bytes = 576; mtu_bytes <= kMaxMemifMtuBytes; ++mtu_bytes)
    most = std::max(most, mib(mtu_bytes));
  EXPECT_EQ(most, 84U);
}

TEST_F(Memif, ReportsItsCapabilities) {
  auto server = open_memif(config(MemifRole::kServer, 9000));
  ASSERT_TRUE(server);
  const LinkCapabilities& can = (*server)->capabilities();
  EXPECT_EQ(can.mtu_bytes, 9000);
  EXPECT_EQ(can.mac, config(MemifRole::kServer, 9000).mac);
  EXPECT_FALSE(can.zero_copy);  // The driver copies.
  EXPECT_FALSE(can.tx_checksum);
  EXPECT_FALSE(can.rx_checksum);
  EXPECT_EQ(can.max_super_segment_bytes, 0U);
  EXPECT_FALSE((*server)->is_up());
}

TEST_F(Memif, ConnectsAndDisconnectsManyTimes) {
  for (int i = 0; i < 40; ++i) {
    auto server = open_memif(config(MemifRole::kServer, 1500));
    auto client = open_memif(config(MemifRole::kClient, 1500));
    ASSERT_TRUE(server && client) << i;
    if (i % 4 == 3) continue;  // Closed while the two are still shaking hands.
    ASSERT_TRUE(both_up(**server, **client)) << i;
    SentFrame sent(static_cast<std::uint32_t>(i), 1000, 3);
    expect_exchanged(**client, **server, sent);
    // Either side may end first.
    if (i % 2 == 0) {
      client->reset();
    } else {
      server->reset();
    }
  }
}

class MemifMtu : public Memif, public testing::WithParamInterface<int> {};

TEST_P(MemifMtu, CarriesEverySizeInAnyNumberOfFragments) {
  const auto mtu = static_cast<std::uint16_t>(GetParam());
  auto server = open_memif(config(MemifRole::kServer, mtu));
  ASSERT_TRUE(server);
  auto client = open_memif(config(MemifRole::kClient, mtu));
  ASSERT_TRUE(client);
  ASSERT_TRUE(both_up(**server, **client));
  const std::size_t largest = std::size_t{mtu} + 14;
  // Every size near both ends, and in between a stride that is coprime to every alignment.
  for (std::size_t size = 60; size <= largest;
       size += size < 400 || size + 400 > largest ? 1 : largest / 251 | 1) {
    const auto seed = static_cast<std::uint32_t>(size);
    SentFrame there(seed, size, size <= 128 && size % 2 == 0 ? 0 : 1 + size % 8);
    expect_exchanged(**server, **client, there);
    SentFrame back(~seed, size, 1 + size % 8, (*client)->map_memory(&there, 1));
    expect_exchanged(**client, **server, back);
    if (HasFatalFailure()) FAIL() << "at size " << size;
  }
  EXPECT_EQ((*server)->counters().tx_dropped, 0U);
  EXPECT_EQ((*server)->counters().rx_frames, (*client)->counters().tx_frames);
  EXPECT_EQ((*server)->counters().rx_bytes, (*client)->counters().tx_bytes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MemifMtu, testing::Values(1500, 9000, int{kMaxMemifMtuBytes}),
                         [](const auto& row) { return "mtu" + std::to_string(row.param); });

TEST_F(Memif, DropsFramesLargerThanTheMtu) {
  auto server = open_memif(config(MemifRole::kServer, 1500));
  auto client = open_memif(config(MemifRole::kClient, 1500));
  ASSERT_TRUE(server && client);
  ASSERT_TRUE(both_up(**server, **client));
  SentFrame large(1, 1515, 2);
  EXPECT_EQ((*client)->transmit({&large.frame(), 1}), 1U);
  EXPECT_EQ((*client)->counters().tx_dropped, 1U);
  SentFrame fits(2, 1514, 2);
  expect_exchanged(**client, **server, fits);
}

TEST_F(Memif, ExhaustedFramesWaitInTheRingAndComeBack) {
  auto small = config(MemifRole::kServer, 1500);
  small.rx_frames = 63;
  small.ring_size_log2 = 5;
  auto server = open_memif(small);
  auto client_config = config(MemifRole::kClient, 1500);
  client_config.ring_size_log2 = 5;
  auto client = open_memif(client_config);
  ASSERT_TRUE(server && client);
  ASSERT_TRUE(both_up(**server, **client));
  std::vector<RxFrame> held;
  std::uint32_t sent_count = 0;
  // Until neither frames nor ring slots are left.
  for (int idle = 0; idle < 3;) {
    SentFrame sent(sent_count, 500, 2);
    const std::size_t taken = (*client)->transmit({&sent.frame(), 1});
    sent_count += static_cast<std::uint32_t>(taken);
    std::array<RxFrame, 8> received;
    const std::size_t count = (*server)->receive(received);
    held.insert(held.end(), received.begin(), received.begin() + static_cast<long>(count));
    idle = taken == 0 && count == 0 ? idle + 1 : 0;
  }
  EXPECT_EQ(held.size(), 63U);
  EXPECT_EQ(sent_count, 63U + 32U);
  EXPECT_GT((*client)->counters().tx_ring_full, 0U);
  (*server)->release(held);
  std::array<RxFrame, 64> rest;
  ASSERT_EQ((*server)->receive(rest), 32U);
  for (std::uint32_t i = 0; i < 32; ++i) {
    const SentFrame expected(63 + i, 500, 2);
    EXPECT_EQ(flatten(rest[i]), expected.bytes()) << i;
  }
  (*server)->release(std::span(rest).first(32));
}

TEST_F(Memif, ReceivesWithAllKept) {
  for (const int mtu : {1500, 9000, int{kMaxMemifMtuBytes}}) {
    const auto mtu_bytes = static_cast<std::uint16_t>(mtu);
    auto server = open_memif(config(MemifRole::kServer, mtu_bytes));
    auto client = open_memif(config(MemifRole::kClient, mtu_bytes));
    ASSERT_TRUE(server && client);
    ASSERT_TRUE(both_up(**server, **client));
    SentFrame sent(1, 100, 1);
    test::expect_it_receives_with_all_kept(**server, [&] {
      ASSERT_EQ((*client)->transmit({&sent.frame(), 1}), 1U);
    });
  }
}

TEST_F(Memif, TalksToAnUnprivilegedProcess) {
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  const auto prepare = geteuid() == 0 ? test::become_nobody : [] {};
  Peer peer({"echo", folder_ + "/0.sock", "server", "9000"}, prepare);
  auto client = open_memif(config(MemifRole::kClient, 9000));
  ASSERT_TRUE(client);
  SentFrame first(0, 9014, 3);
  if (!echoed(**client, first) && peer.wait_for_exit(1) == 126)
    GTEST_SKIP() << "the other user may not run programs of this build folder";
  for (std::uint32_t size = 60; size <= 9014; size += 97) {
    SentFrame sent(size, size, 1 + size % 8);
    ASSERT_TRUE(echoed(**client, sent)) << size;
  }
}

// A mapping holds its file open as a descriptor does: a NIC's registers in a child's address space
// keep the NIC from the next job. memif's rings are mapped in the same way.
TEST_F(Memif, AForkedChildMapsNothingOfIt) {
  auto server = open_memif(config(MemifRole::kServer, 1500));
  auto client = open_memif(config(MemifRole::kClient, 1500));
  ASSERT_TRUE(server && client && both_up(**server, **client));
  const auto maps_a_ring = [] {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("memfd:memif") != std::string::npos) return true;
    return false;
  };
  ASSERT_TRUE(maps_a_ring());
  const pid_t child = fork();
  if (child == 0) _exit(maps_a_ring() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child holds the rings";
  SentFrame sent(1, 1000, 3);
  expect_exchanged(**client, **server, sent);
}

TEST_F(Memif, ASocketInUseIsNotRemoved) {
  Peer peer({"echo", folder_ + "/0.sock", "server", "1500"});
  {
    // The file exists before the server listens.
    const auto client = open_memif(config(MemifRole::kClient, 1500));
    SentFrame sent(0, 1000, 1);
    ASSERT_TRUE(client && echoed(**client, sent));
  }
  const auto second = open_memif(config(MemifRole::kServer, 1500));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kBusy);
}

// A mistyped socket path may be that of any file (socket_file_test.cc has all kinds).
TEST_F(Memif, AFileInItsPlaceIsRefusedAndStays) {
  std::ofstream(folder_ + "/0.sock") << "precious";
  const auto server = open_memif(config(MemifRole::kServer, 1500));
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, Errc::kBadConfig);
  std::string text;
  std::ifstream(folder_ + "/0.sock") >> text;
  EXPECT_EQ(text, "precious");
}

// A server removes its own socket; another file that took its name stays.
TEST_F(Memif, AServerRemovesOnlyItsOwnSocket) {
  const std::string path = folder_ + "/0.sock";
  auto server = open_memif(config(MemifRole::kServer, 1500));
  ASSERT_TRUE(server);
  ASSERT_TRUE(std::filesystem::is_socket(path));
  server->reset();
  EXPECT_FALSE(std::filesystem::exists(path));

  server = open_memif(config(MemifRole::kServer, 1500));
  ASSERT_TRUE(server);
  std::filesystem::remove(path);
  std::ofstream(path) << "precious";
  server->reset();
  EXPECT_TRUE(std::filesystem::is_regular_file(path));

  std::filesystem::remove(path);
  server = open_memif(config(MemifRole::kServer, 1500));
  ASSERT_TRUE(server);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  server->reset();
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST(MemifMtuLimit, IsTheConfigs) {
  EXPECT_EQ(config::find_key("nic", "mtu_bytes")->max, kMaxMemifMtuBytes);
}

TEST_F(Memif, RefusesAnMtuItCannotCarry) {
  auto large = config(MemifRole::kServer, kMaxMemifMtuBytes);
  large.mtu_bytes = kMaxMemifMtuBytes + 1;
  EXPECT_EQ(open_memif(large).error().code, Errc::kBadConfig);
  auto path = config(MemifRole::kServer, 1500);
  for (const std::string& bad : {std::string("relative.sock"), folder_ + "/a,role=client",
                                 folder_ + "/" + std::string(108, 'x'), std::string()}) {
    path.socket_path = bad;
    EXPECT_EQ(open_memif(path).error().code, Errc::kBadConfig) << bad;
  }
  path.socket_path = folder_ + "/missing/0.sock";
  EXPECT_FALSE(open_memif(path));
}

}  // namespace
}  // namespace ztcp::link
