// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_unit.h"

#include <algorithm>
#include <cctype>

#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup {
namespace {

constexpr const char* kTemplate =
#include "tools/ztcp_setup/plan/boot_unit.inc"
    ;

// Escapes a word of a unit's command: "%" begins a specifier there, and "$" a variable.
std::string unit_word(const std::string& word) {
  std::string escaped;
  for (const char c : word) {
    if (c == '%' || c == '$') escaped += c;
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped.find_first_of(" \t\"'\\;") == std::string::npos ? escaped : "\"" + escaped + "\"";
}

}  // namespace

std::string unit_text(const std::string& program) {
  const std::string place = "@SBINDIR@/ztcp_setup";
  std::string text = kTemplate;
  return text.replace(text.find(place), place.size(), unit_word(program));
}

std::string unit_text_here(Host& host) {
  if (host.facts("/run/systemd/system").kind != FileKind::kFolder) return {};
  const std::string program = host.link_target("/proc/self/exe").value_or("");
  // A line end in the path would begin another setting of the unit.
  const bool has_controls = std::any_of(program.begin(), program.end(),
                                        [](unsigned char c) { return std::iscntrl(c) != 0; });
  if (program.empty() || has_controls || why_not_trusted(host, program)) return {};
  return unit_text(program);
}

}  // namespace ztcp::setup
