// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is mounted, as this process sees it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::config {

struct Mount {
  std::string source;   // "/dev/sda1", "10.0.0.9:/home"
  std::string folder;   // Where it is mounted.
  std::string type;     // "nfs4"
  std::string options;  // Of the file system: "rw,addr=10.0.0.9".

  // The value of "name=value" among the options; empty: none.
  std::string_view option(std::string_view name) const;
  // Whether one of its options is this: "pagesize=1048576K" and "pagesize=1024M" are the same.
  bool has(std::string_view wanted) const;
};

// In the order in which they were mounted: of one folder the last one counts.
std::vector<Mount> mounts_of(Machine& machine);

}  // namespace ztcp::config
