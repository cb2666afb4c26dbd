// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Segments and messages that a script sends to the stack.
#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tests/scripts/script_runner.h"

namespace ztcp::tcp::test {
namespace {

wire::Ecn to_ecn(const std::string& text) {
  static const std::map<std::string, wire::Ecn> kCodepoints{{"off", wire::Ecn::kNotCapable},
                                                            {"ect0", wire::Ecn::kEct0},
                                                            {"ect1", wire::Ecn::kEct1},
                                                            {"ce", wire::Ecn::kCongestion}};
  const auto found = kCodepoints.find(text);
  if (found == kCodepoints.end()) throw ScriptError("ecn off|ect0|ect1|ce");
  return found->second;
}

// "mss 1460" in words.
struct OptionText {
  explicit OptionText(const std::string& option) : text(option) {
    std::istringstream in(option);
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) throw ScriptError("an empty option");
  }
  std::int64_t number(std::size_t i) const {
    if (i >= words.size()) throw ScriptError(fmt::format("{} lacks a value", text));
    return to_number(words[i]);
  }
  const std::string& text;
  std::vector<std::string> words;
};

// ECT's counters begin at 1 (RFC 9768 section 3.2.1).
wire::EcnBytes to_ecn_bytes(const OptionText& option) {
  const auto count = [&](std::size_t i) { return static_cast<std::uint32_t>(option.number(i)); };
  if (option.words.size() == 2) return {.ce = count(1), .is_whole = false};
  return {.ect0 = count(1) + 1, .ce = count(2), .ect1 = count(3) + 1};
}

}  // namespace

// "1:1461", or "+0:+1460", from the acknowledgement on.
void ScriptRunner::add_sack(Seg& segment, const std::string& block) const {
  wire::TcpOptions& options = segment.options;
  const std::size_t colon = block.find(':');
  if (colon == std::string::npos) throw ScriptError("sack BEGIN:END");
  if (options.sack_count == options.sack.size()) throw ScriptError("too many SACK blocks");
  const auto number = [&](const std::string& text) {
    const bool is_step = text.starts_with('+');
    const auto value = static_cast<std::uint32_t>(to_number(text.substr(is_step ? 1 : 0)));
    return is_step ? earlier(SeqNum(segment.ack + value), SeqNum(ours_next_)).raw()
                   : origins_.ours + value;
  };
  options.sack[options.sack_count++] = {number(block.substr(0, colon)),
                                        number(block.substr(colon + 1))};
}

// Returns the bytes in front of the options.
Bytes ScriptRunner::add_options(const SegmentText& text, Seg& segment) {
  Bytes raw;
  wire::TcpOptions& options = segment.options;
  const wire::Timestamps now{peer().timestamp(), last_timestamp_};
  const bool is_syn = segment.flags.has(wire::kSyn);
  if (is_syn) timestamps_ = false;
  if (timestamps_) options.timestamps = now;
  for (const std::string& words : text.options.value_or(std::vector<std::string>())) {
    const OptionText option(words);
    const std::string& name = option.words[0];
    if (name == "mss") {
      options.mss_bytes = static_cast<std::uint16_t>(option.number(1));
    } else if (name == "wscale") {
      options.window_scale = static_cast<std::uint8_t>(option.number(1));
    } else if (name == "sackok") {
      options.sack_permitted = true;
    } else if (name == "nots") {
      options.timestamps.reset();
    } else if (name == "ts") {
      options.timestamps = now;
      if (option.words.size() > 1)
        options.timestamps->value += static_cast<std::uint32_t>(option.number(1));
      if (option.words.size() > 2 && option.words[2] == "older")
        options.timestamps->echo = older_timestamp_;
      if (is_syn) timestamps_ = true;
    } else if (name == "sack") {
      for (std::size_t i = 1; i < option.words.size(); ++i) add_sack(segment, option.words[i]);
    } else if (name == "ecn-bytes") {
      options.ecn_bytes = to_ecn_bytes(option);
    } else if (name == "raw") {
      raw = bytes_of_hex(words.substr(words.find("raw") + 3));
    } else {
      throw ScriptError(fmt::format("\"{}\" is no option", words));
    }
  }
  if (is_syn && !segment.flags.has(wire::kAck) && options.timestamps) options.timestamps->echo = 0;
  return raw;
}

std::uint32_t ScriptRunner::acknowledgement(const SegmentText& text) const {
  if (!text.ack) return ours_next_;
  const auto number = static_cast<std::uint32_t>(*text.ack);
  if (!text.ack_is_step) return origins_.ours + number;
  return earlier(SeqNum(peer_ack_ + number), SeqNum(ours_next_)).raw();
}

void ScriptRunner::send(const SegmentText& text) {
  Seg segment;
  segment.flags = to_flags(text.flags);
  const bool is_syn = segment.flags.has(wire::kSyn);
  const std::int64_t number = text.seq.value_or(peer_next_);
  const auto size = static_cast<std::size_t>(text.length.value_or(0));
  segment.seq = origins_.theirs + static_cast<std::uint32_t>(number);
  if (segment.flags.has(wire::kAck)) segment.ack = peer_ack_ = acknowledgement(text);
  segment.window = static_cast<std::uint16_t>(text.window.value_or(65535));
  segment.payload = bytes_at(number + (is_syn ? 1 : 0), size);
  if (text.ecn) segment.ecn = to_ecn(*text.ecn);
  if (text.label) segment.flow_label = static_cast<std::uint32_t>(to_number(*text.label));
  segment.dscp = static_cast<std::uint8_t>(text.dscp.value_or(0));
  const Bytes raw_options = add_options(text, segment);
  if (!segment.flags.has(wire::kRst))
    peer_next_ = std::max(peer_next_, number + static_cast<std::int64_t>(size) +
                                          (is_syn || segment.flags.has(wire::kFin) ? 1 : 0));
  auto frame =
      frame_from_peer(segment, peer().our_port,
                      static_cast<std::uint16_t>(text.port.value_or(kPeerPort)), config_.is_ipv6());
  change_packet(*frame, text.packet, names(), raw_options);
  arrive(std::move(frame));
}

void ScriptRunner::arrive(std::unique_ptr<Frame> frame) {
  burst_.push_back(std::move(frame));
  if (!is_in_burst_) end_burst();
}

void ScriptRunner::end_burst() {
  is_in_burst_ = false;
  peer().deliver(std::exchange(burst_, {}));
  collect();
}

}  // namespace ztcp::tcp::test
