// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/tcp_sockets.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

constexpr const char* kHead = "  sl  local_address rem_address   st tx_queue rx_queue\n";

std::vector<TcpSocket> read(const std::string& tcp, const std::string& tcp6) {
  test::Tree tree;
  tree.add_file("proc/net/tcp", kHead + tcp);
  tree.add_file("proc/net/tcp6", kHead + tcp6);
  LiveMachine machine(tree.root());
  return tcp_sockets(machine);
}

TEST(TcpSockets, ReadsBothFamilies) {
  const auto sockets = read(
      "   0: 0100007F:1D2F 00000000:0000 0A 00000000:00000000\n",
      "   0: B80D01200000000000000000010A0000:0016 00000000000000000000000000000000:9C40 01\n");
  ASSERT_EQ(sockets.size(), 2U);
  EXPECT_EQ(sockets[0].address,
            (std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1}));
  EXPECT_EQ(sockets[0].port, 7471);
  EXPECT_EQ(sockets[0].state, TcpSocket::kListening);
  EXPECT_EQ(sockets[1].address, (std::array<std::uint8_t, 16>{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0,
                                                              0, 0, 0, 0, 0, 0x0a, 0x01}));
  EXPECT_EQ(sockets[1].port, 22);
  EXPECT_EQ(sockets[1].state, TcpSocket::kEstablished);
}

TEST(TcpSockets, MalformedLinesAreSkipped) {
  EXPECT_TRUE(read("\n0:\n0: 0100007F:1D2F\n0: 0100007F 0 0A 0\n0: 0100007F:zz 0 0A 0\n"
                   "0: 0100007G:0016 0 0A 0\n0: 0100007F:10016 0 0A 0\n0: 0100007F:0016 0 x 0\n",
                   "")
                  .empty());
}

}  // namespace
}  // namespace ztcp::config
