// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's iallgather and ireducescatter, free of versions: checks the arguments, and starts the call
// (transport/reduce/window.h). NCCL's "rank" of a group is a host here.
//
// NCCL cuts the vector of all parts into windows and gives each window with one piece of memory. It
// gives the address of the first byte of this host's part that lies in the window.
#pragma once

#include <cstddef>

#include "plugin/collnet_group.h"

namespace ztcp::plugin {

struct WindowCall {
  // Where all of the window is: all-gather writes it, reduce-scatter reads it. NCCL's list of
  // pieces, of which it fills one.
  int pieces = 1;
  std::byte* address = nullptr;
  std::size_t piece_bytes = 0;
  SharedMemory* memory = nullptr;
  // Where this host's part of the window is.
  std::byte* own = nullptr;
  SharedMemory* own_memory = nullptr;

  std::size_t part_bytes = 0;  // The same for each host.
  std::size_t offset = 0;      // In bytes, as below.
  std::size_t bytes = 0;
};

// nullptr: too many calls are under way.
Told<reduce::Job*> all_gather(CollGroup& group, const WindowCall& call);
Told<reduce::Job*> reduce_scatter(CollGroup& group, const WindowCall& call,
                                  reduce::ElementType type, reduce::Reduction reduction);

}  // namespace ztcp::plugin
