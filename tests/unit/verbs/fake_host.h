// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host with two fake RDMA devices (fake_fabric.h) and their entries in sysfs; and transports over
// them, with their exchange over loopback.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/tree.h"
#include "tests/support/verbs/fake_fabric.h"
#include "transport/verbs/device_list.h"
#include "transport/verbs/verbs_transport.h"

namespace ztcp::verbs {

inline ibv_gid gid_of(std::uint64_t high, std::uint64_t low) {
  ibv_gid out{};
  for (int i = 0; i < 8; ++i) {
    out.raw[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
    out.raw[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  }
  return out;
}
// ::ffff:10.0.0.`host`
inline ibv_gid ipv4_gid(unsigned host) { return gid_of(0, 0xffff'0a00'0000ULL + host); }

// With a link-local GID of each version in front of those of its address, as kernels have them.
inline test::FakeDeviceSpec roce_device(const std::string& name, unsigned host) {
  test::FakeDeviceSpec spec;
  spec.name = name;
  const ibv_gid local = gid_of(0xfe80'0000'0000'0000, host);
  spec.ports[0].gids = {local, local, ipv4_gid(host), ipv4_gid(host)};
  return spec;
}

// Each at an address of its own: "127.0.0.`host`".
inline test::FakeDeviceSpec iwarp_device(const std::string& name, unsigned host) {
  test::FakeDeviceSpec spec;
  spec.name = name;
  spec.is_iwarp = true;
  spec.address = Ipv4Address{0x7f00'0000U + host};
  spec.ports[0].gids = {gid_of(0x0200'0000'0000'0000, 0)};
  return spec;
}

inline std::string gid_types(const std::string& device, int port = 1) {
  std::string out;
  for (int i = 0; i < 4; ++i)
    out += "file path=sys/class/infiniband/" + device + "/ports/" + std::to_string(port) +
           "/gid_attrs/types/" + std::to_string(i) +
           " text=" + (i % 2 == 0 ? "IB/RoCE v1" : "RoCE v2") + "\\n\n";
  return out;
}

inline LocalAddress loopback(const std::string& address = "127.0.0.1") {
  return {.interface = "lo",
          .index = 1,
          .prefix = *parse_ip_prefix(address + "/8"),
          .is_up = true,
          .is_running = true,
          .is_loopback = true};
}

inline config::Nic nic_on(const std::string& device) {
  config::Nic nic;
  nic.name = "ztcp-" + device;
  nic.driver = config::NicDriver::kVerbs;
  nic.device = device;
  nic.address = loopback().prefix;
  nic.first_port = nic.last_port = 0;
  return nic;
}

// Where rails of TCP are.
inline LocalAddress tcp_address() { return loopback("127.0.0.2"); }

inline config::Nic tcp_nic(const std::string& name) {
  config::Nic nic;
  nic.name = name;
  nic.driver = config::NicDriver::kSocket;
  nic.interface = "lo";
  nic.address = tcp_address().prefix;
  nic.first_port = nic.last_port = 0;
  nic.speed_mbps = 50'000;
  return nic;
}

inline config::Nic at(config::Nic nic, const std::string& address) {
  nic.address = loopback(address).prefix;
  return nic;
}

inline config::Nic merged(config::Nic nic, const char* word) {
  nic.merge = word;
  return nic;
}

struct FakeHost {
  explicit FakeHost(std::uint64_t seed = 1)
      : FakeHost({roce_device("fake0", 1), roce_device("fake1", 2)}, seed) {}
  FakeHost(const std::vector<test::FakeDeviceSpec>& specs, std::uint64_t seed)
      : tree(gid_types("fake0") + gid_types("fake1") + gid_types("fake2") + gid_types("fake3")),
        devices(specs, seed) {
    fabric.path = "/etc/ztcp.conf";
    fabric.nics = {nic_on("fake0"), nic_on("fake1")};
    for (const test::FakeDeviceSpec& spec : specs)
      for (std::size_t i = 0; i < spec.ports[0].gid_types.size(); ++i)
        tree.add_file(
            "sys/class/infiniband/" + spec.name + "/ports/1/gid_attrs/types/" + std::to_string(i),
            spec.ports[0].gid_types[i] + "\n");
    for (std::size_t i = 0; i < std::min(specs.size(), fabric.nics.size()); ++i)
      if (specs[i].is_iwarp) fabric.nics[i].address.address = specs[i].address;
    fabric.tcp.connect_timeout_ms = 5000;
    fabric.messages.drain_timeout_ms = 500;
  }

  std::vector<Device> list() const {
    return devices_of(*devices.api(), fabric, variables,
                      std::vector{loopback(), tcp_address(), loopback("127.0.0.3")},
                      tree.root() + "/sys");
  }
  std::unique_ptr<Transport> start() const {
    auto made = create(fabric, list());
    EXPECT_TRUE(made);
    return made ? std::move(*made) : nullptr;
  }

  test::Tree tree;
  test::FakeFabric devices;
  config::Fabric fabric;
  NcclVariables variables;
};

}  // namespace ztcp::verbs
