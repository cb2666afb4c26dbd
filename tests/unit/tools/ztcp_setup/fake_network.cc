// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The interfaces of the machine in memory, which come and go with their driver.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"
#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/resources/interface_restore.h"

namespace ztcp::setup::test {
namespace {

constexpr const char* kUsualSysctl = "0";  // Value of each on a new interface.

}  // namespace

void FakeHost::add_link(InterfaceState link) {
  for (InterfaceState& child : link.children) {
    InterfaceState name;
    name.name = child.name;
    add_link(std::exchange(child, name));
  }
  place_sysctls(link);
  state.links[link.name] = std::move(link);
}

void FakeHost::place_sysctls(InterfaceState& link) {
  for (const auto& [path, value] : std::exchange(link.sysctls, {}))
    state.values[path] = trimmed(value);
}

InterfaceState* FakeHost::find_link(const std::string& name) {
  const auto found = state.links.find(name);
  return found == state.links.end() ? nullptr : &found->second;
}

// Its files below /proc/sys/net, in order.
std::vector<std::pair<std::string, std::string>> FakeHost::sysctls_of(
    const std::string& link) const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [path, value] : state.values)
    if (path.starts_with("/proc/sys/net/") && path.find("/" + link + "/") != std::string::npos)
      found.emplace_back(path, value);
  return found;
}

Result<std::optional<InterfaceState>> FakeHost::link(const std::string& name) {
  const InterfaceState* found = find_link(name);
  if (found == nullptr) return std::optional<InterfaceState>{};
  // Children are separate interfaces, which the kernel finds by their parent.
  InterfaceState whole = *found;
  whole.settings.clear();
  for (const auto& [path, value] : sysctls_of(name))
    if (value != kUsualSysctl) whole.sysctls.emplace_back(path, value + "\n");
  for (InterfaceState& child : whole.children) child = **link(child.name);
  return std::optional<InterfaceState>(std::move(whole));
}

Status FakeHost::set_up(const std::string& name, bool up) {
  return change(fmt::format("link {} {}", name, up ? "up" : "down"), [&]() -> Status {
    InterfaceState* found = find_link(name);
    if (found == nullptr) return error(ENODEV, "set up");
    found->up = up;
    if (!up) {
      found->routes.clear();
      for (InterfaceState& child : found->children) {
        find_link(child.name)->up = false;
        find_link(child.name)->routes.clear();
      }
    }
    return {};
  });
}
Status FakeHost::rename_link(const std::string& from, const std::string& to) {
  return change("name " + from + " " + to, [&]() -> Status {
    auto node = state.links.extract(from);
    if (node.empty()) return error(ENODEV, "rename");
    node.key() = to;
    node.mapped().name = to;
    state.links.insert(std::move(node));
    return {};
  });
}
Status FakeHost::set_link(const std::string& name, const InterfaceState& wanted) {
  return change("set " + name,
                fmt::format("{} {} {} {}", wanted.mac, wanted.mtu_bytes, wanted.queue_length,
                            to_hex(wanted.alias)),
                [&]() -> Status {
                  InterfaceState* found = find_link(name);
                  if (found == nullptr) return error(ENODEV, "set link");
                  found->mac = wanted.mac;
                  found->mtu_bytes = wanted.mtu_bytes;
                  found->queue_length = wanted.queue_length;
                  found->alias = wanted.alias;
                  return {};
                });
}
Status FakeHost::set_master(const std::string& name, const std::string& master) {
  return change("master " + name, master, [&]() -> Status {
    find_link(name)->master = master;
    return {};
  });
}
Status FakeHost::add_child(const std::string& parent, const InterfaceState& child) {
  return change("child " + child.name, fmt::format("of {} {} {}", parent, child.kind, child.info),
                [&]() -> Status {
                  InterfaceState bare;
                  bare.name = child.name;
                  bare.kind = child.kind;
                  bare.info = child.info;
                  bare.mac = child.mac;
                  bare.mtu_bytes = find_link(parent)->mtu_bytes;
                  bare.permanent_mac = find_link(parent)->permanent_mac;
                  state.links[child.name] = bare;
                  InterfaceState name_only;
                  name_only.name = child.name;
                  find_link(parent)->children.push_back(name_only);
                  return {};
                });
}
Status FakeHost::add_item(const std::string& name, const NetworkItem& item) {
  return change("add " + item.command, fmt::format("{} on {}", item.message, name),
                [&]() -> Status {
                  InterfaceState* found = find_link(name);
                  if (found == nullptr) return error(ENODEV, "add");
                  auto& items = item.command.starts_with("ip address")     ? found->addresses
                                : item.command.starts_with("ip neighbour") ? found->neighbours
                                                                           : found->routes;
                  if (item.command.starts_with("ip route") && !found->up)
                    return error(ENETDOWN, "add");
                  if (item.command.starts_with("ip route") && flushes > 0) {
                    --flushes;
                    found->addresses.clear();
                    return error(EINVAL, "add");  // Its source address does not exist.
                  }
                  if (std::find(items.begin(), items.end(), item) == items.end())
                    items.push_back(item);
                  return {};
                });
}

Result<std::vector<SettingGroup>> FakeHost::settings(const std::string& name) {
  const InterfaceState* found = find_link(name);
  if (found == nullptr) return fail(Errc::kSystem, "ethtool", ENODEV);
  return found->settings;
}
std::optional<std::uint32_t> FakeHost::most_queues(const std::string& name) {
  const auto found = offered_queues.find(name);
  return found == offered_queues.end() ? std::nullopt : std::optional(found->second);
}
Status FakeHost::set_settings(const std::string& name, const SettingGroup& wanted) {
  return change(settings_command(name, wanted), [&]() -> Status {
    InterfaceState* found = find_link(name);
    if (found == nullptr) return error(ENODEV, "ethtool");
    for (SettingGroup& group : found->settings) {
      if (group.name != wanted.name) continue;
      for (auto& [one, value] : group.values)
        for (const auto& [other, new_value] : wanted.values)
          if (one == other && !stuck_settings.contains(group.name + " " + one)) value = new_value;
      return {};
    }
    return error(EOPNOTSUPP, "ethtool");
  });
}

}  // namespace ztcp::setup::test
