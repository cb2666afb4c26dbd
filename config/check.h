// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares a Fabric with the machine it is used on, at init and in `ztcp_setup --check`. Each
// mismatch names both values and the command that mends it.
#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::config {

// Where the machine is read. Tests point it at recorded trees.
struct Roots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string etc = "/etc";
};

// GPU PCI addresses this process can see ("0000:17:00.0"); empty: none, or no CUDA.
using GpuList = std::vector<std::string>;

Problems check_host(const Fabric& fabric, const Roots& roots, const GpuList& gpus);

}  // namespace ztcp::config
