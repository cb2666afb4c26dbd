// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Taking texts apart, as the kernel and the system write them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::config {

std::string_view trimmed(std::string_view text);  // Without blanks and line ends around it.
// Parts of a text that lives on; none of them is empty but for lines.
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
// Words that outlive their text.
std::vector<std::string> own_words(std::string_view text);
// Of a temporary nothing would be left to look at.
template <std::same_as<std::string> Temporary>
void lines_of(Temporary&& text) = delete;
template <std::same_as<std::string> Temporary>
void words_of(Temporary&& text) = delete;
template <std::same_as<std::string> Temporary>
void split(Temporary&& text, char separator) = delete;

// Whether "a,b,c" has "b".
bool lists_word(std::string_view list, std::string_view word);
// A text that is a number as a whole, and the number that a text begins with; 0: with none.
std::optional<std::uint64_t> parse_number(std::string_view text);
std::uint64_t leading_number(std::string_view text);

// "/a/b" of "/a/b/c", "/" of "/a".
std::string folder_of(const std::string& path);

}  // namespace ztcp::config
