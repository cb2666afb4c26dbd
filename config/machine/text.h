// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Splits and parses texts of the kernel and the system.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::config {

std::string_view trimmed(std::string_view text);  // Without blanks and line ends at both ends.
// Views into the text, which must outlive them; never empty, except for lines.
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
// Copies of the words.
std::vector<std::string> own_words(std::string_view text);
// Deleted for temporaries: the views would dangle.
template <std::same_as<std::string> Temporary>
void lines_of(Temporary&& text) = delete;
template <std::same_as<std::string> Temporary>
void words_of(Temporary&& text) = delete;
template <std::same_as<std::string> Temporary>
void split(Temporary&& text, char separator) = delete;

// Whether "a,b,c" contains "b".
bool lists_word(std::string_view list, std::string_view word);
// parse_number() takes a text that is a number as a whole; leading_number() returns the number at
// the start of a text, 0 without one.
std::optional<std::uint64_t> parse_number(std::string_view text);
std::uint64_t leading_number(std::string_view text);

// "/a/b" of "/a/b/c", "/" of "/a".
std::string folder_of(const std::string& path);

}  // namespace ztcp::config
