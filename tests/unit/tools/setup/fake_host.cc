// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/setup/fake_host.h"

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tests/unit/tools/setup/fake_paths.h"
#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/host/place_file.h"
#include "tools/ztcp_setup/resources/settings_restore.h"

namespace ztcp::setup::test {
namespace {

constexpr const char* kUsualSysctl = "0";  // What each of them is on a new interface.
constexpr const char* kNoIommu = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Status error(int number, const char* where) { return fail(Errc::kSystem, where, number); }

std::string text_of(const Ownership& who) {
  return fmt::format("{:04o} {}:{}", who.mode, who.user, who.group);
}

std::string node_of(const FakeHost::Nic& nic) {
  return "/dev/vfio/" + (nic.group.empty() ? "noiommu-" + noiommu_group(nic.pci) : nic.group);
}

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

// What the kernel's command line asks for; node 0 has them all.
std::string FakeHost::pages_at_boot() const {
  constexpr std::string_view kArgument = "hugepages=";
  std::stringstream line(boot_line());
  for (std::string word; line >> word;)
    if (word.starts_with(kArgument)) return word.substr(kArgument.size());
  return "0";
}

// What the boot loader adds to the line: all of a drop-in file, or what it appends.
std::string FakeHost::boot_line() const {
  std::string line = state.boot.begin()->second;
  const auto menu = state.values.find("grub.cfg");
  if (menu == state.values.end()) return line;
  constexpr std::string_view kAppends = "$GRUB_CMDLINE_LINUX ";
  const auto at = menu->second.find(kAppends);
  if (at == std::string::npos) return line + " " + menu->second;
  const std::string added = menu->second.substr(at + kAppends.size());
  return line + " " + added.substr(0, added.find('"'));
}

void FakeHost::boot() {
  state.modules.clear();
  state.mounts.clear();
  state.links.clear();
  for (auto& [path, value] : state.values)
    if (path.ends_with("nr_hugepages"))
      value = path.find("/node0/") != std::string::npos ? pages_at_boot() : "0";
  state.values.erase(kNoIommu);
  if (tree_) state.values["/proc/cmdline"] = "BOOT_IMAGE=/vmlinuz " + boot_line();
  std::erase_if(state.nodes, [](const auto& node) {
    return node.first.starts_with("/dev/") && node.first != "/dev/vfio";
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

template <class Effect>
Status FakeHost::change(const std::string& what, Effect&& effect) {
  return change(what, "", std::forward<Effect>(effect));
}
template <class Effect>
Status FakeHost::change(const std::string& what, const std::string& details, Effect&& effect) {
  ++changes;
  if (changes == kill_at_ && kill_when_ == When::kBefore) throw Killed{};
  log.push_back(what);
  told.push_back(details.empty() ? what : what + " " + details);
  const auto found = errors.find(what);
  Status status = found == errors.end() ? effect() : error(found->second, "injected");
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

void FakeHost::unbind(Nic& nic) {
  if (nic.driver == kVfio) state.nodes.erase(node_of(nic));
  std::erase_if(state.links, [&](const auto& link) {
    if (link.second.permanent_mac != nic.pristine.permanent_mac) return false;
    for (const auto& [path, value] : sysctls_of(link.first)) state.values.erase(path);
    return true;
  });
  nic.driver.clear();
}

void FakeHost::bind(Nic& nic, const std::string& driver) {
  nic.driver = driver;
  if (driver == kVfio) {
    state.nodes[node_of(nic)] = {FileKind::kOther, {0600, 0, 0}, ""};
    return;
  }
  InterfaceState link = nic.pristine;
  if (!renames_interfaces) link.name = fmt::format("eth{}", kernel_names_++);
  place_sysctls(link);
  state.links[link.name] = std::move(link);
}

Status FakeHost::write_pci(const std::string& pci, const std::string& name,
                           const std::string& value) {
  const auto found = state.nics.find(pci);
  if (found == state.nics.end()) return error(ENOENT, "open");
  Nic& nic = found->second;
  if (name == "driver_override") {
    nic.driver_override = trimmed(value);
  } else if (name == "unbind") {
    if (nic.driver.empty()) return error(ENODEV, "write");
    if (holders.contains(node_of(nic))) return fail(Errc::kTimedOut, "write");
    unbind(nic);
  } else if (nic.driver.empty()) {
    const std::string driver = nic.driver_override.empty() ? nic.home_driver : nic.driver_override;
    if (!state.modules.contains(driver)) return {};
    if (driver == kVfio && nic.group.empty() && state.values[kNoIommu] != "Y")
      return error(EINVAL, "write");
    if (driver == kVfio && bind_fails) return error(EINVAL, "write");
    bind(nic, driver);
  }
  return {};
}

Status FakeHost::write_value(const std::string& path, const std::string& value, Seconds) {
  return change("write " + path + " " + trimmed(value), [&]() -> Status {
    if (path == "/sys/bus/pci/drivers_probe") return write_pci(trimmed(value), "probe", "");
    if (path.starts_with(kDevices)) {
      const auto [pci, name] = *split_device(path);
      if (name == "driver/unbind" && state.nics[pci].driver.empty()) return error(ENOENT, "open");
      return write_pci(pci, name == "driver/unbind" ? "unbind" : name, value);
    }
    if (path.starts_with(kDrivers)) return write_pci(trimmed(value), "bind", "");
    if (path.ends_with("nr_hugepages")) return reserve_pages(path, std::stoull(value));
    const auto found = state.values.find(path);
    if (found == state.values.end()) return error(ENOENT, "open");
    found->second = trimmed(value);
    if (path == kNoIommu) found->second = value == "1" || value == "Y" ? "Y" : "N";
    if (path.ends_with("compact_memory")) found->second = "0";
    return {};
  });
}

// Of a node; the machine's sum follows.
Status FakeHost::reserve_pages(const std::string& path, std::uint64_t wanted) {
  const auto found = state.values.find(path);
  if (found == state.values.end()) return error(ENOENT, "open");
  const std::uint64_t before = std::stoull(found->second);
  const std::uint64_t now = std::min(wanted, state.largest_pages);
  found->second = std::to_string(now);
  const auto add = [&](const std::string& count) {
    if (const auto value = state.values.find(count); value != state.values.end())
      value->second = std::to_string(std::stoull(value->second) + now - before);
  };
  const std::string folder = folder_of(path);
  const std::string sum = "/sys/kernel/mm/hugepages/" + folder.substr(folder.rfind('/') + 1);
  add(folder + "/free_hugepages");
  if (folder != sum) {
    add(sum + "/nr_hugepages");
    add(sum + "/free_hugepages");
  }
  return {};
}

Status FakeHost::mount(const std::string& folder, const std::string& type,
                       const std::string& options) {
  return change("mount " + folder, type + " " + options, [&]() -> Status {
    if (!is_folder(folder)) return error(ENOENT, "mount");
    state.mounts[folder] = type + " rw," + options;
    return {};
  });
}
Status FakeHost::unmount(const std::string& folder) {
  return change("umount " + folder, [&]() -> Status {
    return state.mounts.erase(folder) == 0 ? error(EINVAL, "umount") : Status{};
  });
}

Result<ProgramResult> FakeHost::run(const std::vector<std::string>& argv, Seconds) {
  ProgramResult result;
  const auto argument = [&](std::string_view key) -> std::optional<std::vector<std::string>> {
    for (const std::string& one : argv)
      if (one.starts_with(key)) return words_of(one.substr(key.size()));
    return std::nullopt;
  };
  const std::string line = fmt::format("{}", fmt::join(argv, " "));
  if (argv.at(0) == "modprobe" && argv.at(1) == "--dry-run") return result;
  if (argv.at(0) == "systemctl" && argv.at(1) == "is-enabled") {
    const bool enabled = state.enabled.contains(argv.at(2));
    return ProgramResult{enabled ? 0 : 1, false, enabled ? "enabled\n" : "disabled\n"};
  }
  if (argv.at(0) == "grubby" && argv.at(1) == "--info=ALL") {
    for (const auto& [kernel, arguments] : state.boot)
      result.output += fmt::format("index=0\nkernel=\"{}\"\nargs=\"{}\"\n", kernel, arguments);
    return result;
  }
  const Status status = change("run " + line, [&]() -> Status {
    if (argv[0] == "modprobe" && argv[1] == "--remove") {
      state.modules.erase(argv[2]);
      if (argv[2] == kVfio) state.values.erase(kNoIommu);
    } else if (argv[0] == "modprobe") {
      state.modules.insert(argv[1]);
      if (argv[1] == kVfio) state.values[kNoIommu] = "N";
    } else if (argv[0] == "systemctl" && argv[1] == "enable") {
      state.enabled.insert(argv[2]);
    } else if (argv[0] == "systemctl" && argv[1] == "disable") {
      state.enabled.erase(argv[2]);
    } else if (argv[0] == "grubby") {
      const auto update = [&](std::string& arguments) {
        auto words = words_of(arguments);
        for (const std::string& word :
             argument("--remove-args=").value_or(std::vector<std::string>{}))
          std::erase(words, word);
        for (const std::string& word : argument("--args=").value_or(std::vector<std::string>{}))
          if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
        arguments = fmt::format("{}", fmt::join(words, " "));
      };
      const bool all = argv[1] == "--update-kernel=ALL";
      for (auto& [kernel, arguments] : state.boot)
        if (all || argv[1] == "--update-kernel=" + kernel) update(arguments);
      if (all) update(state.boot_of_new_kernels);
    } else if (argv[0] == "update-grub") {
      // What the boot loader will do is what the drop-in file said when it ran.
      const auto drop_in = state.nodes.find("/etc/default/grub.d/50-ztcp.cfg");
      state.values["grub.cfg"] = drop_in == state.nodes.end() ? "" : drop_in->second.text;
    } else if (!programs.contains(argv[0])) {
      result.exit_status = 127;
    }
    return {};
  });
  if (!status) result = {1, false, "injected\n"};
  return result;
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
  // Children are interfaces of their own, which the kernel finds by their parent.
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
                    return error(EINVAL, "add");  // Its source is nobody's.
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

void FakeHost::pause(std::chrono::milliseconds) {}

}  // namespace ztcp::setup::test
