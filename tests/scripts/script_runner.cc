// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/scripts/script_runner.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ztcp::tcp::test {
namespace {

constexpr Duration kStep = 1us;  // Where a deadline is rounded down.
constexpr Duration kLeastTolerance = 50us;
constexpr Duration kMostTolerance = 10ms;

std::vector<std::string> split(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word && word != "#";) words.push_back(word);
  return words;
}

// The peer's bytes and ours depend on their position alone, so repeats have the same.
Bytes bytes_at(std::int64_t number, std::size_t size) {
  return pattern(size, static_cast<std::uint8_t>((number - 1) % 251));
}

}  // namespace

ScriptRunner::ScriptRunner(const std::filesystem::path& script) : path_(script) {
  config_.tcp.pacing = false;
}

std::string ScriptRunner::run() {
  std::ifstream in(path_);
  if (!in) return path_.string() + ": can't be read";
  std::string line;
  try {
    for (; std::getline(in, line);) {
      ++line_;
      execute(line);
    }
    line = "(end)";
    if (has_begun_) expect_silence();
  } catch (const std::runtime_error& error) {
    const Duration time = has_begun_ ? peer_->now - start() : Duration();
    return fmt::format("{}:{}: {}\n  {}\n  time:     {}", path_.string(), line_, line, error.what(),
                       text_of(time));
  }
  return {};
}

void ScriptRunner::execute(const std::string& line) {
  const std::vector<std::string> all = split(line);
  Words words(all);
  if (words.empty() || words[0].starts_with('#') || words[0] == "rule") return;
  if (words[0] == "set") return configure(words.subspan(1));
  if (!std::exchange(has_begun_, true)) {
    peer_ = std::make_unique<Peer>(config_);
    peer_->fill_no_timestamps();
    origins_.theirs = peer_->irs;
  }
  Duration tolerance{};
  TimePoint due = peer().now;
  if (words[0].starts_with('+')) {
    const std::string& time = words[0];
    const std::size_t tilde = time.find('~');
    const Duration duration = to_duration(time.substr(1, std::min(tilde, time.size()) - 1));
    tolerance = tilde == std::string::npos
                    ? std::clamp(duration / 10, kLeastTolerance, kMostTolerance)
                    : to_duration(time.substr(tilde + 1));
    due += duration;
    expect_silence();
    words = words.subspan(1);
    if (words.empty() || words[0] != ">") advance(duration);
  }
  if (words.empty()) return expect_silence();
  const std::string verb = words[0];
  words = words.subspan(1);
  if (verb == ">")
    return expect_segment(parse_segment(words), fmt::format("{}", fmt::join(words, " ")), due,
                          tolerance);
  if (verb == "skip") {
    if (!sent_.empty()) last_label_ = sent_.back().segment.flow_label;
    return sent_.clear();
  }
  expect_silence();
  if (verb == "<")
    send(parse_segment(words));
  else if (verb == "expect")
    expect(words);
  else if (verb != "nothing")
    call(verb, words);
}

void ScriptRunner::configure(Words words) {
  if (has_begun_) throw ScriptError("settings come first");
  if (words.size() != 2) throw ScriptError("set KEY VALUE");
  const std::string& value = words[1];
  TcpSettings& tcp = config_.tcp;
  const std::map<std::string, std::function<void()>> keys{
      {"rto_min", [&] { tcp.rto_min = to_duration(value); }},
      {"rto_initial", [&] { tcp.rto_initial = to_duration(value); }},
      {"rto_max", [&] { tcp.rto_max = to_duration(value); }},
      {"user_timeout", [&] { tcp.user_timeout = to_duration(value); }},
      {"connect_timeout", [&] { tcp.connect_timeout = to_duration(value); }},
      {"keepalive_idle", [&] { tcp.keepalive_idle = to_duration(value); }},
      {"time_wait", [&] { tcp.time_wait = to_duration(value); }},
      {"initial_window",
       [&] { tcp.initial_window_segments = static_cast<std::uint32_t>(to_number(value)); }},
      {"mtu", [&] { config_.mtu_bytes = static_cast<std::uint16_t>(to_number(value)); }},
      {"pacing", [&] { tcp.pacing = value == "on"; }},
      {"ecn", [&] { tcp.ecn = value == "on"; }},
      {"reroute", [&] { tcp.reroutes = value == "on"; }},
      {"ipv6", [&] { config_.address = test_config(value == "on").address; }},
  };
  const auto found = keys.find(words[0]);
  if (found == keys.end()) throw ScriptError(fmt::format("\"{}\" is no setting", words[0]));
  found->second();
}

