// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is mounted on the machine.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

struct Mounted {
  std::string folder;
  std::string type;     // "hugetlbfs"
  std::string options;  // Of the file system: "rw,pagesize=1024M".

  // Whether one of its options is this: "1048576K" and "1024M" are the same.
  bool has(const std::string& option) const;
};

// In the order in which they were mounted: of two at one folder the last is the one to be seen.
std::vector<Mounted> mounts_of(Host& host);

}  // namespace ztcp::setup
