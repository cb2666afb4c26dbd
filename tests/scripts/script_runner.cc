// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/scripts/script_runner.h"

#include <algorithm>
#include <cstring>
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

bool is_answering(std::span<const std::string> words) {
  if (words.size() != 1 || (words[0] != "answers" && words[0] != "silent"))
    throw ScriptError("neighbour answers|silent");
  return words[0] == "answers";
}

}  // namespace

Bytes bytes_at(std::int64_t number, std::size_t size) {
  return pattern(size, static_cast<std::uint8_t>((number - 1) % 251));
}

ScriptRunner::ScriptRunner(const std::filesystem::path& script) : path_(script) {
  config_.tcp.pacing = false;
}

std::string ScriptRunner::run() {
  std::ifstream in(path_);
  if (!in) return path_.string() + ": can't be read";
  for (std::string line; std::getline(in, line);) lines_.push_back(line);
  try {
    execute_lines(0, lines_.size());
    lines_.emplace_back("(end)");
    line_ = lines_.size();
    if (has_begun_) expect_silence();
  } catch (const std::runtime_error& error) {
    const Duration time = has_begun_ ? peer_->now - start() : Duration();
    return fmt::format("{}:{}: {}\n  {}\n  time:     {}", path_.string(), line_, lines_[line_ - 1],
                       error.what(), text_of(time));
  }
  return {};
}

void ScriptRunner::execute_lines(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    line_ = i + 1;
    const std::vector<std::string> words = split(lines_[i]);
    const bool is_burst = !words.empty() && words[0] == "burst";
    if (!is_burst && (words.empty() || words[0] != "repeat")) {
      execute(lines_[i]);
      continue;
    }
    if (words.size() != (is_burst ? 1U : 2U)) throw ScriptError("repeat TIMES, burst");
    const std::size_t last = end_of_block(i + 1);
    if (is_burst) is_in_burst_ = true;
    for (std::int64_t left = is_burst ? 1 : to_number(words[1]); left > 0; --left)
      execute_lines(i + 1, last);
    if (is_burst) end_burst();
    i = last;
  }
}

// The line "end" of the block whose first line is `begin`.
std::size_t ScriptRunner::end_of_block(std::size_t begin) const {
  int open = 1;
  for (std::size_t i = begin; i < lines_.size(); ++i) {
    const std::vector<std::string> words = split(lines_[i]);
    if (words.empty()) continue;
    if (words[0] == "repeat" || words[0] == "burst") ++open;
    if (words[0] == "end" && --open == 0) return i;
  }
  throw ScriptError("\"end\" is missing");
}

void ScriptRunner::begin() {
  if (config_.gateway != IpAddress() && config_.gateway.is_v4() == config_.is_ipv6())
    throw ScriptError("the gateway is of the other family: set it after ipv6 and address");
  has_begun_ = true;
  peer_ = std::make_unique<Peer>(config_);
  peer_->fill_no_timestamps();
  peer_->has_routers = config_.finds_router || config_.gateway != IpAddress();
  origins_.theirs = peer_->irs;
}

void ScriptRunner::execute(const std::string& line) {
  const std::vector<std::string> all = split(line);
  Words words(all);
  if (words.empty() || words[0].starts_with('#') || words[0] == "rule") return;
  if (words[0] == "set") return configure(words.subspan(1));
  if (!has_begun_) begin();
  Wanted wanted{.text = {}, .due = peer().now, .tolerance = {}};
  if (words[0].starts_with('+')) {
    const std::string& time = words[0];
    const std::size_t tilde = time.find('~');
    const Duration duration = to_duration(time.substr(1, std::min(tilde, time.size()) - 1));
    wanted.tolerance = tilde == std::string::npos
                           ? std::clamp(duration / 10, kLeastTolerance, kMostTolerance)
                           : to_duration(time.substr(tilde + 1));
    wanted.due += duration;
    expect_silence();
    words = words.subspan(1);
    if (words.empty() || words[0] != ">") advance(duration);
  }
  if (words.empty()) return expect_silence();
  const std::string verb = words[0];
  words = words.subspan(1);
  if (verb == ">") {
    wanted.text = fmt::format("{}", fmt::join(words, " "));
    if (!words.empty() && is_message(words[0])) return expect_message(parse_message(words), wanted);
    return expect_segment(parse_segment(words), wanted);
  }
  if (verb == "skip") {
    if (!sent_.empty()) last_label_ = sent_.back().segment.flow_label;
    return sent_.clear();
  }
  expect_silence();
  if (verb == "<" && !words.empty() && is_message(words[0]))
    arrive(frame_of(parse_message(words), names(), config_.is_ipv6()));
  else if (verb == "<")
    send(parse_segment(words));
  else if (verb == "expect")
    expect(words);
  else if (verb != "nothing")
    call(verb, words);
}

