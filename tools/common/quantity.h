// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Parses quantities as people type them: "64M", "1%", "2ms", "1Gbit". Each parser accepts the whole
// text or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace ztcp::tools {

// "8", "64K", "64KiB", "1.5M", "1G": powers of 1024, as nccl-tests reads sizes.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// "1%", "0.01": 0 to 1.
std::optional<double> parse_probability(std::string_view text);
// "250us", "2ms", "1s", "800ns"; a unit is required unless it is 0.
std::optional<Duration> parse_duration(std::string_view text);
// "1Gbit", "100Mbit", "64kbit": powers of 1000, bits per second.
std::optional<std::uint64_t> parse_bit_rate(std::string_view text);

// Shortest exact form: "64 MiB", "100 B".
std::string format_bytes(std::uint64_t bytes);

}  // namespace ztcp::tools
