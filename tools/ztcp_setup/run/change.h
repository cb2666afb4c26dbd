// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Resources held against the machine: what would change, from what to what, and the shell line that
// does the same. The only source of what --dry-run prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup {

struct Change {
  std::string what;      // The wish's reason.
  std::string before;    // "virtio-pci"; a file's text, empty where there is none.
  std::string after;     // "vfio-pci"
  std::string command;   // The shell line; a file's text comes on its standard input.
  bool is_text = false;  // `before` and `after` are lines of a file.
};

// Those of `wishes` that don't hold, in order; a Notice only behind such a one.
std::vector<Change> changes_of(const Resources& wishes, Host& host);

}  // namespace ztcp::setup
