// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/normal.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cstddef>

namespace ztcp::stat::hosts {
namespace {

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// Whether the text has this form: an 'h' stands for a hexadecimal digit.
bool has_form(std::string_view text, std::string_view form) {
  return std::ranges::equal(
      text, form, [](char c, char wanted) { return wanted == 'h' ? is_hex(c) : c == wanted; });
}

bool is_address(std::string_view text) {
  std::array<char, 16> binary;
  const std::string word(text);
  return inet_pton(AF_INET, word.c_str(), binary.data()) == 1 ||
         inet_pton(AF_INET6, word.c_str(), binary.data()) == 1;
}

// A word without the punctuation around it.
std::string replaced(std::string_view word) {
  if (has_form(word, "hhhh:hh:hh.h")) return "PCI";
  if (has_form(word, "hh:hh:hh:hh:hh:hh")) return "MAC";
  if (is_address(word)) return "ADDRESS";
  // A prefix, or an IPv4 address with a port.
  for (const char mark : {'/', ':'}) {
    const std::size_t at = word.rfind(mark);
    if (at != std::string_view::npos && is_address(word.substr(0, at)))
      return "ADDRESS" + std::string(word.substr(at));
  }
  return std::string(word);
}

bool is_part_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ':' || c == '/' ||
         c == '-' || c == '_';
}

}  // namespace

std::string without_addresses(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::ranges::find_if_not(text, is_part_of_word);
    std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text = text.substr(word.size());
    std::size_t size = word.size();
    while (size > 0 && (word[size - 1] == '.' || word[size - 1] == ':')) --size;
    // "::" ends an address of IPv6.
    if (word.ends_with("::")) size = word.size();
    out += replaced(word.substr(0, size));
    out += word.substr(size);
    if (!text.empty()) {
      out += text.front();
      text = text.substr(1);
    }
  }
  return out;
}

}  // namespace ztcp::stat::hosts
