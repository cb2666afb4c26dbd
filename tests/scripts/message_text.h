// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages of ARP, ICMP, ICMPv6 and neighbour discovery as scripts write them; README.md has the
// grammar.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tests/scripts/names.h"
#include "tests/scripts/packet_changes.h"
#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {

struct MessageText {
  std::string kind;
  Parts parts;
};

bool is_message(const std::string& kind);
MessageText parse_message(std::span<const std::string> words);
std::string text_of(const MessageText& message);

// The peer's, or a router's.
std::unique_ptr<Frame> frame_of(const MessageText& message, const Names& names, bool is_ipv6);
// The stack's, with all its parts.
MessageText message_of(const Bytes& frame, const Names& names);
// Whether it has all that `wanted` names.
bool matches(const MessageText& message, const MessageText& wanted);

}  // namespace ztcp::tcp::test
