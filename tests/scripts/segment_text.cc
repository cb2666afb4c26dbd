// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/scripts/segment_text.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ztcp::tcp::test {
namespace {

constexpr std::array<std::pair<char, wire::TcpFlags>, 8> kFlags{{{'S', wire::kSyn},
                                                                 {'F', wire::kFin},
                                                                 {'R', wire::kRst},
                                                                 {'.', wire::kAck},
                                                                 {'U', wire::kUrg},
                                                                 {'E', wire::kEce},
                                                                 {'C', wire::kCwr},
                                                                 {'A', wire::kAe}}};
constexpr std::array<const char*, 4> kEcn{"off", "ect1", "ect0", "ce"};

std::string letters(wire::TcpFlags flags) {
  std::string out;
  for (const auto& [letter, flag] : kFlags)
    if (flags.has(flag)) out += letter;
  return out;
}

std::int64_t relative(std::uint32_t number, std::uint32_t origin) {
  return static_cast<std::int32_t>(number - origin);
}

std::vector<std::string> options_of(const Seg& segment, const Origins& origins) {
  const wire::TcpOptions& options = segment.options;
  std::vector<std::string> out;
  if (options.mss_bytes) out.push_back(fmt::format("mss {}", *options.mss_bytes));
  if (options.window_scale) out.push_back(fmt::format("wscale {}", *options.window_scale));
  if (options.sack_permitted) out.emplace_back("sackok");
  if (options.timestamps) out.emplace_back("ts");
  for (std::size_t i = 0; i < options.sack_count; ++i)
    out.push_back(fmt::format("sack {}:{}", relative(options.sack[i].begin, origins.theirs),
                              relative(options.sack[i].end, origins.theirs)));
  if (const auto& bytes = options.ecn_bytes) {
    // ECT's counters begin at 1 (RFC 9768 section 3.2.1).
    out.push_back(bytes->is_whole ? fmt::format("ecn-bytes {} {} {}", bytes->ect0 - 1, bytes->ce,
                                                bytes->ect1 - 1)
                                  : fmt::format("ecn-bytes {}", bytes->ce));
  }
  return out;
}

// "<mss 1460,sackok>", in words that blanks have separated.
std::vector<std::string> split_options(std::span<const std::string> words) {
  std::string all = fmt::format("{}", fmt::join(words, " "));
  if (all.size() < 2 || all.back() != '>') throw ScriptError("options end with '>'");
  all = all.substr(1, all.size() - 2);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t comma = std::min(all.find(',', at), all.size());
    out.push_back(all.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

}  // namespace

std::int64_t to_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw ScriptError(fmt::format("\"{}\" is no number", text));
  return value;
}

Duration to_duration(std::string_view text) {
  const std::string copy(text);
  char* unit = nullptr;
  const double value = std::strtod(copy.c_str(), &unit);
  for (const auto& [name, factor] :
       {std::pair<std::string_view, double>{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}})
    if (unit != copy.c_str() && name == unit)
      return Duration(static_cast<std::int64_t>(value * factor + 0.5));
  throw ScriptError(fmt::format("\"{}\" is no time such as 10ms", text));
}

std::string text_of(Duration duration) { return fmt::format("{:.3f} ms", in_ms(duration)); }

wire::TcpFlags to_flags(const std::string& text) {
  wire::TcpFlags out;
  for (const auto& [letter, flag] : kFlags)
    if (text.find(letter) != std::string::npos) out |= flag;
  if (letters(out) != text)
    throw ScriptError(fmt::format("\"{}\" are no flags: S F R . U E C A, in this order", text));
  return out;
}

SegmentText parse_segment(std::span<const std::string> words) {
  if (words.empty()) throw ScriptError("a segment begins with its flags");
  SegmentText out;
  out.flags = words[0];
  to_flags(out.flags);
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (words[i].starts_with('<')) {
      out.options = split_options(words.subspan(i));
      return out;
    }
    if (i + 1 == words.size()) throw ScriptError(fmt::format("{} has no value", words[i]));
    const std::string& value = words[i + 1];
    if (words[i] == "seq") {
      out.seq = to_number(value);
    } else if (words[i] == "ack") {
      out.ack_is_step = value.starts_with('+');
      out.ack = to_number(value.substr(out.ack_is_step ? 1 : 0));
    } else if (words[i] == "win") {
      out.window = to_number(value);
    } else if (words[i] == "len") {
      out.length = to_number(value);
    } else if (words[i] == "port") {
      out.port = to_number(value);
    } else if (words[i] == "dscp") {
      out.dscp = to_number(value);
    } else if (words[i] == "ecn") {
      out.ecn = value;
    } else if (words[i] == "label") {
      out.label = value;
    } else if (words[i] == "source") {
      out.source = value;
    } else if (is_packet_part(words[i])) {
      out.packet[words[i]] = value;
    } else {
      throw ScriptError(fmt::format("\"{}\" is no part of a segment", words[i]));
    }
  }
  return out;
}

std::string text_of(const Seg& segment, const Origins& origins) {
  std::string out =
      fmt::format("{} seq {}", letters(segment.flags), relative(segment.seq, origins.ours));
  if (segment.flags.has(wire::kAck))
    out += fmt::format(" ack {}", relative(segment.ack, origins.theirs));
  out += fmt::format(" win {} len {}", segment.window, segment.payload.size());
  if (segment.ecn != wire::Ecn::kNotCapable)
    out += fmt::format(" ecn {}", kEcn[static_cast<std::size_t>(segment.ecn)]);
  if (segment.dscp != 0) out += fmt::format(" dscp {}", segment.dscp);
  return fmt::format("{} <{}>", out, fmt::join(options_of(segment, origins), ","));
}

bool matches(const Seg& segment, const SegmentText& wanted, const Origins& origins) {
  const auto is = [](const std::optional<std::int64_t>& value, std::int64_t real) {
    return !value || *value == real;
  };
  return wanted.flags == letters(segment.flags) &&
         is(wanted.seq, relative(segment.seq, origins.ours)) &&
         is(wanted.ack, relative(segment.ack, origins.theirs)) &&
         is(wanted.window, segment.window) &&
         is(wanted.length, static_cast<std::int64_t>(segment.payload.size())) &&
         is(wanted.port, segment.destination_port) && is(wanted.dscp, segment.dscp) &&
         (!wanted.ecn || *wanted.ecn == kEcn[static_cast<std::size_t>(segment.ecn)]) &&
         (!wanted.options || *wanted.options == options_of(segment, origins));
}

}  // namespace ztcp::tcp::test
