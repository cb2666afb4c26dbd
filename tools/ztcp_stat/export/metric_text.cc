// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/export/metric_text.h"

#include <fmt/format.h>

namespace ztcp::stat {
namespace {

// In a label's value the format wants backslash, quote and newline escaped. Other control
// characters and bytes beyond ASCII are replaced, because the whole text must be valid UTF-8.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return out;
}

}  // namespace

void Labels::add(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ',';
  text_ += fmt::format("{}=\"{}\"", name, escaped(value));
}

void Family::add_suffixed(std::string_view suffix, const Labels& labels, double value) {
  samples_ += fmt::format("{}{}{{{}}} {}\n", name_, suffix, labels.text(), value);
}

void Family::add_suffixed(std::string_view suffix, const Labels& labels, std::uint64_t value) {
  samples_ += fmt::format("{}{}{{{}}} {}\n", name_, suffix, labels.text(), value);
}

void Family::write(std::string& out) const {
  if (samples_.empty()) return;
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{3}", name_, help_, type_, samples_);
}

}  // namespace ztcp::stat
