// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/death_watch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <utility>

#include "core/local_addresses.h"
#include "core/log.h"
#include "transport/comms/nic.h"
#include "transport/msg/hmac_sha256.h"
#include "transport/watch/interface.h"

namespace ztcp::comms {
namespace {

// The training job needs the descriptors: the watch may use one in so many.
constexpr rlim_t kDescriptorShare = 8;
constexpr rlim_t kLeastPeers = 16;
constexpr rlim_t kMostPeers = 1024;

std::size_t most_peers() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeastPeers;
  return std::clamp(limit.rlim_cur / kDescriptorShare, kLeastPeers, kMostPeers);
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<IpAddress> address_for(const std::string& wanted, bool is_of_this_machine) {
  const auto all = local_addresses();
  if (wanted == "auto" && is_of_this_machine) return watch::choose_address("lo", {}, {}, all);
  return watch::choose_address(
      wanted, {.ifname = variable("NCCL_SOCKET_IFNAME"), .family = variable("NCCL_SOCKET_FAMILY")},
      watch::default_interface(), all);
}

watch::Proof proof_of(const msg::Cookie& cookie) {
  const msg::Digest digest =
      msg::hmac_sha256(cookie, {std::as_bytes(std::span(std::string_view("ztcp1 watch")))});
  watch::Proof proof{};
  std::copy_n(digest.begin(), proof.size(), proof.begin());
  return proof;
}

}  // namespace

std::shared_ptr<DeathWatch> DeathWatch::open(const config::Fabric& fabric, const Watcher& watcher) {
  const std::string& wanted = fabric.messages.watch_interface;
  if (wanted == "off") return nullptr;
  const std::string whose =
      watcher.is_kernels ? "a peer's process that drives its NIC itself" : "a peer's process";
  const std::string without = "the death of " + whose + " is noticed by its silence alone";
  const auto address = address_for(wanted, watcher.is_of_this_machine);
  if (!address) {
    log::info("{}: {}: no interface with a usable address for watch_interface = \"{}\" in {}",
              watcher.nic, without, wanted, fabric.path);
    return nullptr;
  }
  auto kernel = watch::PeerWatch::open({.nic = watcher.address,
                                        .shares_nic = watcher.is_kernels,
                                        .bind_address = *address,
                                        .max_peers = most_peers()});
  if (!kernel) {
    log::info("{}: {}: {} on {}: {}", watcher.nic, without, kernel.error().where,
              to_string(*address), std::strerror(kernel.error().sys_errno));
    return nullptr;
  }
  log::info("{}: {} are watched by the kernel's TCP at {}", watcher.nic,
            watcher.is_kernels ? "processes of peers that drive their NICs themselves"
                               : "peers' processes",
            to_string((*kernel)->endpoint()));
  return std::shared_ptr<DeathWatch>(new DeathWatch(watcher, std::move(*kernel)));
}

void DeathWatch::expect(const msg::Cookie& cookie) {
  kernel_->expect(proof_of(cookie));
  say_trouble();
}

void DeathWatch::dial(IpAddress nic, Endpoint to, const msg::Cookie& cookie) {
  kernel_->dial(nic, to, proof_of(cookie));
  say_trouble();
}

// Called by control threads only: a logger may block, and the thread that calls check() drives the
// NIC.
void DeathWatch::say_trouble() {
  if (const std::string trouble = kernel_->take_trouble(); !trouble.empty())
    log::info("{}: no watch over the process at {}: its death is noticed by its silence alone",
              nic_, trouble);
}

// The peer's process may have connections on any of the NIC's pollers. Each has its own baton, so
// they are visited one after the other.
void DeathWatch::check(const Nic& nic, TimePoint now) {
  for (const watch::Peer& peer : kernel_->poll(now)) suspects_.add(now, peer);
  if (suspects_.empty()) return;
  const auto with_each = [&](auto&& body) {
    for (const auto& poller : nic.pollers)
      poller->with_backend([&](TimePoint at) { body(poller->backend(), at); });
  };
  suspects_.check(
      now,
      [&](IpAddress suspect) {
        with_each([&](Backend& backend, TimePoint) { backend.probe(suspect); });
      },
      [&](IpAddress suspect) {
        TimePoint last = TimePoint::min();
        with_each([&](Backend& backend, TimePoint at) {
          // Each poller has its own clock (RunningClock), and so does the caller: compare spans.
          if (const TimePoint heard = backend.heard_from(at, suspect); heard != TimePoint::min())
            last = std::max(last, now - (at - heard));
        });
        return last;
      },
      [&](const watch::Peer& peer) {
        const std::string who =
            peer.pid == 0 ? "its kernel closed the watch connection before the greeting"
                          : "process " + std::to_string(peer.pid) + " on host " + peer.host;
        with_each([&](Backend& backend, TimePoint at) {
          backend.clients().for_each([&](Client& client) {
            client.on_peer_died(at, peer.nic, "the peer's process has ended: " + who);
          });
        });
      });
}

}  // namespace ztcp::comms
