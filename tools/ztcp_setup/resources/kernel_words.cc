// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/kernel_words.h"

#include <algorithm>
#include <cstddef>

namespace ztcp::setup {
namespace {

constexpr const char* kPageSize = "hugepagesz=";
constexpr const char* kPageCount = "hugepages=";

// Number of words of the argument that begins at `at`.
std::size_t words_of_argument(const KernelWords& words, std::size_t at) {
  const bool pair = words[at].starts_with(kPageSize) && at + 1 < words.size() &&
                    words[at + 1].starts_with(kPageCount);
  return pair ? 2 : 1;
}

}  // namespace

bool is_page_word(const std::string& word) {
  return word.starts_with(kPageSize) || word.starts_with(kPageCount);
}

KernelWords lacking_words(const KernelWords& wanted, const KernelWords& line) {
  KernelWords lacking;
  for (std::size_t at = 0; at < wanted.size();) {
    const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t count = words_of_argument(wanted, at);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    if (std::search(line.begin(), line.end(), begin, end) == line.end())
      lacking.insert(lacking.end(), begin, end);
    at += count;
  }
  return lacking;
}

KernelWords page_words_of_others(const KernelWords& line, const KernelWords& ours) {
  KernelWords others;
  for (std::size_t at = 0; at < line.size();) {
    const auto begin = line.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t count = words_of_argument(line, at);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    const bool is_ours = std::search(ours.begin(), ours.end(), begin, end) != ours.end();
    if (is_page_word(*begin) && !is_ours) others.insert(others.end(), begin, end);
    at += count;
  }
  return others;
}

}  // namespace ztcp::setup
