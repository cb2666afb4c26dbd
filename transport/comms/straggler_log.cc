// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/straggler_log.h"

#include <fmt/format.h>

namespace ztcp::comms {
namespace {

using Verdict = stats::MessageMonitor::Verdict;

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string subject(const StragglerLog::Connection& connection) {
  return fmt::format(
      "{} {}{}", connection.way == stats::Way::kSend ? "sending to" : "receiving from",
      connection.host.is_empty()
          ? to_string(connection.remote)
          : fmt::format("{} ({})", connection.host.view(), to_string(connection.remote)),
      connection.communicator == 0
          ? std::string()
          : fmt::format(" (communicator 0x{:x})", connection.communicator));
}

const char* reason(stats::Waiting waiting) {
  switch (waiting) {
    case stats::Waiting::kNothing:
      return "the message is about to end";
    case stats::Waiting::kPeerData:
      return "the peer has not sent its data";
    case stats::Waiting::kPeerReceive:
      return "the peer has posted no receive";
    case stats::Waiting::kNetwork:
      return "data is in flight or is being retransmitted";
    case stats::Waiting::kApplication:
      return "data is here, and this rank has posted no receive";
    case stats::Waiting::kPeerWindow:
      return "the peer's process reads nothing, though its host's kernel answers";
    case stats::Waiting::kConnecting:
      return "the connection is not open yet";
    case stats::Waiting::kThisHost:
      return "threads of this process run late";
  }
  return "the reason is not known";
}

std::string left_out_text(std::uint64_t left_out) {
  return left_out == 0 ? std::string()
                       : fmt::format("; {} more since the last such line", left_out);
}

}  // namespace

stats::MonitorSettings monitor_settings(const config::Monitor& config) {
  return {.is_on = config.enabled,
          .slow_factor = config.slow_factor,
          .slow_floor = std::chrono::milliseconds(config.slow_min_ms),
          .stalled_after = std::chrono::milliseconds(config.stalled_ms)};
}

std::string StragglerLog::name_of_peer(const Connection& connection) {
  const std::string address = to_string(connection.remote.address);
  return connection.host.is_empty() ? address
                                    : fmt::format("{} ({})", connection.host.view(), address);
}

bool StragglerLog::may_say(Said& said, TimePoint now) {
  if (now < said.next) {
    ++said.left_out;
    return false;
  }
  said.next = now + kOncePer;
  return true;
}

void StragglerLog::note(TimePoint now, Verdict verdict, const Connection& connection,
                        const stats::MessageMonitor::Facts& facts, stats::Waiting waiting,
                        DeferredLog& log) {
  const bool is_stalled = verdict == Verdict::kStalled;
  ++(is_stalled ? stalled_ : slow_);
  Said& said = is_stalled ? said_stalled_ : said_slow_;
  if (!may_say(said, now)) return;
  const std::uint64_t left_out = std::exchange(said.left_out, 0);
  log.add(log::Level::kInfo, [&] {
    if (is_stalled)
      return fmt::format("{}: stalled: {} has made no progress for {:.1f} s: {}{}", device_,
                         subject(connection), in_seconds(facts.still), reason(waiting),
                         left_out_text(left_out));
    return fmt::format("{}: slow: {} has taken {:.3f} s for a message, usually {:.6f} s: {}{}",
                       device_, subject(connection), in_seconds(facts.oldest),
                       in_seconds(facts.usual), reason(waiting), left_out_text(left_out));
  });
}

void StragglerLog::note_end(TimePoint now, const Connection& connection, const Sums& sums,
                            DeferredLog& log) {
  if (sums.slow + sums.stalled == 0 || !may_say(said_end_, now)) return;
  const std::uint64_t left_out = std::exchange(said_end_.left_out, 0);
  log.add(log::Level::kInfo, [&] {
    return fmt::format(
        "{}: stragglers: {} ended with {} slow and {} stalled messages; the longest wait was "
        "{:.1f} s{}",
        device_, subject(connection), sums.slow, sums.stalled, in_seconds(sums.longest),
        left_out_text(left_out));
  });
}

}  // namespace ztcp::comms
