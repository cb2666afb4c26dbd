// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The content of a page as a Snapshot. Pure: any bytes give a Snapshot with checked indexes, enums
// and texts, or an error.
#pragma once

#include <cstddef>
#include <span>

#include "core/result.h"
#include "transport/stats/layout.h"
#include "transport/stats/snapshot.h"

namespace ztcp::stats {

// Fails unless these bytes begin with the header of a page of this layout.
Status check_header(std::span<const std::byte> bytes);

// Three copies of a page, each made after the one before. An entry is taken from the middle one if
// its sequence number is even and the same in the outer two, so that its owner wrote nothing to it
// meanwhile.
struct PageCopies {
  const PageContent* before = nullptr;
  const PageContent* content = nullptr;
  const PageContent* after = nullptr;
};

struct Decoded {
  Snapshot snapshot;
  std::size_t torn = 0;  // Entries left out because they were being written.
};

// `takes_torn`: the owner is dead and writes no more, so that an entry it was writing is better
// than none. Process::is_running is left to the caller.
Decoded decode_page(const PageCopies& copies, bool takes_torn);

}  // namespace ztcp::stats
