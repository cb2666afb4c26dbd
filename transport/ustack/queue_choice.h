// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How many queues a NIC on PCI gets: what the config says, or what its speed could use and the CPUs
// suffice for. The device may have fewer still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "config/settings.h"
#include "transport/comms/poller_policy.h"

namespace ztcp::ustack {

struct QueueChoice {
  std::uint16_t count = 1;
  std::string reason;  // Of "auto", for the operator; else empty.
  // A number that the config says and the CPUs don't suffice for: what that costs, and what to
  // write.
  std::string warning;
};

// `nics`: of this host's fabric, whose processes share its CPUs.
QueueChoice choose_queues(const config::Nic& nic, const comms::CpuView& cpus, std::size_t nics);

// What the line of a NIC that was opened says: "poller", "2 queues (auto: ...), their pollers".
std::string pollers_text(std::size_t queues, const QueueChoice& choice);

}  // namespace ztcp::ustack
