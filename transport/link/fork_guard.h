// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Descriptors that a forked child must not keep: a data loader that outlives its rank would hold
// the NIC, the memif connection or the hugepages. A fork handler closes them in the child, and all
// of them are close-on-exec. Entries are known by inode as well as by number, so that one whose
// owner (a driver) has closed it meanwhile never hits an innocent descriptor of the same number.
//
// Any thread may call these.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace ztcp::link {

void close_in_children(int fd);
// The owner is about to close it. False: this is a forked child, where it is closed already.
bool forget_in_children(int fd);

// Finds what a driver has opened while the object lived, for drivers that keep their descriptors
// to themselves.
class DescriptorSweep {
 public:
  DescriptorSweep();  // Remembers what is open now.
  // Guards what has been opened since and whose /proc/self/fd target begins with a prefix. Other
  // threads open descriptors too: the prefixes keep them out.
  void guard_new(std::initializer_list<std::string_view> target_prefixes) const;

 private:
  std::vector<int> before_;
};

}  // namespace ztcp::link
