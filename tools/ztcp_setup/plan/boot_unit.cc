// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_unit.h"

#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup {
namespace {

constexpr const char* kTemplate =
#include "tools/ztcp_setup/boot_unit.inc"
    ;

}  // namespace

std::string unit_text(const std::string& program) {
  const std::string place = "@SBINDIR@/ztcp_setup";
  std::string text = kTemplate;
  return text.replace(text.find(place), place.size(), program);
}

std::string unit_text_here(Host& host) {
  if (host.facts("/run/systemd/system").kind != FileKind::kFolder) return {};
  const std::string program = host.link_target("/proc/self/exe").value_or("");
  if (program.empty() || why_not_trusted(host, program)) return {};
  return unit_text(program);
}

}  // namespace ztcp::setup
