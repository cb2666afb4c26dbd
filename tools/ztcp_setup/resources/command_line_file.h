// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Arguments in a file with the kernel command line of the next boots (/etc/kernel/cmdline), from
// which systemd-boot's entries are made. The file is the operator's: arguments are appended, and
// undo removes those that were not there before, even if the file was edited since.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct CommandLineFile {
  std::string path;
  std::vector<std::string> arguments;  // "iommu=pt", "hugepagesz=1G", "hugepages=50"

  struct Before {
    std::string text;
    void fields(Fields& fields) { fields.bytes("text", text); }
  };
  static constexpr const char* kKind = "command_line_file";
  static constexpr bool kLostAtBoot = false;
  static constexpr bool kStays = true;  // As in BootArguments.
  std::string id() const { return path; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void fields(Fields& fields);
};

}  // namespace ztcp::setup::resource
