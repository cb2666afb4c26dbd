// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The library's objects and the memory behind the queue pairs of a connection.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "transport/verbs/device.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

// The message behind a piece that is notified separately. It carries the immediate and the size,
// which the completion of the write carries otherwise.
struct Notification {
  std::uint32_t immediate = 0;
  std::uint32_t size_bytes = 0;
};
// A whole page: registering it keeps no other memory from forked children.
struct alignas(4096) NotificationPage {
  std::array<Notification, 512> slots{};
};
// The landing page of flush reads; its content is never used. A whole page, too.
struct alignas(4096) ReadPage {
  std::byte byte{};
};

// Members are destroyed in reverse order; keep this order.
struct QueuePairParts {
  std::shared_ptr<OpenDevice> opened;
  // Where notifications arrive, in the order of the receives, by queue pair; null: the peer sends
  // none.
  std::unique_ptr<NotificationPage[]> notifications;
  RegionHandle notifications_region;
  // Where flush reads land; null: there are none.
  std::unique_ptr<ReadPage> read;
  RegionHandle read_region;
  CompletionQueueHandle completions;
  std::array<QueuePairHandle, kMaxQueuePairs> pairs;
};

}  // namespace ztcp::verbs
