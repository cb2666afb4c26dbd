// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the queue pairs of a connection are made of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "transport/verbs/device.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

// What comes behind a piece that is told of apart: what else would be the write's immediate and the
// size that came with it.
struct Notification {
  std::uint32_t immediate = 0;
  std::uint32_t size_bytes = 0;
};
// A page: nobody else's memory is kept from forked children for its sake.
struct alignas(4096) NotificationPage {
  std::array<Notification, 512> slots{};
};
// What a read brings for a flush, at which nobody looks. A page, too.
struct alignas(4096) ReadPage {
  std::byte byte{};
};

// In the reverse of the order in which they go.
struct QueuePairParts {
  std::shared_ptr<OpenDevice> opened;
  // Where notifications come, in the order of the receives, by queue pair; none: nobody sends any.
  std::unique_ptr<NotificationPage[]> notifications;
  RegionHandle notifications_region;
  // Where reads bring what they read; none: nobody reads.
  std::unique_ptr<ReadPage> read;
  RegionHandle read_region;
  CompletionQueueHandle completions;
  std::array<QueuePairHandle, kMaxQueuePairs> pairs;
};

}  // namespace ztcp::verbs
