// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Judges the oldest message of a connection: slow, when it takes a multiple of the time that
// messages with this peer usually take, or stalled, when nothing of it has moved for a set time.
// Pure; one for each connection, used by the thread that refreshes its statistics.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace ztcp::stats {

struct MonitorSettings {
  bool is_on = true;
  std::uint32_t slow_factor = 20;  // Times Facts::usual.
  // No message younger than this is slow: small messages take microseconds, and a thread that
  // waits for its CPU takes thousands of times as long.
  Duration slow_floor = std::chrono::milliseconds(200);
  Duration stalled_after = std::chrono::seconds(10);
};

class MessageMonitor {
 public:
  enum class Verdict : std::uint8_t { kFine, kSlow, kStalled };

  struct Facts {
    Duration oldest{};  // Age of the oldest message that is not done; zero: no message is posted.
    Duration still{};   // Time since one of its bytes, or a message before it, moved.
    Duration usual{};   // p99 of messages with its peer; zero: too few were measured.
  };

  // Returns true if the verdict has become worse, or fine again: worth a log line.
  bool check(const Facts& facts, const MonitorSettings& settings) {
    const Verdict before = verdict_;
    const Verdict now = judge(facts, settings);
    if (now == before) return false;
    // A message that was stalled and moves again may still be slow: it gets no second line.
    if (before == Verdict::kStalled && now == Verdict::kSlow) return false;
    verdict_ = now;
    return true;
  }

  Verdict verdict() const { return verdict_; }

 private:
  static Verdict judge(const Facts& facts, const MonitorSettings& settings) {
    if (!settings.is_on || facts.oldest <= Duration::zero()) return Verdict::kFine;
    if (facts.still >= settings.stalled_after) return Verdict::kStalled;
    if (facts.usual <= Duration::zero() || facts.oldest < settings.slow_floor)
      return Verdict::kFine;
    return facts.oldest / settings.slow_factor >= facts.usual ? Verdict::kSlow : Verdict::kFine;
  }

  Verdict verdict_ = Verdict::kFine;
};

}  // namespace ztcp::stats
