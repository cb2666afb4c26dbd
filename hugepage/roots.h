// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Where the kernel's files are read. Tests point it at folders of their own.
#pragma once

#include <string>

namespace ztcp::hugepage {

struct Roots {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

}  // namespace ztcp::hugepage
