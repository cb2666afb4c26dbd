// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Adapters from NCCL's CollNet signatures to the version-free CollNet, and its tables. NCCL calls
// the network's init first, then this one's. All-gather and reduce-scatter are in
// collnet_windows.cc.
#include "plugin/collnet.h"

#include "plugin/abi/collnet_windows.h"
#include "plugin/abi/common.h"
#include "plugin/abi/nccl_collnet.h"
#include "plugin/guard.h"

namespace ztcp::plugin::abi {
namespace {

ncclCollNetInit_v6_t coll_init_v6;
ncclResult_t coll_init_v6(ncclDebugLogger_t) { return ncclSuccess; }

ncclCollNetInit_v11_t coll_init_v11;
ncclResult_t coll_init_v11(void** ctx, uint64_t commId, ncclDebugLogger_t) {
  return guard("CollNet's init", [&]() -> Told<void> {
    *ctx = nullptr;
    *ctx = ZTCP_TRY(coll_net().init_context({.communicator = commId}));
    return {};
  });
}

ncclNetFinalize_v11_t coll_finalize_v11;
ncclResult_t coll_finalize_v11(void* ctx) {
  return guard("CollNet's finalize", [&]() -> Told<void> {
    coll_net().finalize(static_cast<Context*>(ctx));
    return {};
  });
}

ncclNetDevices_v3_t coll_devices_v3;
ncclResult_t coll_devices_v3(int* ndev) {
  return guard("CollNet's devices", [&]() -> Told<void> {
    *ndev = ZTCP_TRY(coll_net().device_count());
    return {};
  });
}

// NCCL meets the two tables' devices by their names. Vectors are reduced in host memory, so NCCL
// is not offered GPU memory; it takes this word for the NIC's other connections, too.
template <class P>
ncclResult_t get_properties(ncclResult_t (*of_network)(int, P*), int dev, P* props) {
  const ncclResult_t result = of_network(dev, props);
  if (result == ncclSuccess) props->ptrSupport = NCCL_PTR_HOST;
  return result;
}

ncclNetGetProperties_v5_t coll_properties_v5;
ncclResult_t coll_properties_v5(int dev, ncclNetProperties_v5_t* props) {
  return get_properties(get_properties_v5, dev, props);
}
ncclNetGetProperties_v7_t coll_properties_v7;
ncclResult_t coll_properties_v7(int dev, ncclNetProperties_v7_t* props) {
  return get_properties(get_properties_v7, dev, props);
}
ncclNetGetProperties_v8_t coll_properties_v8;
ncclResult_t coll_properties_v8(int dev, ncclNetProperties_v8_t* props) {
  return get_properties(get_properties_v8, dev, props);
}
ncclNetGetProperties_v9_t coll_properties_v9;
ncclResult_t coll_properties_v9(int dev, ncclNetProperties_v9_t* props) {
  return get_properties(get_properties_v9, dev, props);
}
ncclNetGetProperties_v11_t coll_properties_v11;
ncclResult_t coll_properties_v11(int dev, ncclNetProperties_v11_t* props) {
  return get_properties(get_properties_v11, dev, props);
}
ncclNetGetProperties_v12_t coll_properties_v12;
ncclResult_t coll_properties_v12(int dev, ncclNetProperties_v12_t* props) {
  return get_properties(get_properties_v12, dev, props);
}

ncclResult_t listen_into(Context* context, int dev, void* handle, void** comm) {
  return guard("CollNet's listen", [&]() -> Told<void> {
    *comm = nullptr;
    *comm =
        ZTCP_TRY(coll_net().listen(context, dev, {static_cast<std::byte*>(handle), kHandleBytes}));
    return {};
  });
}

ncclNetListen_v3_t coll_listen_v6;
ncclResult_t coll_listen_v6(int dev, void* handle, void** comm) {
  return listen_into(nullptr, dev, handle, comm);
}
ncclNetListen_v11_t coll_listen_v11;
ncclResult_t coll_listen_v11(void* ctx, int dev, void* handle, void** comm) {
  return listen_into(static_cast<Context*>(ctx), dev, handle, comm);
}

ncclCollNetConnect_v6_t coll_connect_v6;
ncclResult_t coll_connect_v6(void* handles[], int nranks, int rank, void* listen_comm,
                             void** comm) {
  return guard("CollNet's connect", [&]() -> Told<void> {
    *comm = nullptr;
    if (nranks < 1 || rank < 0 || rank >= nranks)
      return report(Errc::kInvalidArgument, "CollNet's connect of rank {} of {}", rank, nranks);
    *comm = ZTCP_TRY(coll_net().connect({handles, static_cast<std::size_t>(nranks)},
                                        static_cast<std::size_t>(rank),
                                        static_cast<CollListening*>(listen_comm)));
    return {};
  });
}

ncclCollNetReduceSupport_v6_t coll_reduce_support_v6;
ncclResult_t coll_reduce_support_v6(ncclDataType_t type, ncclRedOp_t operation, int* supported) {
  *supported = is_reduced(type, operation) ? 1 : 0;
  return ncclSuccess;
}

ncclResult_t register_region(void* comm, const Region& region, int type, void** mhandle) {
  return guard("CollNet's regMr", [&]() -> Told<void> {
    if (type != NCCL_PTR_HOST)
      return report(Errc::kInvalidArgument,
                    "CollNet reduces in host memory, and NCCL registers memory of type {} with it",
                    type);
    *mhandle = ZTCP_TRY(group_of(comm).register_memory(region));
    return {};
  });
}

ncclNetRegMr_v3_t coll_reg_mr_v6;
ncclResult_t coll_reg_mr_v6(void* comm, void* data, int size, int type, void** mhandle) {
  return register_region(comm, {.address = data, .size_bytes = static_cast<std::size_t>(size)},
                         type, mhandle);
}
ncclNetRegMr_v8_t coll_reg_mr_v8;
ncclResult_t coll_reg_mr_v8(void* comm, void* data, size_t size, int type, void** mhandle) {
  return register_region(comm, {.address = data, .size_bytes = size}, type, mhandle);
}
ncclNetRegMrDmaBuf_v6_t coll_reg_mr_dma_buf_v6;
ncclResult_t coll_reg_mr_dma_buf_v6(void* comm, void* data, size_t size, int type, uint64_t, int,
                                    void** mhandle) {
  return register_region(comm, {.address = data, .size_bytes = size}, type, mhandle);
}

ncclNetDeregMr_v3_t coll_dereg_mr_v6;
ncclResult_t coll_dereg_mr_v6(void* comm, void* mhandle) {
  return guard("CollNet's deregMr",
               [&] { return group_of(comm).deregister_memory(memory_of(mhandle)); });
}

ncclCollNetIallreduce_v9_t coll_iallreduce_v9;
ncclResult_t coll_iallreduce_v9(void* comm, void* from, void* to, size_t count, ncclDataType_t type,
                                ncclRedOp_t operation, void* from_mhandle, void* to_mhandle,
                                void** request) {
  return guard("iallreduce", [&]() -> Told<void> {
    *request = nullptr;
    if (!is_reduced(type, operation))
      return report(Errc::kInvalidArgument, "iallreduce of data type {} by operation {}",
                    static_cast<int>(type), static_cast<int>(operation));
    *request = ZTCP_TRY(group_of(comm).start({.from = static_cast<const std::byte*>(from),
                                              .from_registration = memory_of(from_mhandle),
                                              .to = static_cast<std::byte*>(to),
                                              .to_registration = memory_of(to_mhandle),
                                              .count = count,
                                              .type = element_of(type),
                                              .reduction = reduction_of(operation)}));
    return {};
  });
}
ncclCollNetIallreduce_v6_t coll_iallreduce_v6;
ncclResult_t coll_iallreduce_v6(void* comm, void* from, void* to, int count, ncclDataType_t type,
                                ncclRedOp_t operation, void* from_mhandle, void* to_mhandle,
                                void** request) {
  return coll_iallreduce_v9(comm, from, to, static_cast<std::size_t>(count), type, operation,
                            from_mhandle, to_mhandle, request);
}

// A request of NULL is done: host memory needs no flush.
ncclCollNetIflush_v6_t coll_iflush_v6;
ncclResult_t coll_iflush_v6(void*, void*, int, void*, void** request) {
  *request = nullptr;
  return ncclSuccess;
}

ncclNetTest_v3_t coll_test_v6;
ncclResult_t coll_test_v6(void* request, int* done, int* size) {
  return guard("CollNet's test", [&]() -> Told<void> {
    *done = 0;
    auto& job = *static_cast<reduce::Job*>(request);
    const std::size_t bytes = job.size_bytes();
    const Result<bool> finished = job.test();
    if (!finished) return pass_on(finished.error());
    if (!*finished) return {};
    *done = 1;
    if (size != nullptr) *size = static_cast<int>(bytes);
    return {};
  });
}

ncclNetClose_v3_t coll_close_v6;
ncclResult_t coll_close_v6(void* comm) {
  return guard("closeColl", [&]() -> Told<void> {
    coll_net().close(static_cast<CollGroup*>(comm));
    return {};
  });
}
ncclNetClose_v3_t coll_close_listen_v6;
ncclResult_t coll_close_listen_v6(void* comm) {
  return guard("CollNet's closeListen", [&]() -> Told<void> {
    coll_net().close(static_cast<CollListening*>(comm));
    return {};
  });
}

}  // namespace
}  // namespace ztcp::plugin::abi

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclCollNet_v6_t ncclCollNetPlugin_v6 = {
    .name = kName,
    .init = coll_init_v6,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v5,
    .listen = coll_listen_v6,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v6,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v6,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
};

