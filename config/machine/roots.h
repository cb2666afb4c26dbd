// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Where the machine is read. Tests point it at trees of their own.
#pragma once

#include <string>

namespace ztcp::config {

struct Roots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string etc = "/etc";
  std::string top;  // What stands before all other paths: "/run/..."
};

}  // namespace ztcp::config
