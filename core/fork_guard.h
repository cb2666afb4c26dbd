// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Descriptors that a forked child must not keep: a data loader that outlives its rank would hold
// the NIC, the memif connection or the hugepages. A fork handler closes them in the child, and all
// of them are close-on-exec. Entries are identified by inode as well as by number: after the owner
// (a driver) has closed a descriptor, another one with its number is never closed by mistake.
//
// Any thread may call these.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace ztcp {

void close_in_children(int fd);
// To be called before closing it. False: this is a forked child, where it is closed already.
bool forget_in_children(int fd);

// Finds descriptors that a driver opened during the object's life, for drivers that do not expose
// them.
class DescriptorSweep {
 public:
  DescriptorSweep();  // Records the descriptors open now.
  // Guards descriptors opened since, if their /proc/self/fd target begins with a prefix. Other
  // threads open descriptors too: the prefixes exclude them.
  void guard_new(std::initializer_list<std::string_view> target_prefixes) const;

 private:
  std::vector<int> before_;
};

}  // namespace ztcp
