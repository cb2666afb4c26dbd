// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Spreads the flows of a device over the receive queues of its NIC. The kernel reports a queue as a
// number of each flow; a queue is known only once it has served a flow. Thread-safe: all lanes of
// the device share one.
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
  // A flow is refused at most so often, at the cost of a round trip each time.
  static constexpr std::uint32_t kMostRefusals = 8;

  // `queues`: the interface's number of queues. Some of them may never get a flow.
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

  // The kernel did not report a flow's queue. True: for the first time.
  bool note_untold() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(has_been_untold_, true);
  }

 private:
  // A driver's reset gives queues new numbers; the old ones are known until their flows have ended.
  static constexpr std::size_t kMostPerQueue = 2;
  // If the tries so far were less likely than this to fail by chance, the model of the NIC is
  // wrong.
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
  // A queue for which no memory was reserved is not counted.
  void add(std::uint32_t queue) {
    if (const auto served = find(queue); served != served_.end())
      ++served->flows;
    else if (served_.size() < served_.capacity())
      served_.push_back({queue, 1});
    reachable_ = std::max(reachable_, served_.size());
  }
  // No port led to a less busy queue. Reasons: a bond reports 16 queues and its NICs have 8, an
  // indirection table leaves queues out, or a tunnel's hash ignores ports. Gives up first on the
  // queues that no flow has reached, then on choosing by ports at all.
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
  double luck_ = 1;  // Probability that all tries since the last success failed by chance.
  bool is_in_vain_ = false;
  bool has_been_untold_ = false;
};

}  // namespace ztcp::sockets