void ScriptRunner::call(const std::string& name, Words words) {
  User& user = peer().user;
  const auto stream = [&]() -> Stream& {
    if (user.stream == nullptr) throw ScriptError("there is no connection");
    return *user.stream;
  };
  const std::map<std::string, std::function<void()>> calls{
      {"connect", [&] { connect(words); }},
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
      {"start",
       [&] {
         for (const Bytes& frame : peer().others) sent_.push_back(sent_message(frame));
         peer().stack.on_timers(peer().now);
       }},
      {"neighbour",
       [&] {
         peer().answers_requests = is_answering(words);
         peer().has_routers = true;  // Any host may answer.
       }},
      {"finish", [&] { stream().finish(); }},
      {"close", [&] { stream().close(); }},
      {"abort", [&] { stream().abort(); }},
  };
  const auto found = calls.find(name);
  if (found == calls.end()) throw ScriptError(fmt::format("\"{}\" is no statement", name));
  found->second();
  collect();
}

void ScriptRunner::connect(Words words) {
  User& user = peer().user;
  IpAddress to = peer_ip(config_.is_ipv6());
  if (words.size() % 2 == 1) {
    to = names().address(words[0]);
    words = words.subspan(1);
  }
  const auto dialled = peer().stack.connect(peer().now, {to, kPeerPort}, user);
  if (words.empty()) {
    if (!dialled) throw ScriptError(describe(dialled.error().code));
    user.stream = *dialled;
    return;
  }
  if (words[0] != "fails") throw ScriptError("connect [ADDRESS] [fails REASON]");
  if (dialled) differ(fmt::format("{}", fmt::join(words, " ")), "it does not");
  if (dialled.error().code != to_errc(words[1])) differ(words[1], describe(dialled.error().code));
}

Peer& ScriptRunner::peer() { return *peer_; }

ScriptRunner::Sent ScriptRunner::sent_message(const Bytes& frame) {
  Sent sent{.segment = {}, .message = message_of(frame, names()), .to = {}, .at = peer().now};
  std::memcpy(sent.to.bytes.data(), frame.data(), sent.to.bytes.size());
  return sent;
}

Names ScriptRunner::names() const { return {config_.is_ipv6(), peer_->stack.address()}; }

void ScriptRunner::collect() {
  std::vector<Seg> segments = peer().collect();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    note(segments[i]);
    Sent sent{.segment = std::move(segments[i]), .message = {}, .to = {}, .at = peer().now};
    std::memcpy(sent.to.bytes.data(), peer().raw[i].header.data(), sent.to.bytes.size());
    sent_.push_back(std::move(sent));
  }
  for (const Bytes& frame : peer().others) sent_.push_back(sent_message(frame));
}

void ScriptRunner::note(const Seg& segment) {
  const std::uint32_t timestamp =
      segment.options.timestamps ? segment.options.timestamps->value : last_timestamp_;
  if (segment.flags.has(wire::kSyn)) {
    isn_step_ = static_cast<std::int32_t>(segment.seq - ours_next_);
    ts_step_ = static_cast<std::int32_t>(timestamp - last_timestamp_);
    origins_.ours = segment.seq;
  }
  const auto number = static_cast<std::int32_t>(segment.seq - origins_.ours);
  const bool is_old = number <= static_cast<std::int64_t>(peer().user.acked);
  if (!is_old && segment.payload != bytes_at(number, segment.payload.size()))
    throw ScriptError(fmt::format("wrong bytes in {}", text_of(segment, origins_)));
  const auto size = static_cast<std::uint32_t>(segment.payload.size()) +
                    (segment.flags.has(wire::kSyn) || segment.flags.has(wire::kFin) ? 1U : 0U);
  ours_next_ = later(SeqNum(ours_next_), SeqNum(segment.seq + size)).raw();
  if (segment.flags.has(wire::kSyn)) ours_next_ = segment.seq + size;
  if (timestamp != last_timestamp_) older_timestamp_ = std::exchange(last_timestamp_, timestamp);
}

