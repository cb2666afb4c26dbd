// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Quotes a path in a command line that a user will paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace ztcp {

// `word` so that a shell reads it as one word: unchanged, or in single quotes.
std::string shell_word(std::string_view word);

}  // namespace ztcp
