// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Log lines about NICs that can't carry traffic: the reason, and the advice that goes with it. Pure
// functions over the config.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "config/settings.h"
#include "core/listen_address.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {

// For a NIC without a carrier: "is the interface up? See ip link show ztcp0"
std::string carrier_advice(const config::Nic& nic);

// "ztcp0: no route from 10.0.0.1/24 to 10.0.1.2: it has no route to ...: <advice>". `why`: of
// obstacle().
std::string no_route_line(const config::Fabric& fabric, const config::Nic& nic,
                          const ListenAddress& peer, const std::string& why);

// No NIC could be chosen for a device.
struct NicShortage {
  std::map<std::size_t, std::string> unable;  // The reason for each NIC that was passed over.
  bool is_one_taken = false;                  // Another process has one of them.
  bool all_are_ours = false;                  // See NicChoice.
};
// "ztcp0: no NIC of this process (GPU 0000:17:00.0) can carry its traffic: ztcp0 is taken by ...:
// <advice>"
std::string shortage_line(const config::Fabric& fabric, const config::Nic& wanted,
                          const ProcessGpus& gpus, const NicShortage& shortage);

}  // namespace ztcp::ustack
