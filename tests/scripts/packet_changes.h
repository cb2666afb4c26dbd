// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Parts of a packet that scripts change around a segment or a message of the peer; README.md has
// their grammar.
#pragma once

#include <map>
#include <string>

#include "tests/scripts/names.h"
#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {

using Parts = std::map<std::string, std::string>;

bool is_packet_part(const std::string& name);

// Applies `parts` to a frame of the peer and sets its checksums and lengths. `tcp_options`: the
// bytes in front of a segment's options.
void change_packet(Frame& frame, const Parts& parts, const Names& names,
                   const Bytes& tcp_options = {});

// "01 01", with or without blanks.
Bytes bytes_of_hex(const std::string& text);

}  // namespace ztcp::tcp::test
