// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Walks a path folder by folder, by descriptors, and ends at the first thing that someone other
// than root could have put there: so neither links nor races in folders of other users can lead it
// astray. The last part of a path is never followed.
#pragma once

#include <cstdint>
#include <string>

#include "transport/core/descriptor.h"
#include "transport/core/result.h"

namespace ztcp::setup {

struct FolderEntry {
  Descriptor folder;  // For the *at() calls.
  std::string name;   // In it; "." for "/".
};

class SafePath {
 public:
  // Folders and links below `root` must be root's, or this user's: tests are not always root.
  explicit SafePath(std::string root);

  // Errc::kRefused: somebody else could have had a hand in it.
  Result<FolderEntry> find(const std::string& path) const;

 private:
  Result<Descriptor> walk(const std::string& path, int links_left) const;
  bool trusted_user(std::uint32_t user) const;

  std::string root_;
};

}  // namespace ztcp::setup
