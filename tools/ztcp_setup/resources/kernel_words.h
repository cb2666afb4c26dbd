// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Words of a kernel command line. An argument for hugepages has two words: "hugepages=20" counts
// pages of the size in the "hugepagesz=1G" before it, else of the default size.
#pragma once

#include <string>
#include <vector>

namespace ztcp::setup {

using KernelWords = std::vector<std::string>;

bool is_page_word(const std::string& word);
// The words of `wanted` that `line` lacks. A size and its count match only as neighbours: with
// "hugepages=20 hugepagesz=1G" the kernel reserves 20 pages of the default size.
KernelWords lacking_words(const KernelWords& wanted, const KernelWords& line);
// The page words of a line except ours.
KernelWords page_words_of_others(const KernelWords& line, const KernelWords& ours);

}  // namespace ztcp::setup
