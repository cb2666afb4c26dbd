// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/allocation_guard.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ZTCP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define ZTCP_SANITIZED 1
#endif
#endif

namespace {

std::atomic<bool> armed{false};
std::atomic<std::size_t> counted{0};

void note() noexcept {
  if (armed.load(std::memory_order_relaxed)) counted.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#ifndef ZTCP_SANITIZED

// glibc's own entry points behind the public names. operator new and delete of libstdc++ call
// malloc and free, so replacing these catches both.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* pointer);

void* malloc(std::size_t size) {
  note();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  note();
  return __libc_calloc(count, size);
}
void* realloc(void* pointer, std::size_t size) {
  note();
  return __libc_realloc(pointer, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** pointer, std::size_t alignment, std::size_t size) {
  note();
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *pointer = memory;
  return 0;
}
void free(void* pointer) {
  if (pointer != nullptr) note();
  __libc_free(pointer);
}
}

#else

void* operator new(std::size_t size) {
  note();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* pointer) noexcept {
  if (pointer != nullptr) note();
  std::free(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept { operator delete(pointer); }

#endif

namespace ztcp {

AllocationGuard::AllocationGuard() noexcept {
  counted.store(0);
  armed.store(true);
}

AllocationGuard::~AllocationGuard() { armed.store(false); }

std::size_t AllocationGuard::count() noexcept {
  armed.store(false);
  return counted.load();
}

}  // namespace ztcp
