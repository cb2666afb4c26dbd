// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A memif link whose peer process dies.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "tests/unit/link/memif_links.h"
#include "tests/unit/link/peer.h"
#include "transport/link/dpdk_link.h"

namespace ztcp::link {
namespace {

using test::Peer;

class MemifPeerDies : public Memif, public testing::WithParamInterface<const char*> {};

// The peer is killed while we transmit: the rings vanish, and nothing else happens.
TEST_P(MemifPeerDies, LinkDropsFramesUntilItComesBack) {
  const std::string peer_role = GetParam();
  const MemifRole our_role = peer_role == "server" ? MemifRole::kClient : MemifRole::kServer;
  auto link = open_memif(config(our_role, 9000));
  ASSERT_TRUE(link);
  for (std::uint32_t life = 0; life < 6; ++life) {
    Peer peer({"echo", folder_ + "/0.sock", peer_role, "9000"});
    SentFrame sent(life, 5000, 3);
    ASSERT_TRUE(echoed(**link, sent)) << life;
    EXPECT_TRUE((*link)->is_up());

    std::atomic<bool> killed{false};
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * life));
      peer.kill();
      killed = true;
    });
    SentFrame load(99, 9014, 8);
    const std::vector<TxFrame> burst(32, load.frame());
    const bool went_down = within_seconds(30, [&] {
      for (int i = 0; i < 20; ++i) {
        (*link)->transmit(burst);
        std::array<RxFrame, 32> received;
        (*link)->release(std::span(received).first((*link)->receive(received)));
      }
      return killed && !(*link)->is_up();
    });
    killer.join();
    ASSERT_TRUE(went_down) << life;
    EXPECT_EQ((*link)->transmit(burst), burst.size()) << "a cable without an end takes everything";
  }
  EXPECT_GT((*link)->counters().tx_dropped, 0U);
}

INSTANTIATE_TEST_SUITE_P(Roles, MemifPeerDies, testing::Values("server", "client"),
                         [](const auto& row) { return std::string("peer_") + row.param; });

// A rank is killed with kill -9 while its forked child lives on: the next one has the link within 5
// s.
TEST_P(MemifPeerDies, AForkedChildOfThePeerDoesNotHoldTheConnection) {
  const std::string peer_role = GetParam();
  const std::string socket = folder_ + "/0.sock";
  auto link =
      open_memif(config(peer_role == "server" ? MemifRole::kClient : MemifRole::kServer, 1500));
  ASSERT_TRUE(link);
  SentFrame sent(1, 1000, 2);
  Peer owner({"echo-fork", socket, peer_role, "1500"});
  ASSERT_TRUE(echoed(**link, sent));
  ASSERT_TRUE(within_seconds(30, [&] { return std::filesystem::exists(socket + ".child"); }));
  pid_t child = 0;
  std::ifstream(socket + ".child") >> child;
  ASSERT_GT(child, 0);
  owner.kill();
  std::array<RxFrame, 32> stale;
  EXPECT_TRUE(within_seconds(30, [&] {
    (*link)->release(std::span(stale).first((*link)->receive(stale)));
    return !(*link)->is_up();
  })) << "the child holds the connection";
  Peer next({"echo", socket, peer_role, "1500"});
  EXPECT_TRUE(echoed(**link, sent));
  EXPECT_EQ(kill(child, SIGKILL), 0) << "the child was gone";
}

}  // namespace
}  // namespace ztcp::link
