// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which of a NIC's queues has which session, and how many, for the threads of all of them. Asked
// only while flows shake hands and sessions end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transport/msg/session_places.h"

namespace ztcp::comms {

class SharedPlaces final : public msg::SessionPlaces {
 public:
  // A new session looks for a better place so often, each time from another port: at the cost of a
  // few round trips.
  static constexpr std::uint32_t kMostTries = 8;
  // After so many that found none the NIC is taken for one whose choice no port changes.
  static constexpr std::uint32_t kMostInVain = 3;

  explicit SharedPlaces(std::size_t count) : sessions_(count) {}

  std::optional<std::uint8_t> find(std::uint64_t session) override {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(session);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }
  bool take(std::uint64_t session, std::uint8_t place) override {
    const std::lock_guard lock(mutex_);
    return places_.emplace(session, place).first->second == place;
  }
  void forget(std::uint64_t session, std::uint8_t place) override {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(session);
    if (found != places_.end() && found->second == place) places_.erase(found);
  }
  std::optional<std::uint8_t> better_place(std::uint8_t place, std::uint32_t tries) override {
    const std::lock_guard lock(mutex_);
    if (tries > kMostTries || in_vain_ >= kMostInVain) return std::nullopt;
    const auto least = std::min_element(sessions_.begin(), sessions_.end());
    if (sessions_[place] < *least + kClearlyFewer) return std::nullopt;
    return static_cast<std::uint8_t>(least - sessions_.begin());
  }
  void note_begun(std::uint8_t place, std::uint32_t tries) override {
    const std::lock_guard lock(mutex_);
    ++sessions_[place];
    if (tries > kMostTries)
      ++in_vain_;
    else if (tries > 1)
      in_vain_ = 0;
  }
  void note_ended(std::uint8_t place) override {
    const std::lock_guard lock(mutex_);
    --sessions_[place];
  }

 private:
  // One more would only be moved about.
  static constexpr std::uint32_t kClearlyFewer = 2;

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint8_t> places_;
  std::vector<std::uint32_t> sessions_;  // Running ones, by place.
  std::uint32_t in_vain_ = 0;            // In a row.
};

}  // namespace ztcp::comms
