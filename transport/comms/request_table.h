// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The requests of one comm, for every transport. NCCL's progress thread takes the request that came
// back last: it is most likely in the cache, and no more requests are touched than are ever
// outstanding at once.
//
// A RequestPool serves transports whose messages progress on NCCL's thread. A RequestTable also
// hands posted requests to another thread, through a single-producer single-consumer ring of their
// numbers; they may be completed in any order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace ztcp::comms {

// T has a type Owner, a constructor T(Owner&, std::uint8_t index), index(), and next_free() and
// set_free(next) for the index of the next free request; the last one has its own index there.
template <class T, std::size_t N>
class RequestPool {
 public:
  RequestPool() = default;
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;
  ~RequestPool() {
    for (std::size_t i = 0; i < made_.load(std::memory_order_relaxed); ++i) at(i).~T();
  }

  // --- NCCL's progress thread --------------------------------------------------------------------
  // Null: all are outstanding.
  T* take(typename T::Owner& owner) {
    if (has_free_) [[likely]] {
      T& request = at(first_free_);
      has_free_ = request.next_free() != request.index();
      first_free_ = request.next_free();
      return &request;
    }
    return make(owner);
  }
  // test() has told NCCL that the request is done.
  void give_back(T& request) {
    request.set_free(has_free_ ? first_free_ : request.index());
    first_free_ = request.index();
    has_free_ = true;
  }

  // --- Any thread --------------------------------------------------------------------------------
  template <class Is>
  bool any(Is&& is) const {
    for (std::size_t i = 0, made = made_.load(std::memory_order_acquire); i < made; ++i)
      if (is(at(i))) return true;
    return false;
  }

 protected:
  T& at(std::size_t i) const {
    return reinterpret_cast<T*>(blocks_[i / kBlock]->memory.data())[i % kBlock];
  }

 private:
  static constexpr std::size_t kBlock = 32;
  static_assert(N % kBlock == 0 && N <= 256, "a number is one byte");
  struct Block {
    alignas(T) std::array<std::byte, kBlock * sizeof(T)> memory;
  };

  T* make(typename T::Owner& owner) {
    const std::uint32_t made = made_.load(std::memory_order_relaxed);
    if (made == N) return nullptr;
    auto& block = blocks_[made / kBlock];
    if (block == nullptr) block.reset(new Block);  // Uninitialized: pages are touched only by use.
    T* const request = new (&at(made)) T(owner, static_cast<std::uint8_t>(made));
    made_.store(made + 1, std::memory_order_release);
    return request;
  }

  std::array<std::unique_ptr<Block>, N / kBlock> blocks_;
  std::atomic<std::uint32_t> made_{0};
  bool has_free_ = false;
  std::uint8_t first_free_ = 0;
};

template <class T, std::size_t N>
class RequestTable : public RequestPool<T, N> {
 public:
  // --- NCCL's progress thread --------------------------------------------------------------------
  // Hands the request to the engine.
  void post(const T& request) {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    ring_[head % N].store(request.index(), std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_release);
  }

  // --- The holder of the baton -------------------------------------------------------------------
  // Calls body(request) for each newly posted request, in the order of posting.
  template <class Body>
  void drain(Body&& body) {
    const std::uint32_t head = head_.load(std::memory_order_acquire);
    for (; tail_ != head; ++tail_) body(this->at(ring_[tail_ % N].load(std::memory_order_relaxed)));
  }

 private:
  static_assert((N & (N - 1)) == 0, "head_ and tail_ wrap");

  std::array<std::atomic<std::uint8_t>, N> ring_{};
  alignas(64) std::atomic<std::uint32_t> head_{0};
  alignas(64) std::uint32_t tail_ = 0;
};

}  // namespace ztcp::comms