extern "C" ZTCP_EXPORT const ncclCollNet_v7_t ncclCollNetPlugin_v7 = {
    .name = kName,
    .init = coll_init_v6,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v7,
    .listen = coll_listen_v6,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v6,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v6,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
};

extern "C" ZTCP_EXPORT const ncclCollNet_v8_t ncclCollNetPlugin_v8 = {
    .name = kName,
    .init = coll_init_v6,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v8,
    .listen = coll_listen_v6,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v8,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v6,
    .iallgather = coll_iallgather_v8,
    .ireducescatter = coll_ireducescatter_v8,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
};

extern "C" ZTCP_EXPORT const ncclCollNet_v9_t ncclCollNetPlugin_v9 = {
    .name = kName,
    .init = coll_init_v6,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v9,
    .listen = coll_listen_v6,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v8,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v9,
    .iallgather = coll_iallgather_v9,
    .ireducescatter = coll_ireducescatter_v9,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
    .makeVDevice = nullptr,
};

extern "C" ZTCP_EXPORT const ncclCollNet_v10_t ncclCollNetPlugin_v10 = {
    .name = kName,
    .init = coll_init_v6,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v9,
    .listen = coll_listen_v6,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v8,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v9,
    .iallgather = coll_iallgather_v9,
    .ireducescatter = coll_ireducescatter_v9,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
    .makeVDevice = nullptr,
};

