// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Segments as scripts write them; README.md has the grammar. Numbers are relative to each side's
// first one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "tests/scripts/packet_changes.h"
#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {

// A script that cannot be read.
struct ScriptError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "1460", "-5"
std::int64_t to_number(std::string_view text);
// "200us", "10ms", "1.5s"
Duration to_duration(std::string_view text);
std::string text_of(Duration duration);

struct SegmentText {
  std::string flags;  // In the order S F R . U E C A.
  std::optional<std::int64_t> seq;
  std::optional<std::int64_t> ack;
  bool ack_is_step = false;  // `ack` counts from the peer's last one.
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> length;
  std::optional<std::int64_t> port;  // The peer's.
  std::optional<std::int64_t> dscp;
  std::optional<std::string> ecn;
  std::optional<std::string> label;
  std::optional<std::string> source;  // "new" or "same": the stack's port.
  Parts packet;                       // Of packet_changes.h.
  // Absent: not compared; the peer's segments have timestamps if agreed.
  std::optional<std::vector<std::string>> options;
};

SegmentText parse_segment(std::span<const std::string> words);

// Where the numbers of both sides begin.
struct Origins {
  std::uint32_t ours = 0;
  std::uint32_t theirs = 0;
};

// A segment of the stack in the same words, all of them.
std::string text_of(const Seg& segment, const Origins& origins);
// Whether it has all that `wanted` names of its own, timestamps' numbers excepted.
bool matches(const Seg& segment, const SegmentText& wanted, const Origins& origins);

wire::TcpFlags to_flags(const std::string& text);

}  // namespace ztcp::tcp::test
