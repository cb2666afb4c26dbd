// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two hosts in one process: each is a real Transport with poller threads over a fabric of one NIC,
// and a link in memory joins the NICs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "config/settings.h"
#include "tests/support/cpu_share.h"
#include "transport/link/memory_link.h"
#include "transport/ustack/nic.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {

// Provides links that a test added, one for each queue of a NIC. A NIC can be opened once.
class MemoryNics final : public NicSource {
 public:
  void add(const std::string& nic, std::unique_ptr<link::Link> link) {
    links_[nic].push_back(std::move(link));
  }
  // Makes claim() fail as if another process had the NIC.
  void take(const std::string& nic) { links_[nic].clear(); }

  Result<std::unique_ptr<NicClaim>> claim(const config::Nic& nic, std::string* holder) override {
    if (links_[nic.name].empty()) {
      *holder = "somebody";
      return fail(Errc::kBusy, "claim");
    }
    return std::make_unique<Claim>();
  }
  Result<std::vector<std::unique_ptr<link::Link>>> open(const config::Nic& nic,
                                                        const NicClaim&) override {
    return std::move(links_[nic.name]);
  }
  void on_thread_start() override { ++threads_started; }
  void on_thread_end() override { ++threads_ended; }

  std::atomic<int> threads_started{0};
  std::atomic<int> threads_ended{0};

 private:
  class Claim final : public NicClaim {};
  std::map<std::string, std::vector<std::unique_ptr<link::Link>>> links_;  // One for each queue.
};

struct HostOptions {
  config::PollerMode mode = config::PollerMode::kShared;
  std::uint16_t mtu_bytes = 9000;
  std::uint32_t drain_timeout_ms = 200;
  std::uint32_t handshake_timeout_ms = 5000;
  std::uint32_t max_sleep_us = 1000;
  std::uint32_t max_connections = 1024;
  bool watch = false;  // Watch peers' processes, over the kernel's loopback.
  std::uint32_t queues = 1;
  std::int32_t workers = -1;
  const char* address = "";  // With prefix; empty: an IPv4 address.
};

// The suffix of a test that runs in both modes.
inline std::string mode_name(const testing::TestParamInfo<config::PollerMode>& row) {
  return row.param == config::PollerMode::kShared ? "shared" : "dedicated";
}

// The lane of a connection: " lane 1".
inline std::string lane_of(const Comm& comm) {
  const std::string text = comm.describe_peer();
  return text.substr(text.find(" lane "));
}

inline config::Fabric one_nic_fabric(int host, const HostOptions& options = {}) {
  config::Fabric fabric;
  fabric.name = "memory";
  fabric.path = "test.conf";
  fabric.poller.mode = options.mode;
  fabric.poller.max_sleep_us = options.max_sleep_us;
  fabric.poller.workers = options.workers;
  fabric.tcp.max_connections = options.max_connections;
  fabric.messages.watch_interface = options.watch ? "auto" : "off";
  fabric.messages.drain_timeout_ms = options.drain_timeout_ms;
  fabric.messages.handshake_timeout_ms = options.handshake_timeout_ms;
  config::Nic nic;
  nic.name = "mem" + std::to_string(host);
  nic.mac = {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
  nic.address = Ipv4Prefix{{0x0a010001U + static_cast<std::uint32_t>(host)}, 24};
  if (const auto address = parse_ip_prefix(options.address)) nic.address = *address;
  nic.mtu_bytes = options.mtu_bytes;
  nic.queues = options.queues;
  fabric.nics.push_back(nic);
  return fabric;
}

struct TwoHosts {
  explicit TwoHosts(const HostOptions& options = {}) : TwoHosts(options, options) {}
  TwoHosts(const HostOptions& options, const HostOptions& second) {
    link::MemoryLinkOptions cable;
    cable.mtu_bytes = options.mtu_bytes;
    for (std::uint32_t queue = 0; queue < options.queues; ++queue) {
      auto [left, right] = link::make_memory_links(cable);
      if (queue == 0) links = {left.get(), right.get()};
      sources[0]->add("mem0", std::move(left));
      sources[1]->add("mem1", std::move(right));
    }
    for (int host = 0; host < 2; ++host) {
      const auto at = static_cast<std::size_t>(host);
      transports[at] = *create(one_nic_fabric(host, host == 0 ? options : second),
                               test::cpus_of_this_process(), nullptr, sources[at]);
    }
  }
  Transport& operator[](std::size_t host) { return *transports[host]; }

  std::array<std::shared_ptr<MemoryNics>, 2> sources = {std::make_shared<MemoryNics>(),
                                                        std::make_shared<MemoryNics>()};
  std::array<link::Link*, 2> links{};  // Links of the first queue.
  std::array<std::unique_ptr<Transport>, 2> transports;
};

}  // namespace ztcp::ustack
