// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two hosts in one process, each a transport over the kernel's loopback.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "config/settings.h"
#include "core/address.h"
#include "tests/support/cpu_share.h"
#include "transport/sockets/socket_transport.h"

namespace ztcp::sockets {

inline const IpAddress kLoopback4{Ipv4Address{0x7f000001}};
inline const IpAddress kLoopback6{0, 1};

inline Device loopback_device(IpAddress address = kLoopback4) {
  Device device;
  device.name = device.interface = "lo";
  device.address = address;
  device.rx_queues = 1;
  return device;
}

struct HostOptions {
  IpAddress address = kLoopback4;
  config::PollerMode mode = config::PollerMode::kAuto;
  std::uint32_t drain_timeout_ms = 200;
  std::uint32_t max_connections = 1024;
  std::int32_t workers = 0;
  std::uint32_t flows = 0;
  std::uint32_t redial_window_ms = 7000;
};

// A named parameter for tests that run with several kinds of hosts.
struct HostKind {
  const char* name;
  HostOptions options;
};

inline config::Fabric host_settings(const HostOptions& options = {}) {
  config::Fabric fabric;
  fabric.name = "loopback";
  fabric.path = "test.conf";
  fabric.poller.mode = options.mode;
  fabric.poller.workers = options.workers;
  fabric.messages.flows = options.flows;
  fabric.messages.redial_window_ms = options.redial_window_ms;
  fabric.messages.drain_timeout_ms = options.drain_timeout_ms;
  fabric.tcp.max_connections = options.max_connections;
  return fabric;
}

struct TwoHosts {
  explicit TwoHosts(const HostOptions& options = {}) {
    for (auto& transport : transports)
      transport = *create(host_settings(options), {loopback_device(options.address)},
                          test::cpus_of_this_process());
  }
  Transport& operator[](std::size_t host) { return *transports[host]; }

  std::array<std::unique_ptr<Transport>, 2> transports;
};

}  // namespace ztcp::sockets
