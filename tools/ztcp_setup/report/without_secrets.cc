// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/without_secrets.h"

#include <algorithm>
#include <string_view>

namespace ztcp::setup {

std::string without_secrets(const std::string& config_text) {
  constexpr std::string_view kKey = "cluster_key";
  std::string text = config_text;
  for (std::size_t at = text.find(kKey); at != text.npos; at = text.find(kKey, at + 1)) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t value = text.find('=', at);
    // In a comment it has none, and the default's is empty.
    if (value >= end || text.find_first_not_of(" \"'", value + 1) >= end) continue;
    text.replace(value + 1, end - value - 1, " (not shown)");
  }
  return text;
}

}  // namespace ztcp::setup
