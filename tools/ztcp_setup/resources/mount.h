// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A file system mounted at a folder (hugetlbfs); the folder is created if needed. Undo unmounts it
// if it was not mounted before.
#pragma once

#include <string>
#include <vector>

#include "config/machine/mounts.h"
#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct Mount {
  std::string path;
  std::string type;     // "hugetlbfs"
  std::string options;  // "pagesize=1048576K,mode=1770"

  struct Before {  // Nothing was mounted there.
    std::vector<std::string> made_folders;
    void fields(Fields& fields) { fields.texts("made_folders", made_folders); }
  };
  static constexpr const char* kKind = "mount";
  static constexpr bool kLostAtBoot = true;
  std::string id() const { return path; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void fields(Fields& fields);

 private:
  bool fulfilled_by(const config::Mount& mounted) const;
};

}  // namespace ztcp::setup::resource
