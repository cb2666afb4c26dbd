// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which process owns what the library holds. A forked child (a PyTorch data loader, say) inherits
// our memory image but no thread, NIC or connection of ours; every door asks here first.
#pragma once

namespace ztcp::plugin {

// Makes the calling process the owner. The first call counts; safe from any thread.
void claim_process() noexcept;

// True in the process that claimed; false in its forked children, and before any claim.
bool owns_process() noexcept;

// True in a child of the owner. Cheap: one load, no system call where the kernel can wipe a page
// on fork (Linux 4.14 and later).
bool is_forked_child() noexcept;

}  // namespace ztcp::plugin
