// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/end_log.h"

#include <algorithm>

#include "transport/core/log.h"

namespace ztcp::ustack {

void EndLog::opened() {
  const std::lock_guard lock(mutex_);
  ++open_;
}

void EndLog::closed() {
  const std::lock_guard lock(mutex_);
  if (--open_ == 0) sum_up();
}

void EndLog::failed(Ipv4Address peer, Errc code, const std::string& line) {
  const std::lock_guard lock(mutex_);
  begin(Clock::now());
  const bool is_new = std::none_of(said_.begin(), said_.end(), [&](const auto& said) {
    return said.first == peer && said.second == code;
  });
  if (!is_new || said_.size() >= kSaidInFull) {
    ++failed_more_;
    return;
  }
  said_.emplace_back(peer, code);
  say(line);
}

void EndLog::cut(const std::string& line) {
  const std::lock_guard lock(mutex_);
  begin(Clock::now());
  if (first_.empty())
    say(line);
  else
    ++cut_more_;
}

void EndLog::begin(Clock::time_point now) {
  if (!first_.empty() && now - last_ > kQuiet) sum_up();
  last_ = now;
}

void EndLog::say(const std::string& line) {
  if (first_.empty()) first_ = line;
  log::warn("{}: {}", nic_, line);
}

void EndLog::sum_up() {
  if (const std::size_t more = failed_more_ + cut_more_; more != 0)
    log::warn(
        "{}: {} more connections ended after the first: {} failed, {} were closed with messages in "
        "flight, as an abort does; the first: {}",
        nic_, more, failed_more_, cut_more_, first_);
  first_.clear();
  said_.clear();
  failed_more_ = cut_more_ = 0;
}

}  // namespace ztcp::ustack
