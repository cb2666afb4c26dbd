// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::config {

// Number of an interface's receive queues; 0: not known.
inline std::uint32_t receive_queues(Machine& machine, const std::string& interface) {
  const auto files = machine.list("/sys/class/net/" + interface + "/queues");
  return static_cast<std::uint32_t>(std::count_if(
      files.begin(), files.end(), [](const std::string& name) { return name.starts_with("rx-"); }));
}

}  // namespace ztcp::config
