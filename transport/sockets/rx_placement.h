// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the flows of a device are spread over the receive queues of its NIC, for the lanes of all
// its queues. A queue is a number that the kernel tells of a flow; which there are is known only by
// the flows that they serve.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/msg/rx_places.h"

namespace ztcp::sockets {

class RxPlacement final : public msg::RxPlaces {
 public:
  // A flow is refused so often, at the cost of a round trip each time; then it is taken as it is.
  static constexpr std::uint32_t kMostRefusals = 8;

  // `queues`: as many as the interface has. Perhaps not all of them get flows.
  explicit RxPlacement(std::size_t queues) : reachable_(queues) {
    served_.reserve(kMostPerQueue * queues);
  }

  bool take(std::uint32_t queue, std::uint32_t tries) override {
    const std::lock_guard lock(mutex_);
    const auto served = find(queue);
    const std::uint32_t flows = served == served_.end() ? 0 : served->flows;
    const std::uint32_t least = least_flows();
    if (flows > least && tries <= kMostRefusals && !is_in_vain_) return false;
    if (flows > least && !is_in_vain_)
      note_bad_luck(least);
    else if (tries > 1)
      luck_ = 1;
    add(queue);
    return true;
  }
  void take_back(std::uint32_t queue) override {
    const std::lock_guard lock(mutex_);
    add(queue);
  }
  void give_back(std::uint32_t queue) override {
    const std::lock_guard lock(mutex_);
    const auto served = find(queue);
    if (served != served_.end() && --served->flows == 0) served_.erase(served);
  }

  // The kernel did not say by which queue a flow came. True: for the first time.
  bool note_untold() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(has_been_untold_, true);
  }

 private:
  // Those that the driver had before it was reset are known until their flows have ended.
  static constexpr std::size_t kMostPerQueue = 2;
  // Less likely than so the NIC's choice is not what it is taken for.
  static constexpr double kUnlikely = 1e-6;

  struct Served {
    std::uint32_t queue;
    std::uint32_t flows;
  };

  std::vector<Served>::iterator find(std::uint32_t queue) {
    return std::ranges::find(served_, queue, &Served::queue);
  }
  bool has_idle_queue() const { return served_.size() < reachable_; }
  std::uint32_t least_flows() const {
    if (has_idle_queue()) return 0;
    return std::ranges::min_element(served_, {}, &Served::flows)->flows;
  }
  // Beyond what it has memory for, a queue is not counted.
  void add(std::uint32_t queue) {
    if (const auto served = find(queue); served != served_.end())
      ++served->flows;
    else if (served_.size() < served_.capacity())
      served_.push_back({queue, 1});
    reachable_ = std::max(reachable_, served_.size());
  }
  // No port led to a better queue. A bond says 16 queues and has 8, an indirection table leaves
  // some out, a tunnel's hash knows no ports: the first to be doubted are the queues that nobody
  // has seen, then that ports matter.
  void note_bad_luck(std::uint32_t least) {
    const auto better =
        has_idle_queue()
            ? reachable_ - served_.size()
            : static_cast<std::size_t>(std::ranges::count(served_, least, &Served::flows));
    const double missed = 1 - static_cast<double>(better) / static_cast<double>(reachable_);
    luck_ *= std::pow(missed, kMostRefusals);
    if (luck_ >= kUnlikely) return;
    luck_ = 1;
    if (has_idle_queue())
      reachable_ = served_.size();
    else
      is_in_vain_ = true;
  }

  std::mutex mutex_;
  std::vector<Served> served_;  // Those with flows.
  std::size_t reachable_;
  double luck_ = 1;  // How likely it was that all since a flow found its queue found none.
  bool is_in_vain_ = false;
  bool has_been_untold_ = false;
};

}  // namespace ztcp::sockets
