// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which of a NIC's queues has which session, for the threads of all of them. Asked only while flows
// shake hands and sessions end.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "transport/msg/session_places.h"

namespace ztcp::ustack {

class SharedPlaces final : public msg::SessionPlaces {
 public:
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

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint8_t> places_;
};

}  // namespace ztcp::ustack
