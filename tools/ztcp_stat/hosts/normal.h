// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <string>
#include <string_view>

namespace ztcp::stat::hosts {

// A check's text without the parts that are different on every host: addresses become "ADDRESS"
// (the length of a prefix stays), MAC addresses "MAC", places on PCI "PCI". Pure.
std::string without_addresses(std::string_view text);

}  // namespace ztcp::stat::hosts