extern "C" ZTCP_EXPORT const ncclCollNet_v11_t ncclCollNetPlugin_v11 = {
    .name = kName,
    .init = coll_init_v11,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v11,
    .listen = coll_listen_v11,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v8,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v9,
    .iallgather = coll_iallgather_v9,
    .ireducescatter = coll_ireducescatter_v9,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
    .makeVDevice = nullptr,
    .finalize = coll_finalize_v11,
};

extern "C" ZTCP_EXPORT const ncclCollNet_v12_t ncclCollNetPlugin_v12 = {
    .name = kName,
    .init = coll_init_v11,
    .devices = coll_devices_v3,
    .getProperties = coll_properties_v12,
    .listen = coll_listen_v11,
    .connect = coll_connect_v6,
    .reduceSupport = coll_reduce_support_v6,
    .regMr = coll_reg_mr_v8,
    .regMrDmaBuf = coll_reg_mr_dma_buf_v6,
    .deregMr = coll_dereg_mr_v6,
    .iallreduce = coll_iallreduce_v9,
    .iallgather = coll_iallgather_v9,
    .ireducescatter = coll_ireducescatter_v9,
    .iflush = coll_iflush_v6,
    .test = coll_test_v6,
    .closeColl = coll_close_v6,
    .closeListen = coll_close_listen_v6,
    .makeVDevice = nullptr,
    .finalize = coll_finalize_v11,
};
