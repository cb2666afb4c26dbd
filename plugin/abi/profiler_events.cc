// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/abi/profiler_events.h"

#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace ztcp::plugin::abi {
namespace {

// Written by init while other communicators may be sending.
std::atomic<ncclProfilerCallback_t> g_callback{nullptr};
std::atomic<StepHandles> g_handles{StepHandles::kAlwaysValid};

// Acquire: g_handles is stored first.
ncclProfilerCallback_t profiler() { return g_callback.load(std::memory_order_acquire); }

// The opcodes of <infiniband/verbs.h>: of the sender's work request and the receiver's completion.
constexpr int kWriteWithImmediate = 1;
constexpr int kReceivedWithImmediate = 129;

// A version as ncclGetVersion() returns it: 22703 for 2.27.3.
constexpr int kFirstWithStepHandles = 22700;

bool may_use(const void* handle) {
  if (handle == nullptr) return false;
  return g_handles.load(std::memory_order_relaxed) == StepHandles::kAlwaysValid ||
         static_cast<const ncclProfilerStepHandle_v2_27_t*>(handle)->subArgs != nullptr;
}

// Null: the profiler does not record this one.
void* start(void* handle, std::int64_t plugin_id, void* descriptor) {
  void* event = nullptr;
  if (const auto callback = profiler(); callback != nullptr)
    (void)callback(&event, ncclProfilerNetEventStart, handle, plugin_id, descriptor);
  return event;
}

void stop(void* event) {
  if (const auto callback = profiler(); callback != nullptr)
    (void)callback(&event, ncclProfilerNetEventStop, nullptr, 0, nullptr);
}

void* start_socket(void* handle, int op, std::size_t size_bytes) {
  // A message goes over several streams, or over none of the kernel's.
  ncclProfilerNetSockDescr_v1_t of{};
  of.type = ncclProfileSocket;
  of.sock.fd = -1;
  of.sock.op = op;
  of.sock.length = size_bytes;
  return start(handle, NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER, &of);
}

void* start_queue_pair(void* handle, int opcode, const PieceFacts& piece, std::size_t size_bytes) {
  ncclProfilerNetIbDescr_v1_t of{};
  of.type = ncclProfileQp;
  of.qp.device = static_cast<int>(piece.rail);
  of.qp.wr_id = piece.work_id;
  of.qp.opcode = opcode;
  of.qp.qpNum = static_cast<int>(piece.queue_pair);
  of.qp.length = size_bytes;
  return start(handle, NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER, &of);
}

std::optional<int> version_near(ncclProfilerCallback_t callback) {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(callback), &library) == 0) return std::nullopt;
  const std::unique_ptr<void, int (*)(void*)> handle(
      dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD), dlclose);
  if (handle == nullptr) return std::nullopt;
  const auto ask = reinterpret_cast<ncclResult_t (*)(int*)>(dlsym(handle.get(), "ncclGetVersion"));
  int version = 0;
  if (ask == nullptr || ask(&version) != ncclSuccess) return std::nullopt;
  return version;
}

}  // namespace

// The recorded requests of one comm.
class RequestEvents final : public CommAttachment {
 public:
  // Null: out of memory.
  static RequestEvents* of(Comm& comm) {
    auto& attachment = comm.attachment();
    if (attachment == nullptr) attachment.reset(new (std::nothrow) RequestEvents);
    return static_cast<RequestEvents*>(attachment.get());
  }
  ~RequestEvents() override {
    while (blocks_ != nullptr) blocks_ = std::move(blocks_->next);
  }

  // NCCL finalizes its profiler after it has closed its comms: those that it forgets are closed
  // later, and their events must not be touched then.
  void on_close() override {
    for (Block* block = blocks_.get(); block != nullptr; block = block->next.get())
      for (RecordedRequest& one : block->requests) one.stop_all();
  }

  // Null: out of memory.
  RecordedRequest* take(Request& request) {
    if (free_ == nullptr && !grow()) return nullptr;
    RecordedRequest* const taken = free_;
    free_ = taken->next_free_;
    taken->request_ = &request;
    taken->has_pieces_ = false;
    return taken;
  }
  void give_back(RecordedRequest& request) {
    request.next_free_ = free_;
    free_ = &request;
  }

  static void add(RecordedRequest& to, void* event, std::uint8_t piece) {
    to.events_[to.count_++] = {event, piece};
  }
  static void note_pieces(RecordedRequest& of) { of.has_pieces_ = true; }

