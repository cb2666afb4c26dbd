// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Keys of the live view: bytes of the terminal change the choice of rows. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "tools/ztcp_stat/view/screen.h"

namespace ztcp::stat {

enum class Action : std::uint8_t { kNone, kRedraw, kLook, kQuit };

// `input`: bytes that one read() returned. `page_rows`: connections that Page Up and Down pass.
Action press(std::string_view input, Choice& choice, std::size_t page_rows);

}  // namespace ztcp::stat
