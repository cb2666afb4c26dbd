// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A profiler that remembers its events: NCCL's callback, and handles as NCCL 2.27 and later make
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>

#include <gtest/gtest.h>

#include "plugin/abi/nccl_abi.h"
#include "plugin/abi/nccl_profiler.h"

namespace ztcp::plugin::abi {

class Recorder {
 public:
  struct Event {
    void* handle = nullptr;
    std::int64_t plugin = 0;
    ncclProfilerNetSockDescr_v1_t socket{};
    ncclProfilerNetIbDescr_v1_t queue_pair{};
    int stops = 0;
  };

  Recorder() { current_ = this; }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() { current_ = nullptr; }

  static ncclResult_t callback(void** event, int type, void* handle, std::int64_t plugin,
                               void* descriptor) {
    return current_->take(event, type, handle, plugin, descriptor);
  }

  bool is_on = true;       // Off: NCCL without a profiler.
  int starts_left = 1000;  // Then the profiler has no room.
  int calls = 0;
  std::deque<Event> events;

  std::size_t open() const {
    std::size_t count = 0;
    for (const Event& event : events) count += event.stops == 0 ? 1U : 0U;
    return count;
  }

 private:
  ncclResult_t take(void** event, int type, void* handle, std::int64_t plugin, void* descriptor) {
    ++calls;
    if (type == ncclProfilerNetEventStop) {
      if (is_on) ++static_cast<Event*>(*event)->stops;
      return ncclSuccess;
    }
    EXPECT_EQ(type, ncclProfilerNetEventStart);
    EXPECT_NE(handle, nullptr);
    EXPECT_EQ(*event, nullptr);
    if (!is_on || starts_left-- <= 0) return ncclSuccess;
    Event& begun = events.emplace_back();
    begun.handle = handle;
    begun.plugin = plugin;
    if (plugin >> 16 == 1)
      std::memcpy(&begun.queue_pair, descriptor, sizeof begun.queue_pair);
    else
      std::memcpy(&begun.socket, descriptor, sizeof begun.socket);
    *event = &begun;
    return ncclSuccess;
  }

  static inline Recorder* current_ = nullptr;
};

}  // namespace ztcp::plugin::abi
