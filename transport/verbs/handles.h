// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sole owners of the library's objects. A class that owns several declares them in the reverse of
// the order in which they may be destroyed: queue pairs, completion queues, registrations,
// protection domain, context.
#pragma once

#include <cassert>
#include <cerrno>
#include <memory>

#include "core/process_mark.h"
#include "transport/verbs/api.h"

namespace ztcp::verbs {

template <class T, int (*Api::*Undo)(T*)>
struct Undoer {
  const Api* api = nullptr;
  void operator()(T* object) const noexcept {
    // A forked child shares the device's descriptor: it would destroy its parent's object.
    if (in_forked_child()) return;
    [[maybe_unused]] const int outcome = (api->*Undo)(object);
    // A device that is gone says EIO, and its driver keeps nothing then.
    assert(outcome != EBUSY);
  }
};

template <class T, int (*Api::*Undo)(T*)>
using Handle = std::unique_ptr<T, Undoer<T, Undo>>;

using ContextHandle = Handle<ibv_context, &Api::close_device>;
using DomainHandle = Handle<ibv_pd, &Api::dealloc_pd>;
using RegionHandle = Handle<ibv_mr, &Api::dereg_mr>;
using CompletionQueueHandle = Handle<ibv_cq, &Api::destroy_cq>;
using QueuePairHandle = Handle<ibv_qp, &Api::destroy_qp>;

}  // namespace ztcp::verbs
