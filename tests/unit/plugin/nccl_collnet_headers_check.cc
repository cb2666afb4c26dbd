// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares our declarations of NCCL's CollNet with its real headers, found on the include path by
// -Dnccl_collnet_headers=PATH: every table's size, every member's offset, and every function's
// parameters. All at compile time; the program only reports the number of compared members.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

namespace ours {
#include "plugin/abi/nccl_collnet.h"
}  // namespace ours

// NCCL's headers depend on others of its tree, which define these names. Those of the network's
// tables are compared by nccl_headers_check.cc.
using ncclResult_t = ours::ncclResult_t;
using ncclDebugLogger_t = ours::ncclDebugLogger_t;
using ncclProfilerCallback_t = ours::ncclProfilerCallback_t;
using ncclDataType_t = ours::ncclDataType_t;
using ncclRedOp_t = ours::ncclRedOp_t;
using ncclNetDeviceType = int;
using ncclNetDeviceHandle_v7_t = ours::ncclNetDeviceHandle_v7_t;
using ncclNetDeviceHandle_v8_t = ours::ncclNetDeviceHandle_v7_t;
using ncclNetDeviceHandle_v9_t = ours::ncclNetDeviceHandle_v7_t;
using ncclNetDeviceHandle_v10_t = ours::ncclNetDeviceHandle_v7_t;
using ncclNetDeviceHandle_v11_t = ours::ncclNetDeviceHandle_v7_t;
using ncclNetDeviceHandle_v12_t = ours::ncclNetDeviceHandle_v7_t;
// clang-format off: in NCCL's order, since older ones use macros of newer ones.
#if __has_include("net_v12.h")  // NCCL 2.30 and later.
#include "net_v12.h"
#else
#define NCCL_NET_MAX_DEVS_PER_NIC 4
#endif
#include "net_v10.h"
#include "net_v11.h"
#include "net_v6.h"
#include "net_v7.h"
#include "net_v8.h"
#include "net_v9.h"
// clang-format on

namespace {

// Structures behind pointers are compared by size here, and by member where the tables share them.
template <class A, class B>
constexpr bool kAlike = [] {
  if constexpr (std::is_same_v<A, B>) {
    return true;
  } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    return kAlike<std::remove_pointer_t<A>, std::remove_pointer_t<B>>;
  } else if constexpr (std::is_class_v<A> && std::is_class_v<B>) {
    return sizeof(A) == sizeof(B);
  } else {
    return false;
  }
}();

template <class... A, class... B>
requires(sizeof...(A) ==
         sizeof...(B)) constexpr bool kAlike<ncclResult_t(A...), ncclResult_t(B...)> =
    (kAlike<A, B> && ...);

int g_members = 0;

#define MEMBER(our_type, their_type, member)                                              \
  static_assert(offsetof(ours::our_type, member) == offsetof(::their_type, member),       \
                #their_type "." #member " lies elsewhere");                               \
  static_assert(kAlike<decltype(ours::our_type::member), decltype(::their_type::member)>, \
                #their_type "." #member " is of another type");                           \
  ++g_members;
#define SAME(our_type, their_type, list)                                      \
  static_assert(sizeof(ours::our_type) == sizeof(::their_type), #their_type); \
  list(our_type, their_type)

// clang-format off
#define PARTS(o, t) MEMBER(o, t, mhandle) MEMBER(o, t, address) MEMBER(o, t, size)
#define TABLE_V6(o, t) \
  MEMBER(o, t, name) MEMBER(o, t, init) MEMBER(o, t, devices) MEMBER(o, t, getProperties) \
  MEMBER(o, t, listen) MEMBER(o, t, connect) MEMBER(o, t, reduceSupport) MEMBER(o, t, regMr) \
  MEMBER(o, t, regMrDmaBuf) MEMBER(o, t, deregMr) MEMBER(o, t, iallreduce) MEMBER(o, t, iflush) \
  MEMBER(o, t, test) MEMBER(o, t, closeColl) MEMBER(o, t, closeListen)
#define TABLE_V8(o, t) TABLE_V6(o, t) MEMBER(o, t, iallgather) MEMBER(o, t, ireducescatter)
#define TABLE_V9(o, t) TABLE_V8(o, t) MEMBER(o, t, makeVDevice)
#define TABLE_V11(o, t) TABLE_V9(o, t) MEMBER(o, t, finalize)
// clang-format on

void compare() {
  SAME(ncclNetSGE_v8_t, ncclNetSGE_v8_t, PARTS)
  SAME(ncclNetSGE_v9_t, ncclNetSGE_v9_t, PARTS)
  SAME(ncclNetSGE_v9_t, ncclNetSGE_v10_t, PARTS)
  SAME(ncclNetSGE_v9_t, ncclNetSGE_v11_t, PARTS)

  SAME(ncclCollNet_v6_t, ncclCollNet_v6_t, TABLE_V6)
  SAME(ncclCollNet_v7_t, ncclCollNet_v7_t, TABLE_V6)
  SAME(ncclCollNet_v8_t, ncclCollNet_v8_t, TABLE_V8)
  SAME(ncclCollNet_v9_t, ncclCollNet_v9_t, TABLE_V9)
  SAME(ncclCollNet_v10_t, ncclCollNet_v10_t, TABLE_V9)
  SAME(ncclCollNet_v11_t, ncclCollNet_v11_t, TABLE_V11)
#if __has_include("net_v12.h")
  SAME(ncclNetSGE_v9_t, ncclNetSGE_v12_t, PARTS)
  SAME(ncclCollNet_v12_t, ncclCollNet_v12_t, TABLE_V11)
#endif
}

}  // namespace

int main() {
  compare();
  std::printf("%d members equal NCCL's\n", g_members);
  return 0;
}
