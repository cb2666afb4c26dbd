// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Merged devices with NICs that have addresses of their own: notes about rails still arrive after
// the link of one path has failed. Sockets of this process stand for links: a path is cut as by a
// link failure, or by the end of its process.
#include <map>
#include <string>
#include <vector>

#include "core/listen_address.h"
#include "tests/unit/verbs/own_sockets.h"
#include "tests/unit/verbs/rails_fixture.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<int> sockets_at(const std::string& address) {
  return connected_at(loopback(address).prefix.address);
}
void cut(const std::string& address) { cut_at(loopback(address).prefix.address); }

class PathsFixture : public RailsFixture {
 protected:
  static constexpr const char* kFirst = "127.0.0.1";
  static constexpr const char* kSecond = "127.0.0.2";

  using RailsFixture::RailsFixture;

  // Until both ends of so many connections are there and have greeted each other.
  void carry_until_connected(const std::string& address, std::size_t connections = 1) {
    carry_until([&] {
      const std::vector<int> all = sockets_at(address);
      return all.size() == 2 * connections && have_heard(all);
    });
  }
  void rail_fails_and_is_back(const std::string& device) {
    const std::size_t backs = backs_[device]++;
    host_.devices.set_port_state(device, 1, IBV_PORT_DOWN);
    carry_until([&] { return has_said("the rail over " + device + " port 1 has failed"); });
    carry(5);
    host_.devices.set_port_state(device, 1, IBV_PORT_ACTIVE);
    carry_until([&] {
      return has_said("the rail over " + device + " port 1 to 127.0.0.1:",
                      static_cast<std::ptrdiff_t>(backs + 1));
    });
    carry(5);
  }

  std::map<std::string, std::size_t> backs_;
};

class PathsTest : public PathsFixture {
 protected:
  PathsTest()
      : PathsFixture({merged(nic_on("fake0"), "from"), merged(at(nic_on("fake1"), kSecond), "from"),
                      merged(nic_on("fake2"), "to"), merged(at(nic_on("fake3"), kSecond), "to")}) {}
};

TEST_F(PathsTest, ThereIsOneOverEachNicWithAnAddress) {
  carry_until_connected(kSecond);
  EXPECT_EQ(sockets_at(kFirst).size(), 2U);
  rail_fails_and_is_back("fake0");
  rail_fails_and_is_back("fake1");
  EXPECT_EQ(sockets_at(kSecond).size(), 2U);
}

TEST_F(PathsTest, TheFirstMayEnd) {
  carry_until_connected(kSecond);
  cut(kFirst);
  carry_until([] { return sockets_at(kFirst).empty(); });
  rail_fails_and_is_back("fake0");
  carry_until_connected(kFirst);
  cut(kSecond);
  carry_until([] { return sockets_at(kSecond).empty(); });
  rail_fails_and_is_back("fake1");
  carry_until_connected(kSecond);
  EXPECT_THAT(log_.warned(), Not(HasSubstr(" failed: ")));
}

TEST_F(PathsTest, WhereTheFirstNicIsDownAnotherIsListenedOn) {
  host_.devices.set_port_state("fake2", 1, IBV_PORT_DOWN);
  carry_until([&] { return has_said("port 1 of fake2 is down"); });
  const auto listener = transport_->listen(1, {});
  ASSERT_TRUE(listener);
  EXPECT_EQ(parse_listen_address((*listener)->handle().bytes)->endpoint.address,
            loopback(kSecond).prefix.address);
  over(test::connect(*transport_, *transport_, 1), [this] { carry(5); });
}

// Notes that were lost with a path are sent again.
TEST_F(PathsTest, NotesSentAsAPathEndsAreHeard) {
  for (int i = 0; i < 3 && !HasFailure(); ++i) {
    carry_until_connected(kFirst);
    carry_until_connected(kSecond);
    host_.devices.set_port_state("fake0", 1, IBV_PORT_DOWN);
    cut(i % 2 == 0 ? kFirst : kSecond);
    carry(5);
    host_.devices.set_port_state("fake0", 1, IBV_PORT_ACTIVE);
    carry_until([&] { return has_said("the rail over fake0 port 1 to 127.0.0.1:", i + 1); });
    carry(5);
  }
}

TEST_F(PathsTest, TheLastIsThePeersEnd) {
  carry_until_connected(kSecond);
  Status sent = {};
  while (sent) {
    cut(kSecond);
    cut(kFirst);
    const auto request = pair_.sender->post_send(place(from_, 0), 0, from_key_);
    if (!request) sent = tl::unexpected(request.error());
  }
  EXPECT_EQ(sent.error().code, Errc::kPeerClosed);
  EXPECT_THAT(log_.warned(), HasSubstr("its process ended without a word"));
}

// NICs that share one address for the exchange have one path.
class OneAddressTest : public PathsFixture {
 protected:
  OneAddressTest()
      : PathsFixture({merged(nic_on("fake0"), "from"), merged(nic_on("fake1"), "from"),
                      merged(nic_on("fake2"), "to"), merged(nic_on("fake3"), "to")}) {}
};

TEST_F(OneAddressTest, OnePathServesBothNics) {
  carry(20);
  rail_fails_and_is_back("fake0");
  EXPECT_EQ(sockets_at(kFirst).size(), 2U);
}

// An interface of the kernel's has its path beside its stream.
class TcpPathTest : public PathsFixture {
 protected:
  TcpPathTest()
      : PathsFixture({merged(nic_on("fake0"), "from"), merged(tcp_nic("eth-a"), "from"),
                      merged(nic_on("fake2"), "to"), merged(tcp_nic("eth-b"), "to")}) {}
};

TEST_F(TcpPathTest, TheFirstMayEnd) {
  carry_until_connected(kSecond, 2);
  cut(kFirst);
  rail_fails_and_is_back("fake0");
  carry_until_connected(kFirst);
  EXPECT_THAT(log_.warned(), Not(HasSubstr(" failed: ")));
}

// With more than two addresses, the second path goes over the last one; while a path is missing,
// every address has one.
class ThreeAddressesTest : public PathsFixture {
 protected:
  static constexpr const char* kThird = "127.0.0.3";

  ThreeAddressesTest()
      : PathsFixture({merged(nic_on("fake0"), "from"), merged(at(nic_on("fake1"), kSecond), "from"),
                      merged(at(tcp_nic("eth-a"), kThird), "from"), merged(nic_on("fake2"), "to"),
                      merged(at(nic_on("fake3"), kSecond), "to"),
                      merged(at(tcp_nic("eth-b"), kThird), "to")}) {}
};

TEST_F(ThreeAddressesTest, OneStandsByAndAllWhileOneIsMissing) {
  carry_until_connected(kThird, 2);
  EXPECT_TRUE(sockets_at(kSecond).empty());
  cut(kFirst);
  carry_until_connected(kSecond);
  cut(kThird);
  rail_fails_and_is_back("fake0");
}

// A stranger without a ticket is turned away, and disturbs no connection.
TEST_F(PathsTest, StrangersAreTurnedAway) {
  carry_until_connected(kSecond);
  for (const Ticket& ticket : {Ticket{}, Ticket{std::byte{1}}})
    EXPECT_TRUE(is_turned_away(loopback(kSecond).prefix.address, make_path_hello(ticket, 0)));
  carry(5);
  EXPECT_EQ(log_.warned(), "");
}

}  // namespace
}  // namespace ztcp::verbs
