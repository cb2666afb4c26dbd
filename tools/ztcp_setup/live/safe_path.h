// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Walks a path folder by folder, by descriptors, and stops at the first entry that users other than
// root can have placed: neither links nor races in folders of other users can redirect it. The last
// part of a path is never followed.
#pragma once

#include <cstdint>
#include <string>

#include "core/descriptor.h"
#include "core/result.h"

namespace ztcp::setup {

struct FolderEntry {
  Descriptor folder;  // For the *at() calls.
  std::string name;   // Name in the folder; "." for "/".
};

class SafePath {
 public:
  // Folders and links below `root` must belong to root or this user: tests do not always run as
  // root.
  explicit SafePath(std::string root);

  // Errc::kRefused: users other than root could have changed a part of the path.
  Result<FolderEntry> find(const std::string& path) const;

 private:
  Result<Descriptor> walk(const std::string& path, int links_left) const;
  bool trusted_user(std::uint32_t user) const;

  std::string root_;
};

}  // namespace ztcp::setup
