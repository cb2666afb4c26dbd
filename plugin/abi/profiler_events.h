// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Events for NCCL's profiler: an operation's events start once the transport has accepted it, and
// stop when its pieces are done, when it fails, or when NCCL closes its comm. Over TCP there is one
// event for each buffer, over verbs one for each piece of a message (docs/profiler.md).
//
// If the profiler has begun an event, NCCL gets a RecordedRequest in place of the transport's
// Request, as a pointer with its lowest bit set. Without a profiler NCCL gets the transport's
// pointer, and its tests cost one look at that bit.
//
// Threads: record_send(), record_receive() and finish_recorded() on the thread that posts and tests
// a comm's operations; bind_profiler() at init. No locks; memory is only allocated when a comm has
// more recorded operations outstanding than ever before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/abi/nccl_abi.h"
#include "plugin/abi/nccl_profiler.h"
#include "transport/transport.h"

namespace ztcp::plugin::abi {

class RequestEvents;

// How far the callback can be given the handles of isend and irecv.
enum class StepHandles : std::uint8_t {
  kAlwaysValid,
  kMayLackArgs,  // NCCL 2.27: ncclProfilerStepHandle_v2_27_t; those without subArgs are left out.
};

// The callback for all comms from now on; null: none. The last one wins, as for the logger.
void bind_profiler(ncclProfilerCallback_t callback, StepHandles handles) noexcept;
// For the table v10, which 2.26 and 2.27 load: asks the library of the callback for its version.
StepHandles v10_step_handles(ncclProfilerCallback_t callback) noexcept;

// An operation with events that the profiler has begun.
class RecordedRequest {
 public:
  Request& request() const { return *request_; }
  // Stops the events of the pieces that have completed meanwhile.
  void stop_finished() noexcept;
  // The request is done: stops the rest. NCCL does not use the object any more.
  void finish() noexcept;
  // The request has failed: stops the rest. NCCL may test the object again.
  void stop_all() noexcept;

 private:
  friend RequestEvents;
  struct Event {
    void* handle = nullptr;  // The profiler's.
    std::uint8_t piece = 0;
  };

  RequestEvents* owner_ = nullptr;
  Request* request_ = nullptr;
  RecordedRequest* next_free_ = nullptr;
  std::array<Event, kMaxPieces> events_;
  std::uint8_t count_ = 0;
  bool has_pieces_ = false;
};
static_assert(kMaxPieces >= kMaxReceives);

inline bool is_recorded(const void* request) {
  return (reinterpret_cast<std::uintptr_t>(request) & 1U) != 0;
}
inline RecordedRequest& recorded(void* request) {
  return *reinterpret_cast<RecordedRequest*>(reinterpret_cast<std::uintptr_t>(request) - 1);
}

// Start the events of an operation that was just posted. `request` is the Request* that NCCL is
// given, and is replaced if the profiler begins an event. `handle`: not null. `handles`: one for
// each buffer, some perhaps null.
void record_send(SendComm& comm, std::size_t size_bytes, void* handle, void*& request) noexcept;
void record_receive(RecvComm& comm, std::span<const std::size_t> sizes_bytes, void* const* handles,
                    void*& request) noexcept;

}  // namespace ztcp::plugin::abi
