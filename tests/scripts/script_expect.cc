// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Handshakes in one word, and the state that scripts expect.
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/scripts/script_runner.h"

namespace ztcp::tcp::test {
namespace {

constexpr const char* kOffer = "<mss 1460,wscale 8,sackok,ts>";

}  // namespace

Errc to_errc(const std::string& text) {
  static const std::map<std::string, Errc> kNames{
      {"timed-out", Errc::kTimedOut}, {"peer-closed", Errc::kPeerClosed},
      {"refused", Errc::kRefused},    {"no-route", Errc::kNoRoute},
      {"path-mtu", Errc::kPathMtu},   {"bad-config", Errc::kBadConfig},
      {"full", Errc::kFull},
  };
  const auto found = kNames.find(text);
  if (found == kNames.end()) throw ScriptError(fmt::format("\"{}\" is no failure", text));
  return found->second;
}

// Our SYN, the peer's answer a round trip later, and ours; the path probe is answered.
void ScriptRunner::open(Words words) {
  const std::string options = words.empty() ? kOffer : fmt::format("{}", fmt::join(words, " "));
  execute("connect");
  sent_.clear();
  advance(kRoundTrip);
  execute(fmt::format("< S. win 65535 {}", options));
  answer_probe();
}

// The same for a connection that the peer opens.
void ScriptRunner::accept(Words words) {
  const std::string options = words.empty() ? kOffer : fmt::format("{}", fmt::join(words, " "));
  execute("listen");
  execute(fmt::format("< S win 65535 {}", options));
  sent_.clear();
  advance(kRoundTrip);
  execute("< .");
  answer_probe();
}

void ScriptRunner::answer_probe() {
  for (const Sent& sent : std::exchange(sent_, {})) {
    last_label_ = sent.segment.flow_label;
    if (!sent.segment.payload.empty())
      execute(fmt::format("< . <sack {}:1>",
                          1 - static_cast<std::int64_t>(sent.segment.payload.size())));
  }
  sent_.clear();
}

std::string ScriptRunner::state() const {
  std::string out = "CLOSED";
  peer_->stack.for_each_connection(
      [&](const ConnectionStatistics& connection) { out = connection.state; });
  return out;
}

std::string ScriptRunner::control() const {
  std::string out = "none";
  peer_->stack.for_each_connection(
      [&](const ConnectionStatistics& connection) { out = connection.congestion_control; });
  return out;
}

std::int64_t ScriptRunner::value_of(const std::string& name) const {
  ConnectionStatistics statistics;
  peer_->stack.for_each_connection([&](const ConnectionStatistics& s) { statistics = s; });
  const Counters& counters = peer_->stack.counters();
  const std::map<std::string, std::int64_t> values{
      {"acked", static_cast<std::int64_t>(peer_->user.acked)},
      {"received", static_cast<std::int64_t>(peer_->user.received.size())},
      {"cwnd", statistics.cwnd_bytes},
      {"ssthresh", statistics.ssthresh_bytes},
      {"mss", statistics.mss_bytes},
      {"in_flight", statistics.in_flight_bytes},
      {"timeouts", statistics.timeouts},
      {"recoveries", statistics.fast_recoveries},
      {"spurious", statistics.spurious_recoveries},
      {"tail_probes", statistics.tail_probes},
      {"srtt_us", statistics.srtt / 1us},
      {"rto_us", statistics.rto / 1us},
      {"challenges", static_cast<std::int64_t>(counters.challenge_acks)},
      {"paws_drops", static_cast<std::int64_t>(counters.rx_paws)},
      {"bad_checksums", static_cast<std::int64_t>(counters.rx_bad_checksum)},
      {"malformed", static_cast<std::int64_t>(counters.rx_malformed)},
      {"not_for_us", static_cast<std::int64_t>(counters.rx_not_for_us)},
      {"neighbour_changes", static_cast<std::int64_t>(counters.arp_mac_changes)},
      {"own_address_claimed", static_cast<std::int64_t>(counters.arp_own_address_claimed)},
      {"dsacked", statistics.dsacked_segments},
      {"ecn_reductions", statistics.ecn_reductions},
      {"ecn_faults", static_cast<std::int64_t>(counters.ecn_faults)},
      {"connections", static_cast<std::int64_t>(peer_->stack.connections())},
      {"isn_step", isn_step_},
      {"ts_step", ts_step_},
      {"reroutes", static_cast<std::int64_t>(counters.reroutes)},
      {"retransmitted", static_cast<std::int64_t>(counters.tx_retransmitted_bytes)},
  };
  const auto found = values.find(name);
  if (found == values.end()) throw ScriptError(fmt::format("\"{}\" can't be expected", name));
  return found->second;
}

void ScriptRunner::expect_number(Words words) {
  const bool compares = words.size() == 3 && (words[1] == "<" || words[1] == ">");
  if (words.size() != 2 && !compares) throw ScriptError("expect NAME [<|>] NUMBER");
  const std::int64_t wanted = to_number(words.back());
  const std::int64_t real = value_of(words[0]);
  const bool is_right = !compares         ? real == wanted
                        : words[1] == "<" ? real < wanted
                                          : real > wanted;
  if (!is_right)
    differ(fmt::format("{}", fmt::join(words, " ")), fmt::format("{} {}", words[0], real));
}

void ScriptRunner::expect(Words words) {
  if (words.empty()) throw ScriptError("expect: of what?");
  const User& user = peer().user;
  const auto is = [&](bool value) {
    if (!value) differ(fmt::format("{}", fmt::join(words, " ")), "it is not");
  };
  if (words[0] == "open") return is(user.opened);
  if (words[0] == "closed") return is(user.closed);
  if (words[0] == "ended") return is(user.ended);
  if (words[0] == "alive") return is(!user.failed && !user.ended);
  if (words[0] == "state" && words.size() == 2) {
    if (state() != words[1]) differ("state " + words[1], state());
    return;
  }
  if (words[0] == "control" && words.size() == 2) {
    if (control() != words[1]) differ("control " + words[1], control());
    return;
  }
  if (words[0] == "address" && words.size() == 2) {
    const std::string own = to_string(peer().stack.address());
    if (own != words[1]) differ("address " + words[1], own);
    return;
  }
  if (words[0] == "failed") {
    if (!user.failed) differ("a failure", "none");
    if (words.size() == 2 && describe(user.failed->code) != describe(to_errc(words[1])))
      differ(words[1], describe(user.failed->code));
    return;
  }
  expect_number(words);
  if (words[0] == "received" && user.received != pattern(user.received.size()))
    differ("the peer's bytes", "others");
}

}  // namespace ztcp::tcp::test
