// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Merged devices of an RDMA NIC and an interface of the kernel's: both carry, each goes on where
// the other fails, and both are back afterwards.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/unit/verbs/gpu_memory.h"
#include "tests/unit/verbs/own_sockets.h"
#include "tests/unit/verbs/rails_fixture.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;
using testing::Not;

// Both ends of all streams of rails of TCP, and of their paths.
void cut_streams() { cut_at(tcp_address().prefix.address); }
std::uint64_t bytes_by_tcp() { return received_bytes_at(tcp_address().prefix.address); }

class TcpRailsTest : public RailsFixture {
 protected:
  TcpRailsTest()
      : RailsFixture({merged(tcp_nic("eth-a"), "from"), merged(nic_on("fake0"), "from"),
                      merged(nic_on("fake2"), "to"), merged(tcp_nic("eth-b"), "to")}) {}
  explicit TcpRailsTest(std::vector<config::Nic> nics) : RailsFixture(std::move(nics)) {}

  void carry_by_tcp(std::uint64_t bytes) {
    carry_until([&, begin = bytes_by_tcp()] { return bytes_by_tcp() > begin + bytes; });
  }
};

TEST_F(TcpRailsTest, BothCarryAShare) {
  EXPECT_EQ(transport_->devices()[0].speed_mbps, 150'000U) << "of both";
  EXPECT_THAT(transport_->describe_device(0),
              HasSubstr("from: RDMA verbs and TCP over 2 rails that /etc/ztcp.conf merges: fake0 "
                        "port 1, "));
  EXPECT_THAT(transport_->describe_device(0), HasSubstr("; TCP, of host memory alone, on lo 127"));
  EXPECT_EQ(transport_->carrier(0), "RDMA verbs and TCP");
  carry_by_tcp(10 * kSize);
  const int works = host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM);
  carry(20);
  EXPECT_GT(host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM), works);
}

TEST_F(TcpRailsTest, AStreamThatIsCutIsDialledAgain) {
  carry_by_tcp(kSize);
  for (int n = 1; n < 3; ++n) {
    cut_streams();
    carry_until([&] { return has_said("the rail over TCP on lo to 127.0.0.1:", n); });
    carry_by_tcp(kSize);
  }
  EXPECT_THAT(log_.warned(), HasSubstr("from: the rail over TCP on lo has failed to 127.0.0.1:"));
  EXPECT_THAT(log_.warned(), HasSubstr("; messages go over the other 1 meanwhile"));
}

TEST_F(TcpRailsTest, StreamsHaveTheDscpOfTheirCommunicator) {
  constexpr int kClass = 46 << 2;
  const auto marked = [] {
    const std::vector<int> all = connected_at(tcp_address().prefix.address);
    return std::ranges::count_if(all, [](int fd) {
      int value = 0;
      socklen_t size = sizeof value;
      return getsockopt(fd, IPPROTO_IP, IP_TOS, &value, &size) == 0 && value == kClass;
    });
  };
  carry_by_tcp(kSize);
  EXPECT_EQ(marked(), 0);
  over(test::connect(*transport_, *transport_, 1, 0, {.traffic_class = kClass}), [&] {
    carry_by_tcp(kSize);
    EXPECT_EQ(marked(), 2) << "both ends of its rail";
  });
}

TEST_F(TcpRailsTest, ItGoesOnOverTcpWhileThePortIsDown) {
  carry_by_tcp(kSize);
  host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
  carry_until([this] { return has_said("the rail over fake0 port 1 has failed"); });
  carry(5);
  const int works = host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM);
  carry(50);
  EXPECT_EQ(host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM), works);
  host_.devices.set_port_state("fake0", 1, IBV_PORT_ACTIVE);
  carry_until([this] { return has_said("the rail over fake0 port 1 to 127.0.0.1:"); });
  carry(20);
  EXPECT_GT(host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM), works);
  carry_by_tcp(kSize);
}

// It fails before the stream beside it is dialled, or about then.
TEST_F(TcpRailsTest, ARailOfRdmaMayFailAtOnce) {
  host_.devices.fail_next_message(IBV_WC_RETRY_EXC_ERR);
  carry_until([this] { return has_said("the rail over fake0 port 1 to 127.0.0.1:"); });
  carry_by_tcp(kSize);
  EXPECT_THAT(log_.warned(), HasSubstr("from: the rail over fake0 port 1 has failed"));
}

