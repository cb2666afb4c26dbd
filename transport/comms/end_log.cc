// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/end_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "transport/core/log.h"

namespace ztcp::comms {

void EndLog::opened() {
  const std::lock_guard lock(mutex_);
  ++open_;
}

void EndLog::closed() {
  Lines lines;
  {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) sum_up(lines);
  }
  speak(lines);
}

void EndLog::failed(IpAddress peer, Errc code, const std::string& line) {
  Lines lines;
  {
    const std::lock_guard lock(mutex_);
    begin(Clock::now(), lines);
    const bool is_new = std::none_of(said_.begin(), said_.end(), [&](const auto& said) {
      return said.first == peer && said.second == code;
    });
    if (is_new && said_.size() < kSaidInFull) {
      said_.emplace_back(peer, code);
      say(line, lines);
    } else {
      ++failed_more_;
    }
  }
  speak(lines);
}

void EndLog::cut(const std::string& line) {
  Lines lines;
  {
    const std::lock_guard lock(mutex_);
    begin(Clock::now(), lines);
    if (first_.empty())
      say(line, lines);
    else
      ++cut_more_;
  }
  speak(lines);
}

void EndLog::begin(Clock::time_point now, Lines& lines) {
  if (!first_.empty() && now - last_ > kQuiet) sum_up(lines);
  last_ = now;
}

void EndLog::say(const std::string& line, Lines& lines) {
  if (first_.empty()) first_ = line;
  lines.push_back(line);
}

void EndLog::sum_up(Lines& lines) {
  if (const std::size_t more = failed_more_ + cut_more_; more != 0)
    lines.push_back(fmt::format(
        "{} more connections ended after the first: {} failed, {} were closed with messages in "
        "flight, as an abort does; the first: {}",
        more, failed_more_, cut_more_, first_));
  first_.clear();
  said_.clear();
  failed_more_ = cut_more_ = 0;
}

void EndLog::speak(const Lines& lines) const {
  for (const std::string& line : lines) log::warn("{}: {}", nic_, line);
}

}  // namespace ztcp::comms
