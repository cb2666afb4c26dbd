// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A folder. Undo removes it if it did not exist before and contains only lock files.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"
#include "tools/ztcp_setup/resources/owner.h"

namespace ztcp::setup::resource {

struct Folder {
  std::string path;
  std::uint32_t mode = 0755;
  std::string user;   // Empty: root.
  std::string group;  // Empty: root.
  Ids ids = {};

  struct Before {
    bool existed = false;
    Ownership ownership;
    std::vector<std::string> made_folders;  // Outermost first.
    void fields(Fields& fields);
  };
  static constexpr const char* kKind = "folder";
  static constexpr bool kLostAtBoot = true;  // Some are in memory, like /run.
  std::string id() const { return path; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void note_ids(Host& host) { ids.note(host, user, group); }
  void fields(Fields& fields);

 private:
  std::string other_use(Host& host) const;  // "holds NAME"; empty: none visible.
  std::optional<Ownership> wanted(Host& host) const;
};

}  // namespace ztcp::setup::resource
