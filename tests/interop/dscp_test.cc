// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DSCP in the packets on the wire, of both ends.
#include <algorithm>
#include <array>
#include <linux/if_packet.h>
#include <map>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>

#include "tests/interop/tap_test.h"
#include "transport/sockets/kernel/packet_class.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::interop {
namespace {

// Reads all TCP packets of the network, in both directions.
class PacketReader {
 public:
  PacketReader() : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL))) {}

  bool is_open() const { return static_cast<bool>(socket_); }
  // The DSCPs seen so far, by source and kind of packet.
  struct Seen {
    std::set<int> syn;
    std::set<int> rest;
  };
  std::map<IpAddress, Seen> read() {
    std::array<std::byte, 4096> bytes;
    for (;;) {
      const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), MSG_TRUNC);
      if (got <= 0) return seen_;
      RxFrame frame;
      frame.head = std::span(bytes).first(std::min<std::size_t>(bytes.size(), got));
      const wire::ParsedFrame parsed = wire::parse_frame(frame);
      if (parsed.kind != wire::FrameKind::kTcp) continue;
      Seen& seen = seen_[parsed.ip.source];
      (parsed.tcp.flags.has(wire::kSyn) ? seen.syn : seen.rest).insert(parsed.ip.dscp);
    }
  }

 private:
  Fd socket_;
  std::map<IpAddress, Seen> seen_;
};

class DscpTap : public TapTest, public testing::WithParamInterface<bool> {
 protected:
  static constexpr std::uint8_t kOurs = 46;
  static constexpr std::uint8_t kKernels = 10;

  void open_marked(std::uint8_t dscp) {
    open({.dscp = dscp, .offloads = false, .is_ipv6 = GetParam()});
  }
  sockets::Device kernel_device(std::uint8_t dscp) const {
    sockets::Device device;
    device.interface = kInterface;
    device.address = kernel_port().address;
    device.dscp = dscp;
    device.first_port = device.last_port = kKernelPort.port;
    return device;
  }
  // The kernel's end sends, receives, and resets the connection.
  void exchange(Fd fd) {
    sockets::set_class(fd, kKernels);
    const sim::Bytes bytes(1000, std::byte{1});
    ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), 0), 1000);
    sim::Bytes got(our_data_.size());
    std::size_t received = 0;
    ASSERT_TRUE(run_until([&] {
      const ssize_t count = recv(fd.get(), got.data(), got.size(), MSG_DONTWAIT);
      if (count > 0) received += static_cast<std::size_t>(count);
      return received == got.size() && ours_->has_received_all();
    }));
    sockets::reset(std::move(fd));
    ASSERT_TRUE(run_for(50ms));
  }
  void expect_each(PacketReader& reader, int kernels_syn) {
    auto seen = reader.read();
    EXPECT_EQ(seen[our_port().address].syn, std::set{int{kOurs}});
    EXPECT_EQ(seen[our_port().address].rest, std::set{int{kOurs}});
    EXPECT_EQ(seen[kernel_port().address].syn, std::set{kernels_syn});
    EXPECT_EQ(seen[kernel_port().address].rest, std::set{int{kKernels}});
  }
};

TEST_P(DscpTap, IsOnEachPacketOfAConnectionThatTheKernelOpens) {
  open_marked(kOurs);
  PacketReader reader;
  ASSERT_TRUE(reader.is_open());
  make_apps(3000, 1000);
  kernel_data_.assign(1000, std::byte{1});
  ASSERT_TRUE(stack().listen(kOurPort.port, *ours_));
  auto fd = sockets::dial(kernel_device(63), {}, our_port(), {.dscp = kKernels});
  ASSERT_TRUE(fd);
  ASSERT_TRUE(run_until([&] { return ours_->is_open(); }));
  exchange(std::move(*fd));
  expect_each(reader, kKernels);
}

TEST_P(DscpTap, IsOnEachPacketOfAConnectionThatWeOpen) {
  open_marked(0);
  PacketReader reader;
  ASSERT_TRUE(reader.is_open());
  make_apps(3000, 1000);
  kernel_data_.assign(1000, std::byte{1});
  const auto listening = sockets::open_listener(kernel_device(kKernels));
  ASSERT_TRUE(listening);
  const auto stream = stack().connect(real_now(), kernel_port(), *ours_);
  ASSERT_TRUE(stream);
  (*stream)->set_dscp(kOurs);
  ours_->attach(**stream);
  std::optional<sockets::Accepted> accepted;
  ASSERT_TRUE(run_until([&] {
    if (!accepted) accepted = *sockets::accept(listening->fd, {});
    return accepted && ours_->is_open();
  }));
  exchange(std::move(accepted->fd));
  expect_each(reader, kKernels);
}

INSTANTIATE_TEST_SUITE_P(Families, DscpTap, testing::Values(false, true),
                         [](const auto& row) { return row.param ? "IPv6" : "IPv4"; });

}  // namespace
}  // namespace ztcp::interop
