// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The characters allowed in names, and the words in which messages describe keys and their values,
// taken from the schema.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/schema.h"

namespace ztcp::config {

// Whether the text is a name: letters, digits, dots, dashes and underscores only.
bool is_name(std::string_view text, std::size_t most);
inline constexpr std::size_t kLongestDeviceName = 63;  // The kernel's limit for RDMA devices.

std::string full_name(std::string_view section, std::string_view key);  // "tcp.rto_min_us"
std::string unit_of(const Key& key);                                    // " us", or nothing
std::string alternatives(std::string_view words);                       // "a|b" as "\"a\", \"b\"".
std::string wanted(const Key& key);      // "an integer, 1..4 TCP flows"
std::string mend_value(const Key& key);  // "write ..., or remove the line to get 4"

}  // namespace ztcp::config
