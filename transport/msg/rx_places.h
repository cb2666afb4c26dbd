// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Where the kernel has a NIC with several receive queues: how many flows that carry bulk each of
// them serves. The NIC chooses by a hash of addresses and ports, so two flows may share a queue,
// and the CPU behind it, while others have nothing to do; a flow dialled from another port may come
// by one of those. Asked only while flows shake hands and end.
#pragma once

#include <cstdint>
#include <utility>

namespace ztcp::msg {

class RxPlaces {
 public:
  virtual ~RxPlaces() = default;

  // A flow knocks by `queue` for the `tries`th time. False: it had better come by another.
  virtual bool take(std::uint32_t queue, std::uint32_t tries) = 0;
  // One that comes back is there, wherever that is.
  virtual void take_back(std::uint32_t queue) = 0;
  virtual void give_back(std::uint32_t queue) = 0;
};

// What a flow has taken there; given back with it.
class RxPlace {
 public:
  RxPlace() = default;
  RxPlace(RxPlaces& places, std::uint32_t queue) : places_(&places), queue_(queue) {}
  RxPlace(RxPlace&& other) noexcept
      : places_(std::exchange(other.places_, nullptr)), queue_(other.queue_) {}
  RxPlace& operator=(RxPlace&& other) noexcept {
    if (this == &other) return *this;
    release();
    places_ = std::exchange(other.places_, nullptr);
    queue_ = other.queue_;
    return *this;
  }
  ~RxPlace() { release(); }

  void release() {
    if (RxPlaces* const places = std::exchange(places_, nullptr)) places->give_back(queue_);
  }

 private:
  RxPlaces* places_ = nullptr;
  std::uint32_t queue_ = 0;
};

}  // namespace ztcp::msg
