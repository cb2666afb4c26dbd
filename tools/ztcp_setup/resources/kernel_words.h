// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Words of a kernel command line, where an argument of hugepages is two words: "hugepages=20" is of
// the size that the "hugepagesz=1G" before it names, else of the default size.
#pragma once

#include <string>
#include <vector>

namespace ztcp::setup {

using KernelWords = std::vector<std::string>;

bool is_page_word(const std::string& word);
// Those of `wanted` that `line` lacks. A size and its count are there only as neighbours: with
// "hugepages=20 hugepagesz=1G" the kernel reserves 20 pages of the default size.
KernelWords lacking_words(const KernelWords& wanted, const KernelWords& line);
// The page words of a line, without those that are ours.
KernelWords page_words_of_others(const KernelWords& line, const KernelWords& ours);

}  // namespace ztcp::setup
