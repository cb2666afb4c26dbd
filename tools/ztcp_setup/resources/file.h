// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A file that belongs to ztcp as a whole. Missing parent folders are created and removed with it.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"
#include "tools/ztcp_setup/resources/owner.h"

namespace ztcp::setup::resource {

struct File {
  std::string path;
  std::string text;
  std::uint32_t mode = 0644;
  std::string group;  // Empty: root.
  Ids ids = {};

  struct Before {
    bool existed = false;
    std::string text;
    Ownership ownership;
    std::vector<std::string> made_folders;  // Outermost first.
    void fields(Fields& fields);
  };
  static constexpr const char* kKind = "file";
  static constexpr bool kLostAtBoot = false;
  std::string id() const { return path; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  // A file that was edited since set-up wrote it is renamed, not lost.
  std::optional<std::string> kept_as(Host& host, const Before& before) const;
  Reverted keep_edited(Host& host, const Before& before) const;
  void note_ids(Host& host) { ids.note(host, "", group); }
  void fields(Fields& fields);

 private:
  std::optional<Ownership> wanted(Host& host) const;
};

}  // namespace ztcp::setup::resource
