// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/fake_host.h"

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "config/machine/port_set.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"
#include "tools/ztcp_setup/host/place_file.h"

namespace ztcp::setup::test {
namespace {

std::string text_of(const Ownership& who) {
  return fmt::format("{:04o} {}:{}", who.mode, who.user, who.group);
}

constexpr const char* kPortsOfOthers = "8080,65000";

std::string name_of(std::uint32_t id, const std::map<std::string, std::uint32_t>& accounts) {
  for (const auto& [name, number] : accounts)
    if (number == id) return name;
  return id == 0 ? "root" : std::to_string(id);
}

}  // namespace

FakeHost::FakeHost() {
  for (const char* path :
       {"/", "/etc", "/var", "/var/lib", "/usr", "/usr/local", "/dev", "/dev/vfio"})
    add_folder(path);
  for (const char* node : {"node0", "node1"})
    state.values[fmt::format("/sys/devices/system/node/{}/hugepages/hugepages-2048kB/nr_hugepages",
                             node)] = "0";
  state.values["/proc/sys/vm/compact_memory"] = "0";
  state.values[config::kReservedPorts] = kPortsOfOthers;
  state.boot["/boot/vmlinuz-1"] = state.boot_of_new_kernels = "ro quiet";
}

void FakeHost::add_folder(const std::string& path, Ownership ownership) {
  state.nodes[path] = {FileKind::kFolder, ownership, ""};
}

void FakeHost::add_file(const std::string& path, const std::string& text, Ownership ownership) {
  state.nodes[path] = {FileKind::kFile, ownership, text};
}

void FakeHost::add_nic(const Nic& nic, InterfaceState link) {
  state.nics[nic.pci] = nic;
  state.modules.insert(nic.home_driver);
  if (!nic.driver.empty()) add_link(std::move(link));
}

// The pages on the kernel's command line; node 0 has them all.
std::string FakeHost::pages_at_boot() const {
  constexpr std::string_view kArgument = "hugepages=";
  std::stringstream line(boot_line());
  for (std::string word; line >> word;)
    if (word.starts_with(kArgument)) return word.substr(kArgument.size());
  return "0";
}

// The boot loader's additions to the command line: a drop-in file's, or appended ones.
std::string FakeHost::boot_line() const {
  std::string line = state.boot.begin()->second;
  const auto menu = state.values.find("grub.cfg");
  if (menu == state.values.end()) return line;
  constexpr std::string_view kAppends = "$GRUB_CMDLINE_LINUX_DEFAULT ";
  const auto at = menu->second.find(kAppends);
  if (at == std::string::npos) return line + " " + menu->second;
  const std::string added = menu->second.substr(at + kAppends.size());
  return line + " " + added.substr(0, added.find('"'));
}

void FakeHost::boot() {
  state.modules.clear();
  state.mounts.clear();
  state.xdp.clear();
  state.links.clear();
  for (auto& [path, value] : state.values)
    if (path.ends_with("nr_hugepages"))
      value = path.find("/node0/") != std::string::npos ? pages_at_boot() : "0";
  if (const auto ports = state.values.find(config::kReservedPorts); ports != state.values.end())
    ports->second = tree_ ? "" : kPortsOfOthers;  // By sysctl.conf.
  state.values.erase(kNoIommu);
  if (tree_) state.values["/proc/cmdline"] = "BOOT_IMAGE=/vmlinuz " + boot_line();
  std::erase_if(state.nodes, [](const auto& node) {
    return (node.first.starts_with("/dev/") && node.first != "/dev/vfio") ||
           node.first.starts_with("/run/ztcp-bpf");
  });
  for (auto& [pci, nic] : state.nics) {
    nic.driver_override.clear();
    nic.driver.clear();
    state.modules.insert(nic.home_driver);
    bind(nic, nic.home_driver);
  }
}

void FakeHost::kill_at(std::uint64_t n, When when) {
  kill_at_ = n == 0 ? 0 : changes + n;
  kill_when_ = when;
}

Status FakeHost::change(const std::string& what, const Effect& effect) {
  return change(what, "", effect);
}
Status FakeHost::change(const std::string& what, const std::string& details, const Effect& effect) {
  ++changes;
  if (changes == kill_at_ && kill_when_ == When::kBefore) throw Killed{};
  log.push_back(what);
  told.push_back(details.empty() ? what : what + " " + details);
  const auto found = errors.find(what);
  int number = found == errors.end() ? 0 : found->second;
  if (what == one_error.what && one_error.nth > 0 && --one_error.nth == 0)
    number = one_error.number;
  Status status = number == 0 ? effect() : error(number, "injected");
  if (changes == kill_at_) throw Killed{};
  return status;
}

bool FakeHost::is_folder(const std::string& path) const {
  const auto found = state.nodes.find(path);
  return found != state.nodes.end() && found->second.kind == FileKind::kFolder;
}

std::optional<std::uint32_t> FakeHost::user_id(const std::string& name) {
  const auto found = users.find(name);
  if (found == users.end()) return std::nullopt;
  return found->second;
}
std::optional<std::uint32_t> FakeHost::group_id(const std::string& name) {
  const auto found = groups.find(name);
  if (found == groups.end()) return std::nullopt;
  return found->second;
}
std::string FakeHost::user_name(std::uint32_t id) { return name_of(id, users); }
std::string FakeHost::group_name(std::uint32_t id) { return name_of(id, groups); }
std::set<std::string> FakeHost::groups_of(const std::string&) { return {}; }
bool FakeHost::has_program(const std::string& name) { return programs.contains(name); }
std::optional<Holder> FakeHost::holder_of(const std::string& node) {
  const auto found = holders.find(node);
  if (found == holders.end()) return std::nullopt;
  return found->second;
}

Status FakeHost::create(const std::string& path, const std::string& text, Ownership ownership) {
  return change("create " + path, fmt::format("{} {} bytes", text_of(ownership), text.size()),
                [&]() -> Status {
                  if (state.nodes.contains(path)) return error(EEXIST, "open");
                  if (!is_folder(folder_of(path))) return error(ENOENT, "open");
                  const bool half = changes == kill_at_ && kill_when_ == When::kHalfWay;
                  state.nodes[path] = {FileKind::kFile, half ? Ownership{0600, 0, 0} : ownership,
                                       half ? text.substr(0, text.size() / 2) : text};
                  return {};
                });
}
Status FakeHost::rename(const std::string& from, const std::string& to) {
  return change("rename " + from + " " + to, [&]() -> Status {
    auto node = state.nodes.extract(from);
    if (node.empty()) return error(ENOENT, "rename");
    state.nodes[to] = std::move(node.mapped());
    return {};
  });
}
Status FakeHost::remove(const std::string& path) {
  return change("remove " + path, [&]() -> Status {
    return state.nodes.erase(path) == 0 ? error(ENOENT, "unlink") : Status{};
  });
}
Status FakeHost::make_folder(const std::string& path, Ownership ownership) {
  return change("mkdir " + path, text_of(ownership), [&]() -> Status {
    if (state.nodes.contains(path)) return error(EEXIST, "mkdir");
    if (!is_folder(folder_of(path))) return error(ENOENT, "mkdir");
    add_folder(path, ownership);
    return {};
  });
}
Status FakeHost::remove_folder(const std::string& path) {
  return change("rmdir " + path, [&]() -> Status {
    if (!list(path).empty()) return error(ENOTEMPTY, "rmdir");
    return state.nodes.erase(path) == 0 ? error(ENOENT, "rmdir") : Status{};
  });
}
Status FakeHost::remove_locks(const std::string& folder) {
  return change("unlock " + folder, [&]() -> Status {
    std::erase_if(state.nodes, [&](const auto& node) {
      return folder_of(node.first) == folder && node.first.ends_with(".lock");
    });
    return {};
  });
}
Status FakeHost::set_ownership(const std::string& path, Ownership ownership) {
  return change("chown " + path, text_of(ownership), [&]() -> Status {
    const auto found = state.nodes.find(path);
    if (found == state.nodes.end()) return error(ENOENT, "chown");
    found->second.ownership = ownership;
    return {};
  });
}

void FakeHost::pause(std::chrono::milliseconds) {}

}  // namespace ztcp::setup::test
