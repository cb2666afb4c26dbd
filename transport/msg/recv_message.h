// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One message on its way in: its posted buffer, if any, and which of its units are held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/msg/bounce.h"
#include "transport/msg/chunk_map.h"

namespace ztcp::msg {

// A plain value; RecvSession::Impl keeps its rules.
struct RecvMessage {
  std::byte* buffer = nullptr;
  std::uint64_t capacity_bytes = 0;
  std::uint32_t token = 0;
  bool is_posted = false;
  bool has_begun = false;  // A chunk has come: total and unit are valid.
  bool is_done = false;    // In its buffer in whole, and the owner told.
  UnitSize unit;
  std::uint64_t total = 0;
  std::uint64_t held_bytes = 0;  // Of the units in `held`.
  ChunkMap held;
  // Before the buffer is posted:
  std::uint64_t reserved_bytes = 0;  // In Bounce, by chunks begun.
  std::uint64_t eager_bytes = 0;     // Of units in Bounce, to be released by the post.
  Bounce::Table pages;

  std::uint64_t bytes_of(std::uint64_t first_unit, std::uint64_t last_unit) const {
    return std::min(unit.offset(last_unit), total) - unit.offset(first_unit);
  }
  // Units that are whole once bytes [.., end) of a chunk have come.
  std::uint64_t units_below(std::uint64_t end) const {
    return end == total ? unit.count(total) : unit.index(end);
  }
};

}  // namespace ztcp::msg
