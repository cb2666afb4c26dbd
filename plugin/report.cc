// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/report.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace ztcp::plugin {

std::string explain(const Error& error) {
  std::string text = describe(error.code);
  if (error.sys_errno != 0) {
    std::array<char, 128> buffer{};
    // GNU strerror_r: the text may lie elsewhere than in the buffer.
    text += std::string(" (") + strerror_r(error.sys_errno, buffer.data(), buffer.size()) + ")";
  }
  if (*error.where != '\0') text += std::string(", at ") + error.where;
  if (error.sys_errno == EMFILE) text += "; raise ulimit -n for this process";
  return text;
}

}  // namespace ztcp::plugin
