// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bounded queue between exactly two threads: one calls try_push(), the other try_pop(). Allocates
// at construction only; nobody ever waits.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace ztcp {

template <class T>
class SpscRing {
 public:
  // `capacity` is rounded up to a power of two.
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity) - 1), slots_(std::make_unique<T[]>(mask_ + 1)) {
    assert(capacity > 0);
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  std::size_t capacity() const noexcept { return mask_ + 1; }

  // Producer. False, and `value` untouched, when the ring is full.
  bool try_push(T&& value) noexcept { return push(std::move(value)); }
  bool try_push(const T& value) noexcept { return push(value); }

  // Consumer. False when the ring is empty.
  bool try_pop(T& out) noexcept {
    static_assert(std::is_nothrow_move_assignable_v<T>);
    const std::size_t head = consumer_.index.load(std::memory_order_relaxed);
    if (head == consumer_.other) {
      consumer_.other = producer_.index.load(std::memory_order_acquire);
      if (head == consumer_.other) return false;
    }
    out = std::move(slots_[head & mask_]);
    consumer_.index.store(head + 1, std::memory_order_release);
    return true;
  }

  // Either side, or a third: true at some moment during the call.
  bool empty() const noexcept {
    return consumer_.index.load(std::memory_order_acquire) ==
           producer_.index.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kCacheLineBytes = 64;

  // Indices only grow; the mask makes them slots. `other` is the last seen index of the opposite
  // side, so that its cache line is fetched once per lap and not once per element.
  struct alignas(kCacheLineBytes) Side {
    std::atomic<std::size_t> index{0};
    std::size_t other = 0;
  };

  template <class U>
  bool push(U&& value) noexcept {
    static_assert(std::is_nothrow_assignable_v<T&, U&&>);
    const std::size_t tail = producer_.index.load(std::memory_order_relaxed);
    if (tail - producer_.other > mask_) {
      producer_.other = consumer_.index.load(std::memory_order_acquire);
      if (tail - producer_.other > mask_) return false;
    }
    slots_[tail & mask_] = std::forward<U>(value);
    producer_.index.store(tail + 1, std::memory_order_release);
    return true;
  }

  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  Side producer_;
  Side consumer_;
};

}  // namespace ztcp