 private:
  static constexpr std::size_t kBlock = 32;
  struct Block {
    std::unique_ptr<Block> next;
    std::array<RecordedRequest, kBlock> requests;
  };

  bool grow() {
    std::unique_ptr<Block> made(new (std::nothrow) Block);
    if (made == nullptr) return false;
    made->next = std::move(blocks_);
    blocks_ = std::move(made);
    for (RecordedRequest& one : blocks_->requests) {
      one.owner_ = this;
      give_back(one);
    }
    return true;
  }

  std::unique_ptr<Block> blocks_;
  RecordedRequest* free_ = nullptr;
};

namespace {

// Collects the events of one operation; takes a RecordedRequest for the first one.
class Recording {
 public:
  Recording(Comm& comm, void*& request) : comm_(comm), request_(request) {}
  Request& request() const { return *static_cast<Request*>(request_); }

  // False: not recorded.
  bool add(void* event, std::uint8_t piece = 0) {
    if (event == nullptr) return false;
    if (to_ == nullptr) {
      RequestEvents* const events = RequestEvents::of(comm_);
      to_ = events == nullptr ? nullptr : events->take(request());
    }
    if (to_ == nullptr) {
      stop(event);
      return false;
    }
    RequestEvents::add(*to_, event, piece);
    return true;
  }
  // The rest of a message in pieces: they finish one by one.
  void note_pieces() { RequestEvents::note_pieces(*to_); }
  void hand_out() {
    if (to_ != nullptr)
      request_ = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(to_) | 1U);
  }

 private:
  Comm& comm_;
  void*& request_;
  RecordedRequest* to_ = nullptr;
};

}  // namespace

void bind_profiler(ncclProfilerCallback_t callback, StepHandles handles) noexcept {
  g_handles.store(handles, std::memory_order_relaxed);
  g_callback.store(callback, std::memory_order_release);
}

// A version that cannot be asked counts as 2.27: with the handles of 2.26, which are larger, some
// events are left out then.
StepHandles v10_step_handles(ncclProfilerCallback_t callback) noexcept {
  if (callback == nullptr) return StepHandles::kAlwaysValid;
  const std::optional<int> version = version_near(callback);
  return version && *version < kFirstWithStepHandles ? StepHandles::kAlwaysValid
                                                     : StepHandles::kMayLackArgs;
}

void RecordedRequest::stop_finished() noexcept {
  if (!has_pieces_) return;
  const std::uint32_t finished = request_->finished_pieces();
  for (std::uint8_t i = 0; i < count_;) {
    if ((finished >> events_[i].piece & 1U) == 0) {
      ++i;
      continue;
    }
    stop(events_[i].handle);
    events_[i] = events_[--count_];
  }
}

void RecordedRequest::finish() noexcept {
  stop_all();
  owner_->give_back(*this);
}

void RecordedRequest::stop_all() noexcept {
  while (count_ > 0) stop(events_[--count_].handle);
}

// One call of the callback where the profiler is off: the pieces of a message have one handle.
void record_send(SendComm& comm, std::size_t size_bytes, void* handle, void*& request) noexcept {
  if (profiler() == nullptr || !may_use(handle)) return;
  Recording recording(comm, request);
  std::array<PieceFacts, kMaxPieces> pieces;
  const std::size_t count = recording.request().pieces(pieces);
  if (count == 0) {
    recording.add(start_socket(handle, NCCL_SOCKET_SEND, size_bytes));
    return recording.hand_out();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const PieceFacts& piece = pieces[i];
    void* const event = start_queue_pair(handle, kWriteWithImmediate, piece, piece.size_bytes);
    if (!recording.add(event, piece.number)) break;
    if (count > 1) recording.note_pieces();
  }
  recording.hand_out();
}

void record_receive(RecvComm& comm, std::span<const std::size_t> sizes_bytes, void* const* handles,
                    void*& request) noexcept {
  if (profiler() == nullptr) return;
  Recording recording(comm, request);
  std::array<PieceFacts, kMaxPieces> pieces;
  const bool has_queue_pair = recording.request().pieces(pieces) != 0;
  for (std::size_t i = 0; i < sizes_bytes.size(); ++i) {
    if (!may_use(handles[i])) continue;
    const std::size_t size = sizes_bytes[i];
    recording.add(has_queue_pair
                      ? start_queue_pair(handles[i], kReceivedWithImmediate, pieces[0], size)
                      : start_socket(handles[i], NCCL_SOCKET_RECV, size));
  }
  recording.hand_out();
}

}  // namespace ztcp::plugin::abi
