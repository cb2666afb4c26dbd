// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// For NICs of the kernel with several receive queues: how many flows with bulk each queue serves.
// The NIC chooses by a hash of addresses and ports, so two flows may share a queue, and the CPU
// behind it, while others are idle; a flow dialled from another port may come by an idle one. Used
// only when flows shake hands and end.
#pragma once

#include <cstdint>
#include <utility>

namespace ztcp::msg {

class RxPlaces {
 public:
  virtual ~RxPlaces() = default;

  // A flow arrives by `queue` for the `tries`th time. False: it should use another queue.
  virtual bool take(std::uint32_t queue, std::uint32_t tries) = 0;
  // A resumed flow is accepted on any queue.
  virtual void take_back(std::uint32_t queue) = 0;
  virtual void give_back(std::uint32_t queue) = 0;
};

// A flow's share of a queue; given back with the flow.
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
