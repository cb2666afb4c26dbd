// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/leave_out.h"

#include <algorithm>

#include <fmt/format.h>

#include "transport/core/shell_word.h"

namespace ztcp::setup {

bool has_name_of(const NicNames& list, const config::HostNic& nic) {
  const auto has = [&](const std::string& name) { return !name.empty() && list.contains(name); };
  return has(nic.pci) || has(nic.interface) || has(nic.address_interface) ||
         (nic.rdma && has(nic.rdma->device));
}

const std::string& word_for(const config::HostNic& nic) {
  return nic.rdma ? nic.rdma->device : nic.address_interface;
}

void leave_slow_ones(std::vector<config::HostNic>& nics, const IsAskedFor& is_asked_for) {
  std::uint32_t fastest = 0;
  for (const config::HostNic& nic : nics)
    if (nic.unfit.empty()) fastest = std::max(fastest, nic.speed_mbps);
  for (config::HostNic& nic : nics)
    if (nic.unfit.empty() && nic.speed_mbps != 0 && nic.speed_mbps < fastest && !is_asked_for(nic))
      nic.unfit = fmt::format("has {} Mb/s, another {}; --take {} uses it all the same",
                              nic.speed_mbps, fastest, shell_word(word_for(nic)));
}

void leave_reserved_ones(std::vector<config::HostNic>& nics, const config::Reserved& reserved,
                         const IsAskedFor& is_asked_for) {
  const auto reservation = [&](const config::HostNic& nic) -> const config::Reservation* {
    // RDMA goes over the port itself, whatever its queue pairs are agreed upon over.
    const auto found = reserved.find(nic.rdma ? nic.interface : nic.address_interface);
    return found == reserved.end() || found->second.yields || is_asked_for(nic) ? nullptr
                                                                                : &found->second;
  };
  if (std::none_of(nics.begin(), nics.end(), [&](const config::HostNic& nic) {
        return nic.unfit.empty() && reservation(nic) == nullptr;
      }))
    return;
  for (config::HostNic& nic : nics)
    if (const config::Reservation* why = reservation(nic); nic.unfit.empty() && why != nullptr)
      nic.unfit = fmt::format("{}; --take {} uses it as well", why->why, shell_word(word_for(nic)));
}

void leave_all_but(std::vector<config::HostNic>& nics, unsigned count) {
  for (config::HostNic& nic : nics) {
    if (!nic.unfit.empty()) continue;
    if (count == 0) nic.unfit = "is beyond the number of --nics";
    count -= count == 0 ? 0 : 1;
  }
}

}  // namespace ztcp::setup
