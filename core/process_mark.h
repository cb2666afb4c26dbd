// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which process owns the library's resources. A forked child (a PyTorch data loader, say) inherits
// our memory image but no thread, NIC, frame memory or connection of ours; every entry point and
// every destructor checks here first. Any thread may call these.
#pragma once

namespace ztcp {

// Makes the calling process the owner. Later calls are ignored, also in its children.
void mark_process() noexcept;

// True in the marked process; false in its forked children, and before any mark.
bool owns_process() noexcept;

// True in a child of the owner, however it was forked. Cheap: two loads, no system call where the
// kernel can wipe a page on fork (Linux 4.14 and later).
bool in_forked_child() noexcept;

}  // namespace ztcp
