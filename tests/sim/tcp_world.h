// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two tcp::Stacks with one app on each, and the invariants that are checked after every event.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tests/sim/app.h"
#include "tests/sim/world.h"
#include "transport/tcp/stack.h"

namespace ztcp::sim {

inline constexpr std::uint16_t kPort = 7471;

struct TcpWorldOptions {
  WorldOptions world;
  tcp::StackConfig stack;  // Both hosts'; addresses are filled in.
  bool is_ipv6 = false;
  std::size_t client_bytes = 0;
  std::size_t server_bytes = 0;
};

// Jumbo frames and 10 us each way.
inline TcpWorldOptions short_path(std::size_t client_bytes, std::size_t server_bytes,
                                  bool is_ipv6 = false) {
  TcpWorldOptions options;
  options.world.forward.delay = options.world.backward.delay = std::chrono::microseconds(10);
  options.stack.mtu_bytes = 9000;
  options.is_ipv6 = is_ipv6;
  options.client_bytes = client_bytes;
  options.server_bytes = server_bytes;
  return options;
}

class TcpWorld {
 public:
  explicit TcpWorld(const TcpWorldOptions& options)
      : client_data(pattern(options.client_bytes, 101)),
        server_data(pattern(options.server_bytes, 202)),
        is_ipv6(options.is_ipv6),
        client_stack(host_config(options, 0), {1, 2}),
        server_stack(host_config(options, 1), {3, 4}),
        client(client_data, server_data),
        server(server_data, client_data),
        world(client_stack, server_stack, options.world) {
    world.add_invariant([this] { return broken(); });
  }

  static IpAddress address(std::size_t host, bool is_ipv6 = false) {
    if (is_ipv6) return {0xfd00ULL << 48, 0x101 + host};
    return Ipv4Address{0x0a4d0101 + static_cast<std::uint32_t>(host)};
  }

  // False with the reason in error() when the stack refuses at once.
  bool connect() {
    if (!server_stack.listen(kPort, server)) return false;
    const auto stream = client_stack.connect(world.now(), {address(1, is_ipv6), kPort}, client);
    if (!stream) return false;
    client.attach(**stream);
    return true;
  }
  [[nodiscard]] bool run_until_connected() {
    return connect() && world.run_until([this] { return client.is_open() && server.is_open(); });
  }
  bool is_all_delivered() const {
    return client.has_received_all() && server.has_received_all() && client.is_all_acked() &&
           server.is_all_acked();
  }
  // Closes both ends and waits until nothing is scheduled: then nothing may be held or unfinished.
  [[nodiscard]] bool finish() {
    client.close();
    server.close();
    return world.run_until_idle() && world.held_frames() == 0 && client_stack.unfinished() == 0 &&
           server_stack.unfinished() == 0;
  }

  Bytes client_data;
  Bytes server_data;
  const bool is_ipv6;
  tcp::Stack client_stack;
  tcp::Stack server_stack;
  App client;
  App server;
  World<tcp::Stack> world;

 private:
  static tcp::StackConfig host_config(const TcpWorldOptions& options, std::size_t host) {
    tcp::StackConfig config = options.stack;
    config.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
    config.address = {address(host, options.is_ipv6), 24};
    return config;
  }

  std::string broken() const {
    if (!client.violation().empty()) return "client: " + client.violation();
    if (!server.violation().empty()) return "server: " + server.violation();
    if (client_stack.next_deadline() == kNever && client_stack.unfinished() > 0)
      return "the client has unacknowledged bytes and no deadline";
    if (server_stack.next_deadline() == kNever && server_stack.unfinished() > 0)
      return "the server has unacknowledged bytes and no deadline";
    return {};
  }
};

}  // namespace ztcp::sim
