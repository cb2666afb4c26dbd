// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Arguments on the kernel command line of every installed kernel, where the boot loader reads no
// drop-in file: grubby adds them, and undo removes those that were not there before.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct BootArguments {
  std::vector<std::string> arguments;  // "iommu=pt", "hugepagesz=1G", "hugepages=50"

  struct Before {
    std::vector<std::pair<std::string, std::string>> arguments_of;  // By kernel.
    void fields(Fields& fields) { fields.text_pairs("arguments_of", arguments_of); }
  };
  static constexpr const char* kKind = "boot_arguments";
  static constexpr bool kLostAtBoot = false;
  // Once the kernel runs with them they are no longer planned, but still wanted.
  static constexpr bool kStays = true;
  std::string id() const { return {}; }  // There is only one command line.
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void fields(Fields& fields) { fields.texts("arguments", arguments); }
};

}  // namespace ztcp::setup::resource
