// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "tools/ztcp_setup/resources/interface_restore.h"

namespace ztcp::setup {
namespace {

const char* option_of(const std::string& group) {
  if (group == "channels") return "-L";
  if (group == "ring") return "-G";
  if (group == "coalesce") return "-C";
  if (group == "pause") return "-A";
  if (group == "private-flags") return "--set-priv-flags";
  return "-K";
}

std::string text_of(const std::string& group, const std::string& name, std::uint32_t value) {
  if (group == "features" || group == "pause" || group == "private-flags" ||
      name.starts_with("adaptive-"))
    return value != 0 ? "on" : "off";
  return std::to_string(value);
}

std::optional<std::uint32_t> value_in(const std::vector<SettingGroup>& settings,
                                      const std::string& group, const std::string& name) {
  for (const SettingGroup& one : settings)
    if (one.name == group)
      for (const auto& [other, value] : one.values)
        if (other == name) return value;
  return std::nullopt;
}

// The settings of `wanted` that differ now, including those that the driver no longer reports.
SettingGroup difference(const SettingGroup& wanted, const std::vector<SettingGroup>& now) {
  SettingGroup different{wanted.name, {}};
  for (const auto& [name, value] : wanted.values)
    if (value_in(now, wanted.name, name) != value) different.values.emplace_back(name, value);
  return different;
}

// The driver's error, if it gave one.
std::string reason(const Status& status) {
  if (status) return "the driver did not take it";
  return status.error().sys_errno != 0 ? std::strerror(status.error().sys_errno)
                                       : describe(status.error().code);
}

// A driver that refuses them together may accept some of them.
Status set(Host& host, const std::string& link, const SettingGroup& group) {
  const Status together = host.set_settings(link, group);
  if (together || group.values.size() == 1) return together;
  for (const auto& value : group.values)
    static_cast<void>(host.set_settings(link, {group.name, {value}}));
  return together;
}

}  // namespace

std::string settings_command(const std::string& link, const SettingGroup& group) {
  std::string command = fmt::format("ethtool {} {}", option_of(group.name), link);
  for (const auto& [name, value] : group.values)
    command += fmt::format(" {} {}", name, text_of(group.name, name, value));
  return command;
}

void restore_settings(Host& host, const InterfaceState& wanted, Reverted& reverted) {
  for (const SettingGroup& group : wanted.settings) {
    // Read anew for each: the number of channels may affect the settings after it.
    const auto now = host.settings(wanted.name);
    const SettingGroup different = difference(group, now.value_or(std::vector<SettingGroup>{}));
    if (different.values.empty()) continue;
    const Status status = set(host, wanted.name, different);
    const auto then = host.settings(wanted.name).value_or(std::vector<SettingGroup>{});
    for (const auto& [name, value] : difference(different, then).values) {
      const auto left = value_in(then, group.name, name);
      reverted.notes.push_back(
          {wanted.name,
           fmt::format("{} {} was {} and is {} now: {}", group.name, name,
                       text_of(group.name, name, value),
                       left ? text_of(group.name, name, *left) : "unavailable", reason(status)),
           "sudo " + settings_command(wanted.name, {group.name, {{name, value}}})});
    }
  }
}

}  // namespace ztcp::setup
