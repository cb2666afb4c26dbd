// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_choice.h"

#include <algorithm>
#include <string_view>
#include <strings.h>

#include "config/mesh.h"

namespace ztcp::ustack {
namespace {

using Indices = std::vector<std::size_t>;

// Drivers and people write PCI addresses and UUIDs in upper or lower case.
bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_paired(const config::Nic& nic) { return !nic.gpu_pci.empty() || !nic.gpu_uuid.empty(); }

bool is_paired_with(const config::Nic& nic, const GpuIdentity& gpu) {
  return (!gpu.uuid.empty() && same_text(nic.gpu_uuid, gpu.uuid)) ||
         (!gpu.pci.empty() && same_text(nic.gpu_pci, gpu.pci));
}

template <class Fits>
Indices nics_that(std::span<const config::Nic> nics, Fits&& fit) {
  Indices out;
  for (std::size_t i = 0; i < nics.size(); ++i)
    if (fit(nics[i])) out.push_back(i);
  return out;
}

Indices paired_with_any(std::span<const config::Nic> nics, const std::vector<GpuIdentity>& gpus) {
  return nics_that(nics, [&](const config::Nic& nic) {
    return std::ranges::any_of(gpus, [&](const auto& gpu) { return is_paired_with(nic, gpu); });
  });
}

void append_new(Indices& to, const Indices& from) {
  for (const std::size_t i : from)
    if (std::ranges::find(to, i) == to.end()) to.push_back(i);
}

// Puts NICs as fast as `wanted` first, and rotates these by `wanted`. If none is as fast, rotates
// all.
void take_turns(std::span<const config::Nic> nics, std::size_t wanted, Indices& order) {
  const std::uint32_t speed = config::told_speed_mbps(nics[wanted]);
  const auto slower = std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
    return config::told_speed_mbps(nics[i]) == speed;
  });
  const auto end = slower == order.begin() ? order.end() : slower;
  if (end == order.begin()) return;
  const auto count = static_cast<std::size_t>(end - order.begin());
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted % count), end);
}

}  // namespace

NicChoice choose_nics(std::span<const config::Nic> nics, const ProcessGpus& gpus,
                      std::size_t wanted) {
  if (const Indices ours = paired_with_any(nics, gpus.driven); !ours.empty()) {
    Indices nearest = gpus.current ? paired_with_any(nics, {*gpus.current}) : ours;
    take_turns(nics, wanted, nearest);
    NicChoice choice{.order = {}, .all_are_ours = true};
    if (std::ranges::find(ours, wanted) != ours.end()) choice.order.push_back(wanted);
    append_new(choice.order, nearest);
    append_new(choice.order, ours);
    return choice;
  }
  if (gpus.local_rank >= 0)
    return {.order = {static_cast<std::size_t>(gpus.local_rank) % nics.size()}};
  Indices free = nics_that(
      nics, [&](const config::Nic& nic) { return gpus.driven.empty() || !is_paired(nic); });
  // The device that NCCL asks for comes first.
  // clang 14 does not compile libstdc++'s std::ranges::stable_partition().
  std::stable_partition(free.begin(), free.end(), [&](std::size_t i) { return i == wanted; });
  return {.order = std::move(free)};
}

Indices expected_nics(std::span<const config::Nic> nics, const ProcessGpus& gpus) {
  std::vector<GpuIdentity> all = gpus.driven;
  all.insert(all.end(), gpus.active.begin(), gpus.active.end());
  Indices expected = paired_with_any(nics, all);
  if (expected.empty() && gpus.local_rank >= 0 && !nics.empty())
    expected.push_back(static_cast<std::size_t>(gpus.local_rank) % nics.size());
  return expected;
}

std::string obstacle(const config::Nic& nic, const ListenAddress& peer) {
  if (config::is_mesh(nic) && !peer.in_shared_memory)
    return "is shared memory between processes of this host, and the peer's is not";
  if (!config::is_mesh(nic) && peer.in_shared_memory)
    return "is on a network, and the peer's is shared memory between processes of its host";
  const IpAddress address = peer.endpoint.address;
  const IpAddress own = nic.address.address;
  // The kernel knows the routes of its own interface.
  const bool has_gateway =
      config::is_past_kernel(nic.driver) || (nic.gateway.has_value() && !own.is_link_local_v6());
  if (nic.address == config::kAutoAddress && !address.is_v4()) return {};  // Not taken yet.
  if (own.is_v4() == address.is_v4() &&
      (nic.address.contains(address) || address.is_link_local_v6() || has_gateway))
    return {};
  return "has no route to " + to_string(address);
}

bool can_stand_in(const config::Nic& wanted, const config::Nic& substitute) {
  return wanted.driver == substitute.driver;
}

}  // namespace ztcp::ustack
