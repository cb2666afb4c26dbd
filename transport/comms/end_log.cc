// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/end_log.h"

#include <algorithm>

#include <fmt/format.h>

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
      say(log::Level::kWarn, line, lines);
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
      say(log::Level::kInfo, line, lines);
    else
      ++cut_more_;
  }
  speak(lines);
}

void EndLog::begin(Clock::time_point now, Lines& lines) {
  if (!first_.empty() && now - last_ > kQuiet) sum_up(lines);
  last_ = now;
}

void EndLog::say(log::Level level, const std::string& line, Lines& lines) {
  if (first_.empty()) first_ = line;
  lines.push_back({level, line});
}

void EndLog::sum_up(Lines& lines) {
  const bool is_abort = said_.empty() && failed_more_ == 0;
  if (const std::size_t more = failed_more_ + cut_more_; more != 0)
    lines.push_back({is_abort ? log::Level::kInfo : log::Level::kWarn,
                     fmt::format("{} more connection{} ended after the first: {} failed, {} closed "
                                 "with messages in flight, as an abort does; the first: {}",
                                 more, more == 1 ? "" : "s", failed_more_, cut_more_,
                                 first_.substr(0, first_.find(';')))});
  first_.clear();
  said_.clear();
  failed_more_ = cut_more_ = 0;
}

void EndLog::speak(const Lines& lines) const {
  for (const Line& line : lines) {
    if (line.level == log::Level::kWarn)
      log::warn("{}: {}", nic_, line.text);
    else
      log::info("{}: {}", nic_, line.text);
  }
}

}  // namespace ztcp::comms
