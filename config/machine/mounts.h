// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The mounts visible to this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::config {

struct Mount {
  std::string source;   // "/dev/sda1", "10.0.0.9:/home"
  std::string folder;   // The mount point.
  std::string type;     // "nfs4"
  std::string options;  // Of the file system: "rw,addr=10.0.0.9".

  // The value of "name=value" among the options; empty: none.
  std::string_view option(std::string_view name) const;
  // Whether this is one of the options: "pagesize=1048576K" equals "pagesize=1024M".
  bool has(std::string_view wanted) const;
};

// In the order of mounting: the last mount of a folder is in effect.
std::vector<Mount> mounts_of(Machine& machine);

}  // namespace ztcp::config
