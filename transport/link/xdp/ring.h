// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The four rings of an AF_XDP socket, each with the kernel at its other end (linux/if_xdp.h). Both
// indices grow without bound; an entry's place is its index modulo the size, a power of two.
//
// Owned by one thread on our side.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <linux/if_xdp.h>

namespace ztcp::link::xdp {

// A ring in memory that it shares with the kernel.
template <class Entry>
struct RingMemory {
  std::uint32_t* producer = nullptr;
  std::uint32_t* consumer = nullptr;
  const std::uint32_t* flags = nullptr;
  Entry* entries = nullptr;
  std::uint32_t size = 0;
};

// Our end writes: fill and transmit.
template <class Entry>
class ProducerRing {
 public:
  ProducerRing() = default;
  explicit ProducerRing(const RingMemory<Entry>& memory) : memory_(memory) {}

  // Number of entries that put() accepts; at least `wanted` unless there are fewer.
  std::uint32_t room(std::uint32_t wanted) {
    if (memory_.size - (next_ - seen_consumer_) < wanted)
      seen_consumer_ = std::atomic_ref(*memory_.consumer).load(std::memory_order_acquire);
    return memory_.size - (next_ - seen_consumer_);
  }
  // There is room: room() told so, or the ring has a place for every entry that there is.
  void put(const Entry& entry) {
    assert(next_ - std::atomic_ref(*memory_.consumer).load(std::memory_order_relaxed) <
           memory_.size);
    memory_.entries[next_++ & (memory_.size - 1)] = entry;
  }
  // The kernel sees what was put so far.
  void publish() {
    if (next_ == published_) return;
    published_ = next_;
    std::atomic_ref(*memory_.producer).store(next_, std::memory_order_release);
  }
  // Whether the kernel has taken all that was published.
  bool is_drained() const {
    return std::atomic_ref(*memory_.consumer).load(std::memory_order_relaxed) == published_;
  }
  // The kernel only goes on after a system call.
  bool needs_wakeup() const {
    return (std::atomic_ref(const_cast<std::uint32_t&>(*memory_.flags))
                .load(std::memory_order_relaxed) &
            XDP_RING_NEED_WAKEUP) != 0;
  }

 private:
  RingMemory<Entry> memory_;
  std::uint32_t next_ = 0;
  std::uint32_t published_ = 0;
  std::uint32_t seen_consumer_ = 0;
};

// Our end reads: receive and completion.
template <class Entry>
class ConsumerRing {
 public:
  ConsumerRing() = default;
  explicit ConsumerRing(const RingMemory<Entry>& memory) : memory_(memory) {}

  // Number of entries to be read; at least `wanted` unless there are fewer.
  std::uint32_t available(std::uint32_t wanted) {
    if (seen_producer_ - next_ < wanted)
      seen_producer_ = std::atomic_ref(*memory_.producer).load(std::memory_order_acquire);
    return seen_producer_ - next_;
  }
  const Entry& peek(std::uint32_t ahead) const {
    return memory_.entries[(next_ + ahead) & (memory_.size - 1)];
  }
  // Gives the first `count` entries back to the kernel.
  void take(std::uint32_t count) {
    if (count == 0) return;
    next_ += count;
    std::atomic_ref(*memory_.consumer).store(next_, std::memory_order_release);
  }

 private:
  RingMemory<Entry> memory_;
  std::uint32_t next_ = 0;
  std::uint32_t seen_producer_ = 0;
};

}  // namespace ztcp::link::xdp
