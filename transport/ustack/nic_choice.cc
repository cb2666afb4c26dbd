// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_choice.h"

#include <string_view>
#include <strings.h>

namespace ztcp::ustack {
namespace {

// PCI addresses and UUIDs are written in either case by drivers and people.
bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_paired(const config::Nic& nic) { return !nic.gpu_pci.empty() || !nic.gpu_uuid.empty(); }

bool is_paired_with(const config::Nic& nic, const GpuIdentity& gpu) {
  return (!gpu.uuid.empty() && same_text(nic.gpu_uuid, gpu.uuid)) ||
         (!gpu.pci.empty() && same_text(nic.gpu_pci, gpu.pci));
}

}  // namespace

std::vector<std::size_t> claim_candidates(std::span<const config::Nic> nics,
                                          const GpuIdentity& gpu) {
  std::vector<std::size_t> out;
  const bool gpu_known = !gpu.pci.empty() || !gpu.uuid.empty();
  if (gpu_known) {
    for (std::size_t i = 0; i < nics.size(); ++i) {
      if (is_paired_with(nics[i], gpu)) out.push_back(i);
    }
    if (!out.empty()) return out;
  }
  if (gpu.local_rank >= 0 && !nics.empty()) {
    return {static_cast<std::size_t>(gpu.local_rank) % nics.size()};
  }
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (!gpu_known || !is_paired(nics[i])) out.push_back(i);
  }
  return out;
}

bool has_route(const config::Nic& nic, Ipv4Address peer) {
  return nic.address.contains(peer) || nic.gateway.has_value();
}

bool can_stand_in(const config::Nic& wanted, const config::Nic& substitute) {
  return wanted.driver == substitute.driver && wanted.speed_mbps == substitute.speed_mbps;
}

}  // namespace ztcp::ustack
