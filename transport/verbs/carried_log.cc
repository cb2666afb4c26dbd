// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/carried_log.h"

#include <numeric>

#include <fmt/format.h>

namespace ztcp::verbs {

void CarriedLog::opened() {
  const std::lock_guard lock(mutex_);
  ++open_;
}

std::optional<std::string> CarriedLog::closed(const Carried& carried, bool sent,
                                              Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Carried& way = sent ? sent_ : received_;
  way.messages += carried.messages;
  for (std::size_t i = 0; i < rails_.size(); ++i) way.bytes[i] += carried.bytes[i];
  is_untold_ = true;
  if (--open_ != 0 || (told_at_ && now - *told_at_ < kInterval)) return std::nullopt;
  told_at_ = now;
  is_untold_ = false;
  return fmt::format("{}: no connection is left; so far it {}", name_, text());
}

std::optional<std::string> CarriedLog::rest() {
  const std::lock_guard lock(mutex_);
  if (!is_untold_) return std::nullopt;
  is_untold_ = false;
  return fmt::format("{}: in all it {}", name_, text());
}

std::string CarriedLog::text() const {
  const auto all = [](const Carried& way) {
    return fmt::format("{} message{} ({} bytes)", way.messages, way.messages == 1 ? "" : "s",
                       std::accumulate(way.bytes.begin(), way.bytes.end(), std::uint64_t{0}));
  };
  std::string text = fmt::format("sent {}, received {}", all(sent_), all(received_));
  if (rails_.size() == 1) return text;
  for (std::size_t i = 0; i < rails_.size(); ++i)
    text += fmt::format("; {} sent {} bytes, received {}", rails_[i], sent_.bytes[i],
                        received_.bytes[i]);
  return text;
}

}  // namespace ztcp::verbs
