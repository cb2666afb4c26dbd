// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The calls on a connection: memory registration, messages, flushes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include "plugin/abi/common.h"
#include "plugin/abi/profiler_events.h"
#include "plugin/guard.h"
#include "plugin/memory.h"
#include "plugin/receive_hints.h"
#include "transport/transport.h"

namespace ztcp::plugin::abi {
namespace {

// NCCL holds Comm*; these cast it to the type the call must be about.
Comm& comm_of(void* p) { return *static_cast<Comm*>(p); }
SendComm& sender(void* p) { return static_cast<SendComm&>(comm_of(p)); }
RecvComm& receiver(void* p) { return static_cast<RecvComm&>(comm_of(p)); }
MemoryKey* key_of(void* mhandle) { return static_cast<MemoryKey*>(mhandle); }

// Writing nullptr asks NCCL to try again.
Told<void> hand_out(const Result<Request*>& posted, void** out) {
  if (!posted) [[unlikely]]
    return pass_on(posted.error());
  *out = *posted;
  return {};
}

Told<void> post_send(void* comm, const void* data, std::size_t size, int tag, void* mhandle,
                     void** request) {
  *request = nullptr;
  if (size > kMaxMessageBytes) [[unlikely]]
    return report(Errc::kInvalidArgument, "isend of {} bytes: at most {}", size, kMaxMessageBytes);
  return hand_out(
      sender(comm).post_send({static_cast<const std::byte*>(data), size}, tag, key_of(mhandle)),
      request);
}

// NCCL's parallel arrays. Those that a table does not have are NULL.
template <class Size>
struct Arrays {
  void** data;
  const Size* sizes;
  const int* tags;
  void** mhandles;
  bool is_polled = true;