void ScriptRunner::advance(Duration duration) {
  const TimePoint end = peer().now + duration;
  collect();
  for (;;) {
    const TimePoint next = std::max(peer().stack.next_deadline(), peer().now + kStep);
    if (next > end) break;
    peer().now = next;
    peer().stack.on_timers(next);
    collect();
  }
  peer().now = end;
  peer().stack.on_timers(end);
  collect();
}

void ScriptRunner::expect_silence() {
  if (sent_.empty()) return;
  std::string got = text_of_sent(sent_.front());
  constexpr std::size_t kMostTold = 20;
  for (std::size_t i = 1; i < std::min(sent_.size(), kMostTold); ++i)
    got += "\n  then:     " + text_of_sent(sent_[i]);
  differ("nothing until then", got);
}

std::string ScriptRunner::text_of_sent(const Sent& sent) const {
  return fmt::format("{} at {}",
                     sent.message ? text_of(*sent.message) : text_of(sent.segment, origins_),
                     text_of(sent.at - start()));
}

void ScriptRunner::differ(const std::string& expected, const std::string& got) const {
  throw std::runtime_error(fmt::format("expected: {}\n  got:      {}", expected, got));
}

// Time passes until the segment leaves; it may do so up to `tolerance` before and after `due`.
ScriptRunner::Sent ScriptRunner::take(const Wanted& wanted) {
  const TimePoint last = wanted.due + wanted.tolerance;
  for (;;) {
    const TimePoint next = std::max(peer().stack.next_deadline(), peer().now + kStep);
    if (!sent_.empty() || next > last) break;
    advance(next - peer().now);
  }
  if (sent_.empty()) {
    advance(std::max(Duration{}, last - peer().now));
    differ(wanted.text, "nothing");
  }
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  if (sent.at + wanted.tolerance < wanted.due || sent.at > last)
    differ(fmt::format("{} at {}", wanted.text, text_of(wanted.due - start())), text_of_sent(sent));
  return sent;
}

void ScriptRunner::expect_segment(SegmentText text, const Wanted& wanted) {
  const Sent sent = take(wanted);
  const Seg& segment = sent.segment;
  const auto expect_change = [&](const std::optional<std::string>& word, bool is_new,
                                 const char* what) {
    if (word && *word != "new" && *word != "same") throw ScriptError("new or same");
    if (word && (*word == "new") != is_new)
      differ(wanted.text, fmt::format("{} {}", is_new ? "a new" : "the same", what));
  };
  expect_change(text.label, std::exchange(last_label_, segment.flow_label) != segment.flow_label,
                "flow label");
  expect_change(text.source, std::exchange(last_port_, segment.source_port) != segment.source_port,
                "source port");
  bool is_right = !sent.message;
  for (const auto& [name, value] : text.packet) {
    if (name != "eth-to") throw ScriptError(fmt::format("\"{}\" is not compared", name));
    is_right = is_right && sent.to == Names::mac(value);
  }
  if (text.options)
    for (std::string& option : *text.options)
      if (option.starts_with("ts ")) {
        is_right = is_right && echo_age(sent) == -to_number(option.substr(3));
        option = "ts";
      }
  if (!is_right || !matches(segment, text, origins_))
    differ(fmt::format("{} at {}", wanted.text, text_of(wanted.due - start())), text_of_sent(sent));
}

// By how many ticks the peer's timestamp in the echo is older than its clock.
std::int64_t ScriptRunner::echo_age(const Sent& sent) const {
  const auto& timestamps = sent.segment.options.timestamps;
  if (!timestamps) return INT64_MAX;
  const auto clock = static_cast<std::uint32_t>(sent.at.time_since_epoch() / 1us);
  return static_cast<std::int32_t>(clock - timestamps->echo);
}

void ScriptRunner::expect_message(const MessageText& text, const Wanted& wanted) {
  const Sent sent = take(wanted);
  if (!sent.message || !matches(*sent.message, text))
    differ(fmt::format("{} at {}", wanted.text, text_of(wanted.due - start())), text_of_sent(sent));
}

}  // namespace ztcp::tcp::test
