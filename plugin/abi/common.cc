// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/abi/common.h"

#include <cstddef>
#include <span>

#include "plugin/gpu_identity.h"
#include "plugin/guard.h"
#include "plugin/handle.h"
#include "plugin/nccl_log.h"
#include "plugin/net.h"

namespace ztcp::plugin::abi {
namespace {

// NCCL always holds a NetObject*; these say which one the call must be about.
NetObject* object(void* p) { return static_cast<NetObject*>(p); }
Connection& connection(void* p) { return *static_cast<Connection*>(object(p)); }
SendConnection& sender(void* p) { return *static_cast<SendConnection*>(object(p)); }
RecvConnection& receiver(void* p) { return *static_cast<RecvConnection*>(object(p)); }
Listening* listening(void* p) { return static_cast<Listening*>(object(p)); }

HandleBytes handle_bytes(void* handle, std::size_t size_bytes) {
  return {static_cast<std::byte*>(handle), size_bytes};
}

// Writes NCCL's output argument, after success only: a comm set by a failed call gets closed
// twice. `T*` becomes the void* that object() reads back.
template <class T>
Told<void> hand_out(const Told<T*>& made, void** out) {
  if (!made) return pass_on(made.error());
  *out = static_cast<NetObject*>(*made);
  return {};
}

Told<void> hand_out(const Told<RequestSlot*>& made, void** out) {
  if (!made) [[unlikely]]
    return pass_on(made.error());
  *out = *made;  // nullptr asks NCCL to try again.
  return {};
}

Told<void> post_send(void* comm, void* data, std::size_t size, void* mhandle, void** request) {
  *request = nullptr;
  if (size > kMaxMessageBytes) [[unlikely]]
    return report(Errc::kInvalidArgument, "isend of {} bytes: at most {}", size, kMaxMessageBytes);
  return hand_out(sender(comm).isend({static_cast<const std::byte*>(data), size},
                                     static_cast<MemoryKey*>(mhandle)),
                  request);
}

// `*request` comes in as NCCL_NET_OPTIONAL_RECV_COMPLETION for LL and LL128; we always complete.
Told<void> post_receive(void* comm, int n, void** data, std::size_t size, void** mhandles,
                        void** request) {
  *request = nullptr;
  if (n != 1) [[unlikely]]
    return report(Errc::kInvalidArgument,
                  "irecv of {} buffers: this network takes 1 at a time (maxRecvs)", n);
  auto* const key = mhandles == nullptr ? nullptr : static_cast<MemoryKey*>(mhandles[0]);
  return hand_out(receiver(comm).irecv({static_cast<std::byte*>(data[0]), size}, key), request);
}

Told<void> register_memory(void* comm, void* data, std::size_t size, int type, void** mhandle) {
  if (type != NCCL_PTR_HOST)
    return report(Errc::kInvalidArgument,
                  "regMr of GPU memory (type {}): userspace TCP moves host memory only, as "
                  "ptrSupport says; GPUDirect RDMA needs an RDMA NIC",
                  type);
  const Told<MemoryKey*> key = connection(comm).register_memory(data, size);
  if (!key) return pass_on(key.error());
  *mhandle = *key;
  return {};
}

// Sizes were int: regMr's up to v7, the others' up to v8.
Told<std::size_t> from_int(int size, const char* what) {
  if (size < 0) [[unlikely]]
    return report(Errc::kInvalidArgument, "{} of {} bytes", what, size);
  return static_cast<std::size_t>(size);
}

Told<void> connect_into(Context* context, int dev, void* handle, void** comm) {
  *comm = nullptr;
  return hand_out(net().connect(context, dev, handle_bytes(handle, kHandleBytes)), comm);
}

Told<void> accept_into(void* listen_comm, void** comm) {
  *comm = nullptr;
  return hand_out(net().accept(listening(listen_comm)), comm);
}

Told<void> listen_into(Context* context, int dev, void* handle, std::size_t handle_size,
                       void** comm) {
  *comm = nullptr;
  return hand_out(net().listen(context, dev, handle_bytes(handle, handle_size)), comm);
}

}  // namespace

ncclResult_t init_v3(ncclDebugLogger_t log) {
  return guard("init", [&]() -> Told<void> {
    bind_nccl_log(log);
    return net().init();
  });
}

ncclResult_t init_v10(ncclDebugLogger_t log, ncclProfilerCallback_t /*profiler*/) {
  return init_v3(log);
}

ncclResult_t init_v11(void** ctx, uint64_t /*commId*/, ncclNetCommConfig_v10_t* /*config*/,
                      ncclDebugLogger_t log, ncclProfilerCallback_t /*profiler*/) {
  return guard("init", [&]() -> Told<void> {
    *ctx = nullptr;
    bind_nccl_log(log);
    remember_current_gpu();
    const Told<Context*> context = net().init_context();
    if (!context) return pass_on(context.error());
    *ctx = *context;
    return {};
  });
}

ncclResult_t finalize_v11(void* ctx) {
  return guard("finalize", [&]() -> Told<void> {
    net().finalize(static_cast<Context*>(ctx));
    return {};
  });
}

ncclResult_t devices_v3(int* ndev) {
  return guard("devices", [&]() -> Told<void> {
    const Told<int> count = net().device_count();
    if (!count) return pass_on(count.error());
    *ndev = *count;
    return {};
  });
}

ncclResult_t listen_v3(int dev, void* handle, void** comm) {
  return guard("listen",
               [&] { return listen_into(nullptr, dev, handle, kShortHandleBytes, comm); });
}

ncclResult_t listen_v5(int dev, void* handle, void** comm) {
  return guard("listen", [&] { return listen_into(nullptr, dev, handle, kHandleBytes, comm); });
}

ncclResult_t listen_v11(void* ctx, int dev, void* handle, void** comm) {
  return guard("listen", [&] {
    return listen_into(static_cast<Context*>(ctx), dev, handle, kHandleBytes, comm);
  });
}

ncclResult_t connect_v3(int dev, void* handle, void** comm) {
  return guard("connect", [&] {
    *comm = nullptr;
    return hand_out(net().connect_blocking(dev, handle_bytes(handle, kShortHandleBytes)), comm);
  });
}

ncclResult_t connect_v5(int dev, void* handle, void** comm) {
  return guard("connect", [&] { return connect_into(nullptr, dev, handle, comm); });
}

// The device handle stays as NCCL passed it, NULL pointer included: nothing is offloaded.
ncclResult_t connect_v7(int dev, void* handle, void** comm, ncclNetDeviceHandle_v7_t** /*device*/) {
  return connect_v5(dev, handle, comm);
}

ncclResult_t connect_v10(int dev, ncclNetCommConfig_v10_t* /*config*/, void* handle, void** comm,
                         ncclNetDeviceHandle_v7_t** /*device*/) {
  return connect_v5(dev, handle, comm);
}

ncclResult_t connect_v11(void* ctx, int dev, void* handle, void** comm,
                         ncclNetDeviceHandle_v7_t** /*device*/) {
  return guard("connect",
               [&] { return connect_into(static_cast<Context*>(ctx), dev, handle, comm); });
}

ncclResult_t accept_v3(void* listen_comm, void** comm) {
  return guard("accept", [&] {
    *comm = nullptr;
    return hand_out(net().accept_blocking(listening(listen_comm)), comm);
  });
}

ncclResult_t accept_v5(void* listen_comm, void** comm) {
  return guard("accept", [&] { return accept_into(listen_comm, comm); });
}

ncclResult_t accept_v7(void* listen_comm, void** comm, ncclNetDeviceHandle_v7_t** /*device*/) {
  return accept_v5(listen_comm, comm);
}

ncclResult_t reg_mr_v3(void* comm, void* data, int size, int type, void** mhandle) {
  return guard("regMr", [&]() -> Told<void> {
    const Told<std::size_t> bytes = from_int(size, "regMr");
    if (!bytes) return pass_on(bytes.error());
    return register_memory(comm, data, *bytes, type, mhandle);
  });
}

ncclResult_t reg_mr_v8(void* comm, void* data, size_t size, int type, void** mhandle) {
  return guard("regMr", [&] { return register_memory(comm, data, size, type, mhandle); });
}

ncclResult_t dereg_mr_v3(void* comm, void* mhandle) {
  return guard("deregMr", [&] {
    return connection(comm).deregister_memory(static_cast<MemoryKey*>(mhandle));
  });
}

ncclResult_t isend_v3(void* comm, void* data, int size, void* mhandle, void** request) {
  return guard("isend", [&]() -> Told<void> {
    const Told<std::size_t> bytes = from_int(size, "isend");
    if (!bytes) [[unlikely]]
      return pass_on(bytes.error());
    return post_send(comm, data, *bytes, mhandle, request);
  });
}

// Tags only choose among the buffers of a grouped receive; maxRecvs is 1, so order decides.
ncclResult_t isend_v5(void* comm, void* data, int size, int /*tag*/, void* mhandle,
                      void** request) {
  return isend_v3(comm, data, size, mhandle, request);
}

ncclResult_t isend_v9(void* comm, void* data, size_t size, int /*tag*/, void* mhandle,
                      void** request) {
  return guard("isend", [&] { return post_send(comm, data, size, mhandle, request); });
}

ncclResult_t isend_v10(void* comm, void* data, size_t size, int /*tag*/, void* mhandle,
                       void* /*phandle*/, void** request) {
  return guard("isend", [&] { return post_send(comm, data, size, mhandle, request); });
}

ncclResult_t irecv_v5(void* comm, int n, void** data, int* sizes, int* /*tags*/, void** mhandles,
                      void** request) {
  return guard("irecv", [&]() -> Told<void> {
    const Told<std::size_t> bytes = from_int(n < 1 ? 0 : sizes[0], "irecv");
    if (!bytes) [[unlikely]]
      return pass_on(bytes.error());
    return post_receive(comm, n, data, *bytes, mhandles, request);
  });
}

ncclResult_t irecv_v3(void* comm, void* data, int size, void* mhandle, void** request) {
  return irecv_v5(comm, 1, &data, &size, nullptr, &mhandle, request);
}

ncclResult_t irecv_v9(void* comm, int n, void** data, size_t* sizes, int* /*tags*/, void** mhandles,
                      void** request) {
  return guard("irecv", [&] {
    return post_receive(comm, n, data, n < 1 ? 0 : sizes[0], mhandles, request);
  });
}

ncclResult_t irecv_v10(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                       void** /*phandles*/, void** request) {
  return irecv_v9(comm, n, data, sizes, tags, mhandles, request);
}

// Host memory is visible to the GPU when test() says done: nothing to flush, no request.
ncclResult_t flush_v3(void* /*comm*/, void* /*data*/, int /*size*/, void* /*mhandle*/) {
  return guard("flush", []() -> Told<void> { return {}; });
}

ncclResult_t iflush_v4(void* /*comm*/, void* /*data*/, int /*size*/, void* /*mhandle*/,
                       void** request) {
  return guard("iflush", [&]() -> Told<void> {
    *request = nullptr;
    return {};
  });
}

ncclResult_t iflush_v5(void* comm, int /*n*/, void** /*data*/, int* /*sizes*/, void** /*mhandles*/,
                       void** request) {
  return iflush_v4(comm, nullptr, 0, nullptr, request);
}

ncclResult_t test_v3(void* request, int* done, int* sizes) {
  return guard("test", [&]() -> Told<void> {
    *done = 0;  // NCCL's variable is uninitialised.
    std::size_t size_bytes = 0;
    const Told<bool> finished = static_cast<RequestSlot*>(request)->test(&size_bytes);
    if (!finished) [[unlikely]]
      return pass_on(finished.error());
    if (!*finished) return {};
    if (sizes != nullptr) sizes[0] = static_cast<int>(size_bytes);
    *done = 1;
    return {};
  });
}

ncclResult_t close_v3(void* comm) {
  return guard("close", [&]() -> Told<void> {
    net().close(object(comm));
    return {};
  });
}

}  // namespace ztcp::plugin::abi
