// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lane of each session of a NIC, and the number of sessions of each lane, for the threads of
// all lanes. Used only in handshakes and when sessions end.
#pragma once

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
  // How often a new session tries for a better place, each time from another port. Each try costs a
  // few round trips.
  static constexpr std::uint32_t kMostTries = 8;
  // After so many sessions in a row that ran out of tries, the NIC is assumed to choose queues
  // without regard to ports, and no session tries any more.
  static constexpr std::uint32_t kMostInVain = 3;

  explicit SharedPlaces(std::size_t count) : sessions_(count), is_full_(count) {}

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
    const auto least = least_with_room();
    if (!least || sessions_[place] < sessions_[*least] + kClearlyFewer) return std::nullopt;
    return least;
  }
  void note_full(std::uint8_t place, bool is_full) override {
    const std::lock_guard lock(mutex_);
    is_full_[place] = is_full;
  }
  std::optional<std::uint8_t> place_with_room(std::uint8_t place) override {
    const std::lock_guard lock(mutex_);
    if (!is_full_[place]) return place;
    return in_vain_ >= kMostInVain ? std::nullopt : least_with_room();
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
  // With a smaller difference a session would only move back and forth.
  static constexpr std::uint32_t kClearlyFewer = 2;

  // The place with the fewest sessions among those with room for another.
  std::optional<std::uint8_t> least_with_room() const {
    std::optional<std::uint8_t> least;
    for (std::size_t i = 0; i < sessions_.size(); ++i)
      if (!is_full_[i] && (!least || sessions_[i] < sessions_[*least]))
        least = static_cast<std::uint8_t>(i);
    return least;
  }

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint8_t> places_;
  std::vector<std::uint32_t> sessions_;  // Number of running ones, by place.
  std::vector<bool> is_full_;            // By place.
  std::uint32_t in_vain_ = 0;            // Sessions in a row that ran out of tries.
};

}  // namespace ztcp::comms
