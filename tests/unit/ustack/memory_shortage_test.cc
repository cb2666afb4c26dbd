// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An allocation that fails (ulimit -v) ends the call that needed it, and nothing else.
#include <cstddef>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"

namespace {

// Of this thread's allocations the one that fails; 0: none, or it has.
thread_local std::size_t fails_at = 0;

}  // namespace

// Not inline: GCC would see that what one of them returns goes to free().
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (fails_at != 0 && --fails_at == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (fails_at != 0 && --fails_at == 0) throw std::bad_alloc();
  const auto to = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* pointer, std::align_val_t) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept {
  std::free(pointer);
}

namespace ztcp::ustack {
namespace {

using namespace test;

TEST(MemoryShortage, OfAConnectLeavesTheNicAndItsOtherConnectionsWell) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  const auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  std::size_t failed = 0;
  for (std::size_t nth = 1;; ++nth) {
    fails_at = nth;
    try {
      const auto comm = hosts[0].begin_connect(0, (*listener)->handle(), {});
      fails_at = 0;
      EXPECT_TRUE(comm);
      break;
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }
  EXPECT_GE(failed, 3U) << "the comm, its session, the session's lanes";

  const Bytes sent = pattern(100, 1);
  Bytes received(100);
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  Request* const sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(*sending));
  ASSERT_TRUE(finish(**receiving));
  EXPECT_EQ(received, sent);
  hosts[0].drain();  // Visits every client.
}

}  // namespace
}  // namespace ztcp::ustack
