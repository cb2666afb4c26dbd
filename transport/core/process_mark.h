// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which process owns what the library holds. A forked child (a PyTorch data loader, say) inherits
// our memory image but no thread, NIC, frame memory or connection of ours; every door and every
// destructor asks here first. Any thread may call these.
#pragma once

namespace ztcp {

// Makes the calling process the owner. The first call counts, also for the children.
void mark_process() noexcept;

// True in the process that was marked; false in its forked children, and before any mark.
bool owns_process() noexcept;

// True in a child of the owner, however it was forked. Cheap: two loads, no system call where the
// kernel can wipe a page on fork (Linux 4.14 and later).
bool in_forked_child() noexcept;

}  // namespace ztcp
