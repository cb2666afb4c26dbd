// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What one queue pair was given to send and has not completed, in order. Only some of it is
// signalled: queue pairs are reliable and complete in order, so a completion is that of all before.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

namespace ztcp::verbs {

// Work requests that a queue pair holds. Sessions ask for as many when they make it.
inline constexpr std::uint32_t kSendDepth = 512;

class SentWork {
 public:
  static constexpr std::uint16_t kNobody = 0xffff;

  std::uint32_t room() const { return kSendDepth - static_cast<std::uint32_t>(next_ - oldest_); }
  bool is_empty() const { return next_ == oldest_; }

  // Of `owner`, or of nobody. Returns the id that its completion has.
  std::uint64_t add(std::uint16_t owner) {
    assert(room() > 0);
    owners_[next_ % kSendDepth] = owner;
    return next_++;
  }

  // Calls done(owner) for all that `id` completes. False: no such work is outstanding.
  template <class Done>
  bool complete(std::uint64_t id, Done&& done) {
    if (id - oldest_ >= next_ - oldest_) return false;
    while (oldest_ <= id) {
      const std::uint16_t owner = owners_[oldest_++ % kSendDepth];
      if (owner != kNobody) done(owner);
    }
    return true;
  }

 private:
  std::uint64_t oldest_ = 0;
  std::uint64_t next_ = 0;
  std::array<std::uint16_t, kSendDepth> owners_{};
};

}  // namespace ztcp::verbs