void ScriptRunner::call(const std::string& name, Words words) {
  User& user = peer().user;
  const auto stream = [&]() -> Stream& {
    if (user.stream == nullptr) throw ScriptError("there is no connection");
    return *user.stream;
  };
  const std::map<std::string, std::function<void()>> calls{
      {"connect",
       [&] {
         const auto dialled =
             peer().stack.connect(peer().now, {peer_ip(config_.is_ipv6()), kPeerPort}, user);
         if (!dialled) throw ScriptError(describe(dialled.error().code));
         user.stream = *dialled;
       }},
      {"listen",
       [&] {
         if (!peer().stack.listen(kListenPort, user)) throw ScriptError("listens already");
         peer().our_port = kListenPort;
       }},
      {"open", [&] { open(words); }},
      {"accept", [&] { accept(words); }},
      {"write",
       [&] {
         if (words.size() != 1) throw ScriptError("write BYTES");
         stream();
         peer().write(static_cast<std::size_t>(to_number(words[0])));
       }},
      {"icmp", [&] { icmp(words); }},
      {"finish", [&] { stream().finish(); }},
      {"close", [&] { stream().close(); }},
      {"abort", [&] { stream().abort(); }},
  };
  const auto found = calls.find(name);
  if (found == calls.end()) throw ScriptError(fmt::format("\"{}\" is no statement", name));
  found->second();
  collect();
}

Peer& ScriptRunner::peer() { return *peer_; }

void ScriptRunner::collect() {
  for (Seg& segment : peer().collect()) {
    if (segment.flags.has(wire::kSyn)) origins_.ours = segment.seq;
    const auto number = static_cast<std::int32_t>(segment.seq - origins_.ours);
    const bool is_old = number <= static_cast<std::int64_t>(peer().user.acked);
    if (!is_old && segment.payload != bytes_at(number, segment.payload.size()))
      throw ScriptError(fmt::format("wrong bytes in {}", text_of(segment, origins_)));
    const auto size = static_cast<std::uint32_t>(segment.payload.size()) +
                      (segment.flags.has(wire::kSyn) || segment.flags.has(wire::kFin) ? 1U : 0U);
    ours_next_ = later(SeqNum(ours_next_), SeqNum(segment.seq + size)).raw();
    if (segment.flags.has(wire::kSyn)) ours_next_ = segment.seq + size;
    if (segment.options.timestamps && segment.options.timestamps->value != last_timestamp_)
      older_timestamp_ = std::exchange(last_timestamp_, segment.options.timestamps->value);
    sent_.push_back({std::move(segment), peer().now});
  }
}

void ScriptRunner::advance(Duration duration) {
  const TimePoint end = peer().now + duration;
  collect();
  for (;;) {
    const TimePoint next = peer().stack.next_deadline();
    if (next > end || next <= peer().now) break;
    peer().now = next;
    peer().stack.on_timers(next);
    collect();
  }
  peer().now = end;
  peer().stack.on_timers(end);
  collect();
}

void ScriptRunner::expect_silence() {
  if (!sent_.empty())
    differ("nothing until then", fmt::format("{} at {}", text_of(sent_.front().segment, origins_),
                                             text_of(sent_.front().at - start())));
}

void ScriptRunner::differ(const std::string& expected, const std::string& got) const {
  throw std::runtime_error(fmt::format("expected: {}\n  got:      {}", expected, got));
}

