// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages that wait: for a peer's window, receive, data or acknowledgement, or for this process.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

using stats::Waiting;

constexpr double kZeroWindowShare = 0.05;
constexpr double kSevereZeroWindowShare = 0.5;
constexpr std::uint64_t kNoteNs = 1'000'000'000;
constexpr std::uint64_t kFaultNs = 5'000'000'000;
// A network that works acknowledges within milliseconds.
constexpr std::uint64_t kSilentNs = 1'000'000'000;

struct Wait {
  const stats::Connection* worst = nullptr;
  std::size_t connections = 0;
  bool is_stalled = false;
};

std::uint64_t fault_after(Waiting waiting) {
  return waiting == Waiting::kNetwork || waiting == Waiting::kPeerWindow ? kSilentNs : kFaultNs;
}

struct WaitText {
  Rule rule;
  const char* text;  // {}: the time without progress.
  const char* command;
};

WaitText words_of(Waiting waiting, stats::Way way) {
  switch (waiting) {
    case Waiting::kPeerData:
      return {Rule::kNoData,
              "has sent nothing for {} although receives are posted for it: that rank is behind, "
              "stopped or dead",
              "ztcp_stat why  # on that host"};
    case Waiting::kPeerReceive:
      return {Rule::kNoReceive,
              "has posted no receive for {} although data waits for it: that rank is behind, "
              "stopped or dead",
              "ztcp_stat why  # on that host"};
    case Waiting::kPeerWindow:
      return {Rule::kZeroWindow,
              "has read nothing for {}, though its host's kernel answers: its process is "
              "stopped, or its threads get no CPU",
              "ztcp_stat why  # on that host"};
    case Waiting::kApplication:
      return {Rule::kApplication,
              "waits for this process, which has posted nothing for {}: this rank is the one that "
              "is behind (its GPU, data loader or checkpoint)",
              "py-spy dump --pid PID, or gdb -p PID"};
    case Waiting::kConnecting:
      return {Rule::kUnreachable, "does not answer a connect for {}: host down, route or firewall",
              "ztcp_setup --check  # on both hosts"};
    case Waiting::kThisHost:
      return {Rule::kLate, "waits for threads of this process, late for {}",
              "top -H  # which threads have the CPUs"};
    case Waiting::kNetwork:
    case Waiting::kNothing:
      break;
  }
  // A receiver sees that bytes are missing, not whether they were sent.
  if (way == stats::Way::kReceive)
    return {Rule::kSilent,
            "has sent a part of a message and nothing more for {}: its process is stopped or dead, "
            "its host is down, or packets are dropped on the way",
            "ping; ztcp_stat why  # on that host"};
  return {Rule::kSilent,
          "has acknowledged nothing for {} although bytes are in flight: host down, link cut, or "
          "packets are dropped on the way",
          "ping; ztcp_stat why  # on that host"};
}

}  // namespace

void find_zero_windows(const Case& one, Findings& findings) {
  struct Closed {
    const stats::Connection* connection = nullptr;
    std::uint64_t time_ns = 0;
    std::uint64_t times = 0;
  };
  std::map<std::string, Closed> peers;
  for (const stats::Flow& flow : one.now().flows) {
    const stats::Connection* connection = one.window.connection_of(flow);
    if (connection == nullptr) continue;
    const stats::Flow* then = one.window.before(flow);
    const std::uint64_t time = growth(flow.zero_window_ns, then ? then->zero_window_ns : 0);
    Closed& closed = peers[peer_host(*connection)];
    if (closed.connection == nullptr || time > closed.time_ns) {
      closed.connection = connection;
      closed.time_ns = time;
    }
    closed.times += growth(flow.zero_windows, then ? then->zero_windows : 0);
  }
  for (const auto& [host, closed] : peers) {
    const double share = static_cast<double>(closed.time_ns) / (one.window.seconds() * 1e9);
    if (closed.time_ns == 0 || share < kZeroWindowShare) continue;
    findings.push_back(
        {share >= kSevereZeroWindowShare ? Severity::kSevere : Severity::kWarning,
         Rule::kZeroWindow, "peer " + peer_name(*closed.connection),
         fmt::format("kept its TCP window closed for {} of the last {}{}: its process reads too "
                     "slowly",
                     time_text(closed.time_ns), seconds_text(one.window.seconds()),
                     closed.times <= 1 ? "" : fmt::format(", {} times", closed.times)),
         "ztcp_stat why  # on that host", share});
  }
}

void find_waits(const Case& one, Findings& findings) {
  std::map<std::tuple<std::string, Waiting, stats::Way>, Wait> waits;
  for (const stats::Connection& connection : one.now().connections) {
    if (connection.waiting == Waiting::kNothing) continue;
    if (connection.progress_ns < kNoteNs && !connection.is_stalled) continue;
    const stats::Way way =
        connection.waiting == Waiting::kNetwork ? connection.way : stats::Way::kSend;
    Wait& wait = waits[{peer_host(connection), connection.waiting, way}];
    if (wait.worst == nullptr || connection.progress_ns > wait.worst->progress_ns)
      wait.worst = &connection;
    ++wait.connections;
    wait.is_stalled |= connection.is_stalled;
  }
  for (const auto& [key, wait] : waits) {
    const auto& [host, waiting, way] = key;
    const WaitText words = words_of(waiting, way);
    const bool is_fault = wait.is_stalled || wait.worst->progress_ns >= fault_after(waiting);
    const bool is_silent = words.rule == Rule::kSilent;
    findings.push_back(
        {is_fault && is_silent ? Severity::kSevere
         : is_fault            ? Severity::kWarning
                               : Severity::kNote,
         words.rule, "peer " + peer_name(*wait.worst),
         fmt::format(fmt::runtime(words.text), time_text(wait.worst->progress_ns)) +
             (wait.connections > 1 ? fmt::format("; {} connections", wait.connections) : ""),
         words.command, static_cast<double>(wait.worst->progress_ns)});
  }
}

}  // namespace ztcp::stat
