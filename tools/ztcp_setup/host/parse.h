// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Small parts of what the kernel and programs say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::setup {

std::string trimmed(const std::string& text);                // Without blanks around it.
std::vector<std::string> words_of(const std::string& text);  // What stands between blanks.
// Absent: it is no number, or something stands behind it.
std::optional<std::uint64_t> number_of(std::string_view text);

}  // namespace ztcp::setup
