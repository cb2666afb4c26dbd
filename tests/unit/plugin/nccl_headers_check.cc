// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares our declarations with real NCCL plugin headers, found on the include path by
// -Dnccl_headers=PATH: every structure's size, every member's offset, and every function pointer's
// parameter list. All at compile time; the program only reports the compared versions.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace ours {
#include "plugin/abi/nccl_abi.h"
}  // namespace ours

// Defined before NCCL's header turns the same names into macros.
namespace our_values {
constexpr int kPtrHost = ours::NCCL_PTR_HOST;
constexpr int kPtrCuda = ours::NCCL_PTR_CUDA;
constexpr int kPtrDmabuf = ours::NCCL_PTR_DMABUF;
constexpr int kHandleMaxSize = ours::NCCL_NET_HANDLE_MAXSIZE;
constexpr int kMaxRequests = ours::NCCL_NET_MAX_REQUESTS;
constexpr int kOptionalRecvCompletion = ours::NCCL_NET_OPTIONAL_RECV_COMPLETION;
constexpr int kTrafficClassUndef = ours::NCCL_NET_TRAFFIC_CLASS_UNDEF;
constexpr int kDeviceInvalidVersion = ours::NCCL_NET_DEVICE_INVALID_VERSION;
}  // namespace our_values

#include "net.h"

namespace {

static_assert(our_values::kPtrHost == NCCL_PTR_HOST);
static_assert(our_values::kPtrCuda == NCCL_PTR_CUDA);
static_assert(our_values::kPtrDmabuf == NCCL_PTR_DMABUF);
static_assert(our_values::kHandleMaxSize == NCCL_NET_HANDLE_MAXSIZE);
static_assert(our_values::kMaxRequests == NCCL_NET_MAX_REQUESTS);
static_assert(our_values::kOptionalRecvCompletion == NCCL_NET_OPTIONAL_RECV_COMPLETION);
static_assert(our_values::kTrafficClassUndef == NCCL_NET_TRAFFIC_CLASS_UNDEF);
static_assert(our_values::kDeviceInvalidVersion == NCCL_NET_DEVICE_INVALID_VERSION);

#define SAME_ENUMERATOR(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(name))
SAME_ENUMERATOR(ncclSuccess);
SAME_ENUMERATOR(ncclUnhandledCudaError);
SAME_ENUMERATOR(ncclSystemError);
SAME_ENUMERATOR(ncclInternalError);
SAME_ENUMERATOR(ncclInvalidArgument);
SAME_ENUMERATOR(ncclInvalidUsage);
SAME_ENUMERATOR(ncclRemoteError);
SAME_ENUMERATOR(NCCL_LOG_NONE);
SAME_ENUMERATOR(NCCL_LOG_VERSION);
SAME_ENUMERATOR(NCCL_LOG_WARN);
SAME_ENUMERATOR(NCCL_LOG_INFO);
SAME_ENUMERATOR(NCCL_LOG_ABORT);
SAME_ENUMERATOR(NCCL_LOG_TRACE);
SAME_ENUMERATOR(NCCL_INIT);
SAME_ENUMERATOR(NCCL_NET);
SAME_ENUMERATOR(NCCL_NET_DEVICE_HOST);
SAME_ENUMERATOR(NCCL_NET_DEVICE_UNPACK);

// Whether a compiler passes, and a caller fills, two types in the same way. Structures behind
// pointers are compared where they are listed below.
template <class A, class B>
constexpr bool kAlike = [] {
  if constexpr (std::is_same_v<A, B>) {
    return true;
  } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    return kAlike<std::remove_cv_t<std::remove_pointer_t<A>>,
                  std::remove_cv_t<std::remove_pointer_t<B>>>;
  } else if constexpr (std::is_enum_v<A> && std::is_enum_v<B>) {
    return sizeof(A) == sizeof(B);
  } else if constexpr (std::is_class_v<A> && std::is_class_v<B>) {
    return sizeof(A) == sizeof(B);
  } else {
    return false;
  }
}();