  RecvBuffer buffer(std::size_t i) const {
    return {{static_cast<std::byte*>(data[i]), static_cast<std::size_t>(sizes[i])},
            tags == nullptr ? 0 : tags[i],
            mhandles == nullptr ? nullptr : key_of(mhandles[i]),
            is_polled};
  }
  // Calls post(span of n buffers).
  template <class Post>
  auto with_buffers(int n, Post&& post) const {
    if (n == 1) [[likely]] {
      const RecvBuffer one = buffer(0);
      return post(std::span(&one, 1));
    }
    std::array<RecvBuffer, kMaxReceives> all;
    const auto count = static_cast<std::size_t>(n);
    for (std::size_t i = 0; i < count; ++i) all[i] = buffer(i);
    return post(std::span<const RecvBuffer>(all).first(count));
  }
};

template <class Size>
Told<void> check_buffers(const char* entry, int n, const Size* sizes) {
  if (n < 1 || n > static_cast<int>(kMaxReceives)) [[unlikely]]
    return report(Errc::kInvalidArgument, "{} of {} buffers: allowed are 1 to {} (maxRecvs)", entry,
                  n, kMaxReceives);
  for (int i = 0; i < n; ++i)
    if constexpr (std::is_signed_v<Size>)
      if (sizes[i] < 0) [[unlikely]]
        return report(Errc::kInvalidArgument, "{} of {} bytes", entry, sizes[i]);
  return {};
}

// Tables from v9 on (sizes are size_t) get `*request` as NCCL_NET_OPTIONAL_RECV_COMPLETION for a
// single buffer of LL or LL128, and as NULL for one of Simple. Every request here completes; but
// the GPU may poll a buffer that is not known to be Simple.
template <class Size>
bool tells_simple(int n, void* const* request) {
  return std::is_unsigned_v<Size> && n == 1 && *request == nullptr && receive_hints_are_on();
}

template <class Size>
Told<void> post_receive(void* comm, int n, void** data, const Size* sizes, const int* tags,
                        void** mhandles, void** request) {
  const bool is_polled = !tells_simple<Size>(n, request);
  *request = nullptr;
  if (const auto fine = check_buffers("irecv", n, sizes); !fine) [[unlikely]]
    return fine;
  return Arrays<Size>{data, sizes, tags, mhandles, is_polled}.with_buffers(
      n, [&](std::span<const RecvBuffer> buffers) {
        return hand_out(receiver(comm).post_recv(buffers), request);
      });
}

Told<void> post_flush(void* comm, int n, void** data, const int* sizes, void** mhandles,
                      void** request) {
  *request = nullptr;
  if (const auto fine = check_buffers("iflush", n, sizes); !fine) [[unlikely]]
    return fine;
  return Arrays<int>{data, sizes, nullptr, mhandles}.with_buffers(
      n, [&](std::span<const RecvBuffer> buffers) {
        return hand_out(receiver(comm).post_flush(buffers), request);
      });
}

Told<bool> finish(Request& asked, int* sizes) {
  const std::size_t buffers = asked.buffers();
  std::array<std::size_t, kMaxReceives> moved;  // NOLINT: only entries that test() wrote are read.
  const Result<bool> done = asked.test({moved.data(), buffers});
  if (!done) [[unlikely]]
    return pass_on(done.error());
  // Writes exactly `buffers` entries: for a send NCCL passes a pointer to a plain int.
  if (*done && sizes != nullptr)
    std::transform(moved.begin(), moved.begin() + buffers, sizes,
                   [](std::size_t size) { return static_cast<int>(size); });
  return *done;
}

Told<bool> finish_recorded(RecordedRequest& record, int* sizes) {
  const Told<bool> done = finish(record.request(), sizes);
  if (!done)
    record.stop_all();
  else if (*done)
    record.finish();
  else
    record.stop_finished();
  return done;
}

Told<bool> finish(void* request, int* sizes) {
  if (is_recorded(request)) [[unlikely]]
    return finish_recorded(recorded(request), sizes);
  return finish(*static_cast<Request*>(request), sizes);
}

Told<void> register_region(void* comm, const Region& region, int type, void** mhandle) {
  if (type != NCCL_PTR_HOST && type != NCCL_PTR_CUDA)
    return report(Errc::kInvalidArgument, "regMr of unknown memory type {}", type);
  Region typed = region;
  typed.kind = type == NCCL_PTR_CUDA ? MemoryKind::kCuda : MemoryKind::kHost;
  const Told<MemoryKey*> key = register_memory(comm_of(comm), typed);
  if (!key) return pass_on(key.error());
  *mhandle = *key;
  return {};
}

// Sizes are int in older tables: in regMr up to v7, in the other calls up to v8.
Told<std::size_t> from_int(int size, const char* what) {
  if (size < 0) [[unlikely]]
    return report(Errc::kInvalidArgument, "{} of {} bytes", what, size);
  return static_cast<std::size_t>(size);
}

}  // namespace

ncclResult_t reg_mr_v3(void* comm, void* data, int size, int type, void** mhandle) {
  return guard("regMr", [&]() -> Told<void> {
    const Told<std::size_t> bytes = from_int(size, "regMr");
    if (!bytes) return pass_on(bytes.error());
    return register_region(comm, {.address = data, .size_bytes = *bytes}, type, mhandle);
  });
}

ncclResult_t reg_mr_v8(void* comm, void* data, size_t size, int type, void** mhandle) {
  return guard("regMr", [&] {
    return register_region(comm, {.address = data, .size_bytes = size}, type, mhandle);
  });
}

// NCCL calls it for devices with NCCL_PTR_DMABUF in ptrSupport, and closes the descriptor
// afterwards.
ncclResult_t reg_mr_dma_buf_v6(void* comm, void* data, size_t size, int type, uint64_t offset,
                               int fd, void** mhandle) {
  return guard("regMrDmaBuf", [&] {
    return register_region(comm,
                           {.address = data, .size_bytes = size, .dmabuf_fd = fd, .offset = offset},
                           type, mhandle);
  });
}

ncclResult_t dereg_mr_v3(void* comm, void* mhandle) {
  return guard("deregMr", [&] { return deregister_memory(comm_of(comm), key_of(mhandle)); });
}

ncclResult_t isend_v3(void* comm, void* data, int size, void* mhandle, void** request) {
  return isend_v5(comm, data, size, 0, mhandle, request);
}

ncclResult_t isend_v5(void* comm, void* data, int size, int tag, void* mhandle, void** request) {
  return guard("isend", [&]() -> Told<void> {
    const Told<std::size_t> bytes = from_int(size, "isend");
    if (!bytes) [[unlikely]]
      return pass_on(bytes.error());
    return post_send(comm, data, *bytes, tag, mhandle, request);
  });
}

ncclResult_t isend_v9(void* comm, void* data, size_t size, int tag, void* mhandle, void** request) {
  return guard("isend", [&] { return post_send(comm, data, size, tag, mhandle, request); });
}

// NCCL passes no handle for its bootstrap, and else one for each message, with a profiler or not.
ncclResult_t isend_v10(void* comm, void* data, size_t size, int tag, void* mhandle, void* phandle,
                       void** request) {
  return guard("isend", [&]() -> Told<void> {
    const Told<void> posted = post_send(comm, data, size, tag, mhandle, request);
    if (phandle != nullptr && *request != nullptr)
      record_send(sender(comm), size, phandle, *request);
    return posted;
  });
}

ncclResult_t irecv_v3(void* comm, void* data, int size, void* mhandle, void** request) {
  return irecv_v5(comm, 1, &data, &size, nullptr, &mhandle, request);
}

ncclResult_t irecv_v5(void* comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                      void** request) {
  return guard("irecv",
               [&] { return post_receive(comm, n, data, sizes, tags, mhandles, request); });
}

ncclResult_t irecv_v9(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                      void** request) {
  return guard("irecv",
               [&] { return post_receive(comm, n, data, sizes, tags, mhandles, request); });
}

ncclResult_t irecv_v10(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                       void** phandles, void** request) {
  return guard("irecv", [&]() -> Told<void> {
    const Told<void> posted = post_receive(comm, n, data, sizes, tags, mhandles, request);
    if (phandles != nullptr && *request != nullptr)
      record_receive(receiver(comm), {sizes, static_cast<std::size_t>(n)}, phandles, *request);
    return posted;
  });
}

ncclResult_t flush_v3(void* comm, void* data, int size, void* mhandle) {
  return guard("flush", [&]() -> Told<void> {
    void* request = nullptr;
    if (const auto posted = post_flush(comm, 1, &data, &size, &mhandle, &request); !posted)
      return posted;
    while (request != nullptr) {
      const Told<bool> done = finish(request, nullptr);
      if (!done) return pass_on(done.error());
      if (*done) break;
    }
    return {};
  });
}

ncclResult_t iflush_v4(void* comm, void* data, int size, void* mhandle, void** request) {
  return iflush_v5(comm, 1, &data, &size, &mhandle, request);
}

ncclResult_t iflush_v5(void* comm, int n, void** data, int* sizes, void** mhandles,
                       void** request) {
  return guard("iflush", [&] { return post_flush(comm, n, data, sizes, mhandles, request); });
}

ncclResult_t test_v3(void* request, int* done, int* sizes) {
  return guard("test", [&]() -> Told<void> {
    *done = 0;  // NCCL's variable is uninitialised.
    const Told<bool> finished = finish(request, sizes);
    if (!finished) [[unlikely]]
      return pass_on(finished.error());
    *done = *finished ? 1 : 0;
    return {};
  });
}

}  // namespace ztcp::plugin::abi
