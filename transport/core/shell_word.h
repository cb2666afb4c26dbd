// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A path in a line that somebody will paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace ztcp {

// `word` as a shell takes it for one word: as it is, or in single quotes.
std::string shell_word(std::string_view word);

}  // namespace ztcp
