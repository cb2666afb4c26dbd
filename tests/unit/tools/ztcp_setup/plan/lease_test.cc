// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/lease.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;

const Ipv4Address kAddress = *parse_ipv4("10.6.1.4");

std::optional<Lease> lease_by(const std::string& path, const std::string& text) {
  FakeHost host;
  host.add_file(path, text);
  host.state.values[path] = text;
  return find_lease(host, "eth1", 3, kAddress);
}

void expect_lease(const std::optional<Lease>& lease, const std::string& client,
                  const std::string& server, std::uint32_t lifetime_s) {
  ASSERT_TRUE(lease) << client;
  EXPECT_EQ(lease->client, client);
  EXPECT_EQ(lease->server, server);
  EXPECT_EQ(lease->lifetime_s, lifetime_s);
}

const std::string kFields = "ADDRESS=10.6.1.4\nSERVER_ADDRESS=10.6.1.1\nLIFETIME=86400\n";

std::string block(const std::string& interface, const std::string& address, int lifetime_s) {
  return "lease {\n  interface \"" + interface + "\";\n  fixed-address " + address +
         ";\n  option dhcp-lease-time " + std::to_string(lifetime_s) +
         ";\n  option dhcp-server-identifier 10.6.1.1;\n}\n";
}

TEST(Lease, IsFoundInTheFilesOfEachClient) {
  expect_lease(lease_by("/run/systemd/netif/leases/3", kFields), "systemd-networkd", "10.6.1.1",
               86400);
  expect_lease(lease_by("/var/lib/NetworkManager/internal-5f-eth1.lease", kFields),
               "NetworkManager", "10.6.1.1", 86400);
  expect_lease(lease_by("/var/lib/dhcp/dhclient.eth1.leases", block("eth1", "10.6.1.4", 3600)),
               "dhclient", "10.6.1.1", 3600);
  expect_lease(lease_by("/var/lib/dhcpcd/eth1.lease", "\x02\x01\x06"), "dhcpcd", "", 0);
}

TEST(Lease, OtherInterfacesAndAddressesAreIgnored) {
  EXPECT_FALSE(lease_by("/run/systemd/netif/leases/4", kFields));
  EXPECT_FALSE(lease_by("/run/systemd/netif/leases/3", "ADDRESS=10.6.1.5\n"));
  EXPECT_FALSE(lease_by("/var/lib/NetworkManager/internal-5f-eth11.lease", kFields));
  EXPECT_FALSE(lease_by("/var/lib/dhcp/dhclient.leases",
                        block("eth2", "10.6.1.4", 60) + block("eth1", "10.6.1.5", 60)));
  EXPECT_FALSE(lease_by("/etc/nothing", ""));
}

// dhclient appends each renewal.
TEST(Lease, TheLastLeaseOfDhclientCounts) {
  const auto lease = lease_by("/var/lib/dhcp/dhclient.leases",
                              block("eth1", "10.6.1.4", 3600) + block("eth1", "10.6.1.4", 7200));
  expect_lease(lease, "dhclient", "10.6.1.1", 7200);
}

TEST(Lease, MalformedLifetimesAreUnknown) {
  expect_lease(lease_by("/run/systemd/netif/leases/3", "ADDRESS=10.6.1.4\nLIFETIME=long\n"),
               "systemd-networkd", "", 0);
}

}  // namespace
}  // namespace ztcp::setup
