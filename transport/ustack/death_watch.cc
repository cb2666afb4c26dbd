// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/death_watch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>

#include "transport/core/local_addresses.h"
#include "transport/core/log.h"
#include "transport/msg/hmac_sha256.h"
#include "transport/ustack/nic.h"
#include "transport/watch/interface.h"

namespace ztcp::ustack {
namespace {

// Descriptors are the training's: no more of them than this part.
constexpr rlim_t kDescriptorShare = 8;
constexpr rlim_t kLeastPeers = 16;
constexpr rlim_t kMostPeers = 1024;

std::size_t most_peers() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeastPeers;
  return std::clamp(limit.rlim_cur / kDescriptorShare, kLeastPeers, kMostPeers);
}

std::optional<Ipv4Address> address_for(const std::string& wish, const config::Nic& nic) {
  const auto all = local_addresses();
  // Whoever shares memory with us is on this machine.
  if (wish == "auto" && nic.driver == config::NicDriver::kMemif)
    return watch::choose_address("lo", {}, {}, all);
  const char* const nccl = std::getenv("NCCL_SOCKET_IFNAME");
  return watch::choose_address(wish, nccl != nullptr ? nccl : "", watch::default_interface(), all);
}

watch::Proof proof_of(const msg::Cookie& cookie) {
  const msg::Digest digest =
      msg::hmac_sha256(cookie, {std::as_bytes(std::span(std::string_view("ztcp1 watch")))});
  watch::Proof proof{};
  std::copy_n(digest.begin(), proof.size(), proof.begin());
  return proof;
}

}  // namespace

std::shared_ptr<DeathWatch> DeathWatch::open(const config::Fabric& fabric, const config::Nic& nic) {
  const std::string& wish = fabric.messages.watch_interface;
  if (wish == "off") return nullptr;
  constexpr auto kWithout = "the death of a peer's process is noticed by its silence alone";
  const auto address = address_for(wish, nic);
  if (!address) {
    log::info("{}: {}: no interface with an IPv4 address for watch_interface = \"{}\" in {}",
              nic.name, kWithout, wish, fabric.path);
    return nullptr;
  }
  auto kernel = watch::PeerWatch::open(
      {.nic = nic.address.address, .bind_address = *address, .max_peers = most_peers()});
  if (!kernel) {
    log::info("{}: {}: {} on {}: {}", nic.name, kWithout, kernel.error().where, to_string(*address),
              std::strerror(kernel.error().sys_errno));
    return nullptr;
  }
  log::info("{}: peers' processes are watched by the kernel's TCP at {}", nic.name,
            to_string((*kernel)->endpoint()));
  return std::shared_ptr<DeathWatch>(new DeathWatch(nic.name, std::move(*kernel)));
}

void DeathWatch::expect(const msg::Cookie& cookie) {
  kernel_->expect(proof_of(cookie));
  say_trouble();
}

void DeathWatch::dial(IpAddress nic, Endpoint to, const msg::Cookie& cookie) {
  kernel_->dial(nic, to, proof_of(cookie));
  say_trouble();
}

// From control threads: a logger may block, and the one that looks has a NIC to drive.
void DeathWatch::say_trouble() {
  if (const std::string trouble = kernel_->take_trouble(); !trouble.empty())
    log::info("{}: no watch over the process at {}: its death is noticed by its silence alone",
              nic_, trouble);
}

// The process has connections on any of the queues. One at a time: a baton each.
void DeathWatch::look(const Nic& nic, TimePoint now) {
  for (const watch::Peer& peer : kernel_->look(now)) suspects_.add(now, peer);
  if (suspects_.empty()) return;
  const auto with_each = [&](auto&& body) {
    for (std::size_t i = 0; i < nic.pollers.size(); ++i) {
      Poller& poller = nic.queue(i);
      poller.with_engine([&](Engine& engine, TimePoint at) { body(poller, engine, at); });
    }
  };
  suspects_.look(
      now,
      [&](IpAddress suspect) {
        with_each([&](Poller&, Engine& engine, TimePoint) { engine.probe(suspect); });
      },
      [&](IpAddress suspect) {
        TimePoint last = TimePoint::min();
        with_each([&](Poller&, Engine& engine, TimePoint) {
          last = std::max(last, engine.heard_from(suspect));
        });
        return last;
      },
      [&](const watch::Peer& peer) {
        const std::string who = "process " + std::to_string(peer.pid) + " on host " + peer.host;
        with_each([&](Poller& poller, Engine&, TimePoint at) {
          poller.backend().clients().for_each([&](comms::Client& client) {
            client.on_peer_died(at, peer.nic, "the peer's process has ended: " + who);
          });
        });
      });
}

}  // namespace ztcp::ustack
