// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Start and end of the plugin, and its devices' listeners and connections.
#include <cstddef>

#include "plugin/abi/common.h"
#include "plugin/abi/profiler_events.h"
#include "plugin/gpu_identity.h"
#include "plugin/guard.h"
#include "plugin/handle.h"
#include "plugin/listening.h"
#include "plugin/nccl_log.h"
#include "plugin/net.h"

namespace ztcp::plugin::abi {
namespace {

Listening* listening(void* p) { return static_cast<Listening*>(p); }

HandleBytes handle_bytes(void* handle, std::size_t size_bytes) {
  return {static_cast<std::byte*>(handle), size_bytes};
}

CommOptions options_of(const ncclNetCommConfig_v10_t* config, std::uint64_t communicator = 0) {
  return {communicator, config == nullptr ? NCCL_NET_TRAFFIC_CLASS_UNDEF : config->trafficClass};
}

// Writes NCCL's output argument, after success only: NCCL would close a comm set by a failed call
// twice. The Held* becomes the void* that later calls cast back.
template <class Held, class T>
Told<void> hand_out(const Told<T*>& made, void** out) {
  if (!made) return pass_on(made.error());
  *out = static_cast<Held*>(*made);
  return {};
}

Told<void> connect_into(Context* context, int dev, void* handle, const CommOptions& options,
                        void** comm) {
  *comm = nullptr;
  return hand_out<Comm>(net().connect(context, dev, handle_bytes(handle, kHandleBytes), options),
                        comm);
}

Told<void> accept_into(void* listen_comm, void** comm) {
  *comm = nullptr;
  return hand_out<Comm>(net().accept(listening(listen_comm)), comm);
}

Told<void> listen_into(Context* context, int dev, void* handle, std::size_t handle_size,
                       void** comm) {
  *comm = nullptr;
  return hand_out<Listening>(net().listen(context, dev, handle_bytes(handle, handle_size)), comm);
}

ncclResult_t init(ncclDebugLogger_t log, bool asks_tuner) {
  return guard("init", [&]() -> Told<void> {
    bind_nccl_log(log);
    return net().init(asks_tuner);
  });
}

}  // namespace

// NCCL asks the network's library for a tuner from 2.22 on; 2.24 is the first of these with a
// network table of its own.
ncclResult_t init_v3(ncclDebugLogger_t log) { return init(log, /*asks_tuner=*/false); }

ncclResult_t init_v9(ncclDebugLogger_t log) { return init(log, /*asks_tuner=*/true); }

ncclResult_t init_v10(ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  return guard("init", [&]() -> Told<void> {
    bind_nccl_log(log);
    bind_profiler(profiler, v10_step_handles(profiler));
    return net().init(/*asks_tuner=*/true);
  });
}

ncclResult_t init_v11(void** ctx, uint64_t commId, ncclNetCommConfig_v10_t* config,
                      ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  return guard("init", [&]() -> Told<void> {
    *ctx = nullptr;
    bind_nccl_log(log);
    bind_profiler(profiler, StepHandles::kAlwaysValid);
    remember_current_gpu();
    const Told<Context*> context = net().init_context(options_of(config, commId));
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
    return hand_out<Comm>(net().connect_blocking(dev, handle_bytes(handle, kShortHandleBytes)),
                          comm);
  });
}

ncclResult_t connect_v5(int dev, void* handle, void** comm) {
  return guard("connect", [&] { return connect_into(nullptr, dev, handle, {}, comm); });
}

// The device handle stays as NCCL passed it, NULL pointer included: nothing is offloaded.
ncclResult_t connect_v7(int dev, void* handle, void** comm, ncclNetDeviceHandle_v7_t** /*device*/) {
  return connect_v5(dev, handle, comm);
}

ncclResult_t connect_v10(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** comm,
                         ncclNetDeviceHandle_v7_t** /*device*/) {
  return guard("connect",
               [&] { return connect_into(nullptr, dev, handle, options_of(config), comm); });
}

ncclResult_t connect_v11(void* ctx, int dev, void* handle, void** comm,
                         ncclNetDeviceHandle_v7_t** /*device*/) {
  return guard("connect",
               [&] { return connect_into(static_cast<Context*>(ctx), dev, handle, {}, comm); });
}

ncclResult_t accept_v3(void* listen_comm, void** comm) {
  return guard("accept", [&] {
    *comm = nullptr;
    return hand_out<Comm>(net().accept_blocking(listening(listen_comm)), comm);
  });
}

ncclResult_t accept_v5(void* listen_comm, void** comm) {
  return guard("accept", [&] { return accept_into(listen_comm, comm); });
}

ncclResult_t accept_v7(void* listen_comm, void** comm, ncclNetDeviceHandle_v7_t** /*device*/) {
  return accept_v5(listen_comm, comm);
}

ncclResult_t close_v3(void* comm) {
  return guard("close", [&]() -> Told<void> {
    net().close(comm);
    return {};
  });
}

}  // namespace ztcp::plugin::abi
