// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Quantities as people read them, in few columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ztcp::stat {

std::string time_text(std::uint64_t nanoseconds);  // "12 us", "1.5 ms", "3.2 s", "4 min", "2 h".
std::string seconds_text(double seconds);          // "1 s", "2.5 s", "4 min".
std::string bytes_text(std::uint64_t bytes);       // "512 B", "1.5 MB": powers of 1000.
std::string rate_text(double bytes_per_second);    // "12.3 Gb/s"; "0" below 1 b/s.
std::string share_text(double share);              // "0.05 %", "12 %".
std::string count_text(std::uint64_t count);       // "1234", "12.3k", "4.5M".

// A column for each value, the largest one full height; blocks of Unicode, or " .:-=+*#" in ASCII.
std::string sparkline(std::span<const double> values, bool is_unicode);

}  // namespace ztcp::stat
