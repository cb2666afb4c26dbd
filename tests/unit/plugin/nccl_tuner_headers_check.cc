// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares our declarations of NCCL's tuner with its real headers, found on the include path by
// -Dnccl_tuner_headers=PATH: every table's size, every member's offset, and every function's
// parameters. All at compile time; the program only reports the compared versions.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

namespace ours {
#include "plugin/abi/nccl_tuner.h"
}  // namespace ours

// NCCL's headers depend on others of its tree, which define these names.
using ncclResult_t = ours::ncclResult_t;
using ncclDebugLogger_t = ours::ncclDebugLogger_t;
enum ncclFunc_t : int {};
#include "tuner_v3.h"
#include "tuner_v4.h"
#include "tuner_v5.h"

namespace {

// Our declarations have void* for structures that the plugin does not read.
template <class A, class B>
constexpr bool kAlike = [] {
  if constexpr (std::is_same_v<A, B>) {
    return true;
  } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using To = std::remove_pointer_t<A>;
    return std::is_void_v<To> || kAlike<To, std::remove_pointer_t<B>>;
  } else if constexpr (std::is_enum_v<A> && std::is_enum_v<B>) {
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

#define MEMBER(type, member)                                                    \
  static_assert(offsetof(ours::type, member) == offsetof(::type, member),       \
                #type "." #member " lies elsewhere");                           \
  static_assert(kAlike<decltype(ours::type::member), decltype(::type::member)>, \
                #type "." #member " is of another type");                       \
  ++g_members;
#define TABLE(type, last)                                     \
  static_assert(sizeof(ours::type) == sizeof(::type), #type); \
  MEMBER(type, name)                                          \
  MEMBER(type, init)                                          \
  MEMBER(type, getCollInfo)                                   \
  MEMBER(type, last)

void compare() {
  TABLE(ncclTuner_v3_t, destroy)
  TABLE(ncclTuner_v4_t, destroy)
  TABLE(ncclTuner_v5_t, finalize)
}

}  // namespace

int main() {
  compare();
  std::printf("%d members equal NCCL's\n", g_members);
  return 0;
}
