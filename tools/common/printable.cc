// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/printable.h"

namespace ztcp::tools {

std::string printable(std::string_view text, std::size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace ztcp::tools
