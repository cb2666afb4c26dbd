// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/without_secrets.h"

#include <algorithm>
#include <string_view>

namespace ztcp::setup {

std::string without_secrets(const std::string& config_text) {
  constexpr std::size_t kKeyDigits = 64;
  constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
  std::string shown;
  for (std::size_t at = 0; at < config_text.size();) {
    const std::size_t end =
        std::min(config_text.find_first_not_of(kHexDigits, at), config_text.size());
    if (end - at >= kKeyDigits)
      shown += "(not shown)";
    else
      shown.append(config_text, at, end - at);
    const std::size_t next =
        std::min(config_text.find_first_of(kHexDigits, end), config_text.size());
    shown.append(config_text, end, next - end);
    at = next;
  }
  return shown;
}

}  // namespace ztcp::setup