template <class R1, class R2, class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) constexpr bool kAlike<R1(A...), R2(B...)> = kAlike<R1, R2> &&
                                                                                   (kAlike<A, B> &&
                                                                                    ...);

// The logger is variadic and the same in every version.
template <class R1, class R2, class... A, class... B>
requires(sizeof...(A) ==
         sizeof...(B)) constexpr bool kAlike<R1(A..., ...), R2(B..., ...)> = kAlike<R1, R2> &&
                                                                             (kAlike<A, B> && ...);

int g_members = 0;

#define MEMBER(our_type, their_type, member)                                              \
  static_assert(offsetof(ours::our_type, member) == offsetof(::their_type, member),       \
                #their_type "." #member " lies elsewhere");                               \
  static_assert(kAlike<decltype(ours::our_type::member), decltype(::their_type::member)>, \
                #their_type "." #member " is of another type");                           \
  ++g_members;
// One structure: its size, then every member of the list.
#define SAME(our_type, their_type, list)                                      \
  static_assert(sizeof(ours::our_type) == sizeof(::their_type), #their_type); \
  list(our_type, their_type)

// Members by version; offsets are compared, so the order of a list does not matter.
// clang-format off
#define DEVICE_HANDLE(o, t) \
  MEMBER(o, t, netDeviceType) MEMBER(o, t, netDeviceVersion) MEMBER(o, t, handle) \
  MEMBER(o, t, size) MEMBER(o, t, needsProxyProgress)
#define COMM_CONFIG(o, t) MEMBER(o, t, trafficClass)
#define VDEVICE(o, t) MEMBER(o, t, ndevs) MEMBER(o, t, devs)
#define NET_ATTR(o, t) \
  MEMBER(o, t, sendCommAttr) MEMBER(o, t, recvCommAttr) MEMBER(o, t, op) MEMBER(o, t, algo) \
  MEMBER(o, t, proto)
#define PROPERTIES_V3(o, t) \
  MEMBER(o, t, name) MEMBER(o, t, pciPath) MEMBER(o, t, guid) MEMBER(o, t, ptrSupport) \
  MEMBER(o, t, speed) MEMBER(o, t, port) MEMBER(o, t, maxComms)
#define PROPERTIES_V5(o, t) PROPERTIES_V3(o, t) MEMBER(o, t, latency) MEMBER(o, t, maxRecvs)
#define PROPERTIES_V7(o, t) \
  PROPERTIES_V5(o, t) MEMBER(o, t, netDeviceType) MEMBER(o, t, netDeviceVersion)
#define PROPERTIES_V8(o, t) PROPERTIES_V7(o, t) MEMBER(o, t, regIsGlobal)
#define PROPERTIES_V9(o, t) \
  PROPERTIES_V8(o, t) MEMBER(o, t, forceFlush) MEMBER(o, t, vProps) MEMBER(o, t, maxP2pBytes) \
  MEMBER(o, t, maxCollBytes)
#define PROPERTIES_V11(o, t) PROPERTIES_V9(o, t) MEMBER(o, t, maxMultiRequestSize)
#define PROPERTIES_V12(o, t) PROPERTIES_V11(o, t) MEMBER(o, t, railId) MEMBER(o, t, planeId)

#define TABLE_COMMON(o, t) \
  MEMBER(o, t, name) MEMBER(o, t, init) MEMBER(o, t, devices) MEMBER(o, t, getProperties) \
  MEMBER(o, t, listen) MEMBER(o, t, connect) MEMBER(o, t, accept) MEMBER(o, t, regMr) \
  MEMBER(o, t, deregMr) MEMBER(o, t, isend) MEMBER(o, t, irecv) MEMBER(o, t, test) \
  MEMBER(o, t, closeSend) MEMBER(o, t, closeRecv) MEMBER(o, t, closeListen)
#define TABLE_V3(o, t) TABLE_COMMON(o, t) MEMBER(o, t, flush)
#define TABLE_V4(o, t) TABLE_COMMON(o, t) MEMBER(o, t, iflush)
#define TABLE_V6(o, t) TABLE_V4(o, t) MEMBER(o, t, regMrDmaBuf)
#define TABLE_V7(o, t) TABLE_V6(o, t) MEMBER(o, t, getDeviceMr) MEMBER(o, t, irecvConsumed)
#define TABLE_V9(o, t) TABLE_V7(o, t) MEMBER(o, t, makeVDevice)
#define TABLE_V11(o, t) TABLE_V9(o, t) MEMBER(o, t, finalize) MEMBER(o, t, setNetAttr)
// clang-format on

void compare() {
  SAME(ncclNetDeviceHandle_v7_t, ncclNetDeviceHandle_v7_t, DEVICE_HANDLE)
  SAME(ncclNetDeviceHandle_v7_t, ncclNetDeviceHandle_v11_t, DEVICE_HANDLE)
  SAME(ncclNetCommConfig_v10_t, ncclNetCommConfig_v10_t, COMM_CONFIG)
  SAME(ncclNetCommConfig_v10_t, ncclNetCommConfig_v11_t, COMM_CONFIG)
  SAME(ncclNetVDeviceProps_v9_t, ncclNetVDeviceProps_v9_t, VDEVICE)
  SAME(ncclNetVDeviceProps_v9_t, ncclNetVDeviceProps_v11_t, VDEVICE)
  SAME(ncclNetAttr_v11_t, ncclNetAttr_v11_t, NET_ATTR)

  SAME(ncclNetProperties_v3_t, ncclNetProperties_v3_t, PROPERTIES_V3)
  SAME(ncclNetProperties_v3_t, ncclNetProperties_v4_t, PROPERTIES_V3)
  SAME(ncclNetProperties_v5_t, ncclNetProperties_v5_t, PROPERTIES_V5)
  SAME(ncclNetProperties_v5_t, ncclNetProperties_v6_t, PROPERTIES_V5)
  SAME(ncclNetProperties_v7_t, ncclNetProperties_v7_t, PROPERTIES_V7)
  SAME(ncclNetProperties_v8_t, ncclNetProperties_v8_t, PROPERTIES_V8)
  SAME(ncclNetProperties_v9_t, ncclNetProperties_v9_t, PROPERTIES_V9)
  SAME(ncclNetProperties_v9_t, ncclNetProperties_v10_t, PROPERTIES_V9)
  SAME(ncclNetProperties_v11_t, ncclNetProperties_v11_t, PROPERTIES_V11)

  SAME(ncclNet_v3_t, ncclNet_v3_t, TABLE_V3)
  SAME(ncclNet_v4_t, ncclNet_v4_t, TABLE_V4)
  SAME(ncclNet_v5_t, ncclNet_v5_t, TABLE_V4)
  SAME(ncclNet_v6_t, ncclNet_v6_t, TABLE_V6)
  SAME(ncclNet_v7_t, ncclNet_v7_t, TABLE_V7)
  SAME(ncclNet_v8_t, ncclNet_v8_t, TABLE_V7)
  SAME(ncclNet_v9_t, ncclNet_v9_t, TABLE_V9)
  SAME(ncclNet_v10_t, ncclNet_v10_t, TABLE_V9)
  SAME(ncclNet_v11_t, ncclNet_v11_t, TABLE_V11)

#ifdef NCCL_NET_MAX_DEVS_PER_NIC_V12  // NCCL 2.30 and later.
  SAME(ncclNetDeviceHandle_v7_t, ncclNetDeviceHandle_v12_t, DEVICE_HANDLE)
  SAME(ncclNetCommConfig_v10_t, ncclNetCommConfig_v12_t, COMM_CONFIG)
  SAME(ncclNetVDeviceProps_v12_t, ncclNetVDeviceProps_v12_t, VDEVICE)
  SAME(ncclNetAttr_v11_t, ncclNetAttr_v12_t, NET_ATTR)
  SAME(ncclNetProperties_v12_t, ncclNetProperties_v12_t, PROPERTIES_V12)
  SAME(ncclNet_v12_t, ncclNet_v12_t, TABLE_V11)
#endif
}

}  // namespace

int main() {
  compare();
  std::printf("%d members equal NCCL's\n", g_members);
  return 0;
}
