// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/unit.h"

#include <optional>

#include <fmt/format.h>

#include "tools/ztcp_setup/resources/program.h"

namespace ztcp::setup::resource {
namespace {

// Absent: systemctl did not answer.
std::optional<bool> is_enabled(Host& host, const std::string& name) {
  const auto result = host.run({"systemctl", "is-enabled", name}, kUnitLimit);
  if (!result || result->timed_out) return std::nullopt;
  return result->exit_status == 0 && last_line(result->output) == "enabled";
}

}  // namespace

void Unit::check(Host& host, const Others&, config::Problems& problems) const {
  if (!host.has_program("systemctl"))
    problems.push_back({name, "systemctl, which enables it, does not exist",
                        "run ztcp_setup --boot at each boot"});
}

bool Unit::holds(Host& host) const { return is_enabled(host, name).value_or(false); }

Preview Unit::preview(Host&) const {
  return {"", "disabled", "enabled", "systemctl enable " + name};
}

Done Unit::apply(Host& host, Before&) const {
  return run_program(host, {"systemctl", "enable", name}, kUnitLimit);
}

std::string Unit::restored(const Before&) const { return fmt::format("{} is disabled", name); }

Reverted Unit::revert(Host& host, const Before&) const {
  if (!is_enabled(host, name).value_or(true)) return {};
  return reverted(run_program(host, {"systemctl", "disable", name}, kUnitLimit));
}

}  // namespace ztcp::setup::resource