// A stranger that connects there is turned away.
TEST_F(TcpRailsTest, StrangersHaveNoTicket) {
  carry_by_tcp(kSize);
  for (const Ticket& ticket : {Ticket{}, Ticket{std::byte{1}}})
    EXPECT_TRUE(is_turned_away(tcp_address().prefix.address, make_stream_hello(ticket)));
  carry(20);
  EXPECT_EQ(log_.warned(), "");
}

// The peer's device is of RDMA alone.
class TcpAtOneEndTest : public TcpRailsTest {
 protected:
  TcpAtOneEndTest()
      : TcpRailsTest(
            {merged(tcp_nic("eth-a"), "from"), merged(nic_on("fake0"), "from"), nic_on("fake2")}) {}
};

TEST_F(TcpAtOneEndTest, ItGoesOverTheRailsThatBothHave) {
  carry(50);
  EXPECT_EQ(bytes_by_tcp(), 0U);
  EXPECT_EQ(log_.warned(), "");
}

// An RDMA NIC of one end can't be used.
class TcpAloneTest : public TcpRailsTest {
 protected:
  TcpAloneTest()
      : TcpRailsTest({merged(tcp_nic("eth-a"), "from"), merged(nic_on("gone"), "from"),
                      merged(nic_on("fake2"), "to"), merged(tcp_nic("eth-b"), "to")}) {}
};