// Time passes until the segment leaves; it may do so up to `tolerance` before and after `due`.
void ScriptRunner::expect_segment(const SegmentText& wanted, const std::string& text, TimePoint due,
                                  Duration tolerance) {
  const TimePoint last = due + tolerance;
  for (;;) {
    const TimePoint next = std::max(peer().stack.next_deadline(), peer().now + kStep);
    if (!sent_.empty() || next > last) break;
    advance(next - peer().now);
  }
  if (sent_.empty()) {
    advance(std::max(Duration{}, last - peer().now));
    differ(text, "nothing");
  }
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  const bool is_in_time = sent.at + tolerance >= due && sent.at <= last;
  const bool is_new_label =
      std::exchange(last_label_, sent.segment.flow_label) != sent.segment.flow_label;
  if (wanted.label && *wanted.label != (is_new_label ? "new" : "same"))
    differ(text, is_new_label ? "a new flow label" : "the same flow label");
  if (!is_in_time || !matches(sent.segment, wanted, origins_))
    differ(fmt::format("{} at {}", text, text_of(due - start())),
           fmt::format("{} at {}", text_of(sent.segment, origins_), text_of(sent.at - start())));
}

void ScriptRunner::send(const SegmentText& text) {
  Seg segment;
  segment.flags = to_flags(text.flags);
  const bool is_syn = segment.flags.has(wire::kSyn);
  const std::int64_t number = text.seq.value_or(peer_next_);
  const auto size = static_cast<std::size_t>(text.length.value_or(0));
  segment.seq = origins_.theirs + static_cast<std::uint32_t>(number);
  if (segment.flags.has(wire::kAck))
    segment.ack = text.ack ? origins_.ours + static_cast<std::uint32_t>(*text.ack) : ours_next_;
  segment.window = static_cast<std::uint16_t>(text.window.value_or(65535));
  segment.payload = bytes_at(number + (is_syn ? 1 : 0), size);
  if (text.ecn) segment.ecn = *text.ecn == "ce" ? wire::Ecn::kCongestion : wire::Ecn::kEct0;
  if (text.label) segment.flow_label = static_cast<std::uint32_t>(to_number(*text.label));
  if (is_syn) timestamps_ = false;
  const wire::Timestamps now{peer().timestamp(), last_timestamp_};
  if (timestamps_) segment.options.timestamps = now;
  for (const std::string& option : text.options.value_or(std::vector<std::string>())) {
    const std::vector<std::string> words = split(option);
    const auto value = [&](std::size_t i) -> const std::string& {
      if (i >= words.size()) throw ScriptError(fmt::format("{} lacks a value", option));
      return words[i];
    };
    if (value(0) == "mss") {
      segment.options.mss_bytes = static_cast<std::uint16_t>(to_number(value(1)));
    } else if (words[0] == "wscale") {
      segment.options.window_scale = static_cast<std::uint8_t>(to_number(value(1)));
    } else if (words[0] == "sackok") {
      segment.options.sack_permitted = true;
    } else if (words[0] == "nots") {
      segment.options.timestamps.reset();
    } else if (words[0] == "ts") {
      segment.options.timestamps = now;
      if (words.size() > 1)
        segment.options.timestamps->value += static_cast<std::uint32_t>(to_number(words[1]));
      if (words.size() > 2 && words[2] == "older")
        segment.options.timestamps->echo = older_timestamp_;
      if (is_syn) timestamps_ = true;
    } else if (words[0] == "sack") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t colon = words[i].find(':');
        if (colon == std::string::npos) throw ScriptError("sack BEGIN:END");
        segment.options.sack[segment.options.sack_count++] = {
            origins_.ours + static_cast<std::uint32_t>(to_number(words[i].substr(0, colon))),
            origins_.ours + static_cast<std::uint32_t>(to_number(words[i].substr(colon + 1)))};
      }
    } else {
      throw ScriptError(fmt::format("\"{}\" is no option", option));
    }
  }
  if (is_syn && !segment.flags.has(wire::kAck) && segment.options.timestamps)
    segment.options.timestamps->echo = 0;
  if (!segment.flags.has(wire::kRst))
    peer_next_ = std::max(peer_next_, number + static_cast<std::int64_t>(size) +
                                          (is_syn || segment.flags.has(wire::kFin) ? 1 : 0));
  peer().send(std::move(segment));
  collect();
}

}  // namespace ztcp::tcp::test