TEST_F(TcpAloneTest, WithoutRdmaAtOneEndItGoesOverTcp) {
  EXPECT_THAT(log_.warned(),
              HasSubstr("from: goes without ztcp-gone, over the rest of its rails alone: no RDMA "
                        "device gone is here"));
  EXPECT_EQ(transport_->devices()[0].speed_mbps, 50'000U);
  EXPECT_FALSE(transport_->devices()[0].dmabuf);
  carry(50);
  EXPECT_GT(bytes_by_tcp(), 50 * kSize);
  EXPECT_FALSE(pair_.sender->register_memory(
      {.address = from_.data(), .size_bytes = 64, .kind = MemoryKind::kCuda}));
}

// Interfaces of the kernel's with no RDMA NIC among them.
class TcpOnlyTest : public RailsFixture {
 protected:
  TcpOnlyTest()
      : RailsFixture(
            {merged(tcp_nic("eth-a"), "from"), merged(at(tcp_nic("eth-b"), "127.0.0.1"), "from"),
             merged(tcp_nic("eth-c"), "to"), merged(at(tcp_nic("eth-d"), "127.0.0.1"), "to")}) {}
};

TEST_F(TcpOnlyTest, BothCarryAShareAndEachGoesOnAlone) {
  EXPECT_EQ(transport_->devices()[0].speed_mbps, 100'000U) << "of both";
  EXPECT_FALSE(transport_->devices()[0].dmabuf);
  EXPECT_EQ(transport_->carrier(0), "TCP over merged NICs");
  EXPECT_THAT(transport_->describe_device(0),
              HasSubstr("from: TCP over 2 rails that /etc/ztcp.conf merges: TCP, of host memory "
                        "alone, on lo 127.0.0.2, "));
  for (const char* const name : {"127.0.0.2", "127.0.0.1", "127.0.0.2"}) {
    const IpAddress address = loopback(name).prefix.address;
    carry_until([&, begin = received_bytes_at(address)] {
      return received_bytes_at(address) > begin + 2 * kSize;
    });
    // A stream and a path at either.
    for (const char* const one : {"127.0.0.1", "127.0.0.2"})
      carry_until([one] {
        const std::vector<int> all = connected_at(loopback(one).prefix.address);
        return all.size() == 4 && have_heard(all);
      });
    cut_at(address);
    carry_until([&] { return has_said("the rail over TCP on lo has failed to 127.0.0.2:"); });
    carry(20);
  }
  EXPECT_THAT(log_.warned(), Not(HasSubstr(" failed: ")));
}

// When one of two RDMA NICs is missing, the other one is joined to its counterpart.
class OneOfTwoTest : public TcpRailsTest {
 protected:
  OneOfTwoTest()
      : TcpRailsTest({merged(nic_on("gone"), "from"), merged(nic_on("fake1"), "from"),
                      merged(nic_on("fake2"), "to"), merged(nic_on("fake3"), "to")}) {}
};

TEST_F(OneOfTwoTest, ANicThatCantBeUsedIsLeftOut) {
  carry(50);
  EXPECT_THAT(log_.warned(), HasSubstr("from: goes without ztcp-gone"));
  // fake2's own is gone.
  host_.devices.set_port_state("fake2", 1, IBV_PORT_DOWN);
  carry(50);
  EXPECT_THAT(log_.warned(), Not(HasSubstr("the rail over")));
}

// The receiver's first NIC of RDMA can't be used, so that its second is the connection's first
// rail.
class GpuOfOneOfTwoTest : public TcpRailsTest {
 protected:
  GpuOfOneOfTwoTest()
      : TcpRailsTest({merged(nic_on("fake0"), "from"), merged(nic_on("fake1"), "from"),
                      merged(nic_on("gone"), "to"), merged(nic_on("fake3"), "to")}) {}
};

TEST_F(GpuOfOneOfTwoTest, AFlushReadsByTheKeyOfItsRail) {
  const GpuMemory gpu(kSize);
  const auto key = pair_.receiver->register_memory(gpu.region());
  ASSERT_TRUE(key);
  const RecvBuffer buffer{.bytes = gpu.bytes(), .tag = 0, .key = *key};
  const auto flush = pair_.receiver->post_flush({&buffer, 1});
  ASSERT_TRUE(flush && *flush != nullptr);
  Result<bool> done = false;
  while (done && !*done) done = (*flush)->test({});
  EXPECT_TRUE(done) << log_.warned();
  EXPECT_TRUE(pair_.receiver->deregister_memory(*key));
}

// A user with a GPU that needs no flushes can say so, as to NCCL's own transport.
TEST(TcpRails, AFlushThatIsDisabledReadsNothing) {
  const test::LogCapture log;
  FakeHost host;
  host.variables.is_flush_disabled = true;
  const auto transport = host.start();
  EXPECT_THAT(transport->describe_device(1), HasSubstr("NCCL_GDR_FLUSH_DISABLE 1"));
  const test::Pair pair = test::connect(*transport, *transport, 1);
  constexpr std::size_t kSize = 1 << 16;
  const GpuMemory gpu(kSize);
  const auto key = pair.receiver->register_memory(gpu.region());
  ASSERT_TRUE(key);
  const RecvBuffer buffer{.bytes = gpu.bytes(), .tag = 0, .key = *key};
  const auto flush = pair.receiver->post_flush({&buffer, 1});
  ASSERT_TRUE(flush);
  EXPECT_EQ(*flush, nullptr);
  EXPECT_EQ(host.devices.carried_out(IBV_WR_RDMA_READ), 0);
  EXPECT_TRUE(pair.receiver->deregister_memory(*key));
}

// As where a container has none.
TEST(TcpRails, WithoutTheLibraryInterfacesServeAlone) {
  const test::LogCapture log;
  FakeHost host;
  const std::vector all{loopback(), tcp_address()};
  const auto devices = [&] {
    return devices_without_library("libibverbs.so.1 is not installed", host.fabric, {}, all);
  };
  EXPECT_TRUE(devices().empty()) << "RDMA alone";
  host.fabric.nics = {merged(nic_on("fake0"), "both"), merged(tcp_nic("eth-a"), "both"),
                      nic_on("fake1")};
  const auto transport = std::move(*create(host.fabric, devices()));
  EXPECT_THAT(log.warned(), HasSubstr("both: goes without ztcp-fake0, over the rest of its rails "
                                      "alone: libibverbs.so.1 is not installed"));
  const test::Pair pair = test::connect(*transport, *transport, 0);
  EXPECT_FALSE(transport->listen(1, {}));
}

TEST(TcpRails, EndsThatHaveNothingInCommonAreToldWhatTheyHave) {
  test::LogCapture log;
  FakeHost host;
  host.fabric.nics = {merged(nic_on("gone"), "from"), merged(tcp_nic("eth-a"), "from"),
                      nic_on("fake1")};
  const auto transport = host.start();
  auto listener = transport->listen(1, {});
  ASSERT_TRUE(listener);
  auto sender = transport->begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(sender);
  Result<bool> ready = false;
  while (ready && !*ready) ready = (*sender)->is_ready();
  EXPECT_EQ(ready.error().code, Errc::kProtocol);
  EXPECT_THAT(log.warned(), HasSubstr("no rail in common: RDMA 1 here, TCP 1 at the peer"));
}

}  // namespace
}  // namespace ztcp::verbs
