// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reading the machine in memory: the parts that set-up can change come from memory, all else of
// /sys and /proc from its tree, if any.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "config/machine/cpu_list.h"
#include "config/machine/readings.h"
#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"
#include "tools/ztcp_setup/host/place_file.h"

namespace ztcp::setup::test {
namespace {

bool is_kernels(const std::string& path) {
  return path.starts_with("/sys/") || path.starts_with("/proc/");
}

std::string with_dashes_below(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "/sys/class/net/eth1/mtu": "eth1" and "mtu".
std::optional<std::pair<std::string, std::string>> split_interface(const std::string& path) {
  const std::string_view start = kInterfaces;
  if (!path.starts_with(start) || path.size() == start.size()) return std::nullopt;
  const std::string rest = path.substr(start.size());
  const auto slash = rest.find('/');
  if (slash == std::string::npos) return std::pair(rest, std::string());
  return std::pair(rest.substr(0, slash), rest.substr(slash + 1));
}

void keep_unique(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

// Interfaces that come and go with their NIC exist in memory only.
bool FakeHost::is_of_a_nic(const std::string& interface) const {
  return state.links.contains(interface) ||
         std::any_of(state.nics.begin(), state.nics.end(), [&](const auto& one) {
           const std::string& name = one.second.pristine.name;
           return !name.empty() && (interface == name || interface.starts_with(name + "."));
         });
}

std::vector<std::string> FakeHost::interfaces_of(const Nic& nic) const {
  std::vector<std::string> names;
  for (const auto& [name, link] : state.links)
    if (link.permanent_mac == nic.pristine.permanent_mac && link.kind.empty())
      names.push_back(name);
  return names;
}

// Without an IOMMU vfio makes a group of its own.
std::string FakeHost::group_of(const Nic& nic) const {
  if (!nic.group.empty()) return nic.group;
  return nic.driver == kVfio ? noiommu_group(nic.pci) : "";
}

FileFacts FakeHost::facts(const std::string& path) {
  if (const auto found = state.nodes.find(path); found != state.nodes.end())
    return {found->second.kind, found->second.ownership, found->second.text.size(),
            modified.contains(path) ? modified.at(path) : 0};
  const FileFacts folder{FileKind::kFolder, {0755, 0, 0}};
  const FileFacts file{FileKind::kFile, {0644, 0, 0}};
  if (path.starts_with(kModules) && path.find('/', kModules.size()) == std::string::npos)
    for (const std::string& module : state.modules)
      if (path.substr(kModules.size()) == with_dashes_below(module)) return folder;
  if (path.starts_with(kDrivers))
    return state.modules.contains(path.substr(kDrivers.size())) ? folder : FileFacts{};
  if (const auto device = split_device(path); device && state.nics.contains(device->first)) {
    const std::string& name = device->second;
    if (name.empty()) return folder;
    if (link_target(path)) return {FileKind::kLink, {0777, 0, 0}};
    if (name == "net") return list(path).empty() ? FileFacts{} : folder;
    if (name == "driver_override") return file;
  }
  if (const auto interface = split_interface(path); interface && is_of_a_nic(interface->first))
    return state.links.contains(interface->first) ? folder : FileFacts{};
  if (state.values.contains(path)) return file;
  if (!tree_ || !is_kernels(path)) return {};
  const FileKind kind = tree_->kind(path);
  return {kind, {kind == FileKind::kFolder ? 0755U : 0644U, 0, 0}};
}

// The final target of links; empty: a cycle.
std::string FakeHost::behind_links(const std::string& path) {
  constexpr int kMostLinks = 8;
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    if (facts(at).kind != FileKind::kLink) return at;
    const std::string target = link_target(at).value_or("");
    at = target.starts_with('/') ? target : folder_of(at) + "/" + target;
  }
  return {};
}

FileFacts FakeHost::facts_behind(const std::string& path) { return facts(behind_links(path)); }

bool FakeHost::may_access(const std::string& path, int) {
  return facts_behind(path).kind != FileKind::kAbsent;
}

std::vector<std::uint32_t> FakeHost::allowed_cpus() {
  return config::parse_cpu_list(config::status_field(*this, "Cpus_allowed_list").value_or(""));
}

std::string FakeHost::mounts(bool with_numbers) const {
  std::string text;
  for (const auto& [folder, what] : state.mounts) {
    const auto words = words_of(what);
    text += with_numbers
                ? fmt::format("30 20 0:30 / {} rw - {} none {}\n", folder, words.at(0), words.at(1))
                : fmt::format("none {} {} {} 0 0\n", folder, words.at(0), words.at(1));
  }
  return text;
}

Result<std::string> FakeHost::read_value(const std::string& path) {
  if (path == "/proc/self/mountinfo" || path == "/proc/mounts")
    return (tree_ ? tree_->read(path).value_or("") : "") + mounts(path != "/proc/mounts");
  if (const auto found = state.values.find(path); found != state.values.end())
    return found->second + "\n";
  if (const auto device = split_device(path)) {
    const auto nic = state.nics.find(device->first);
    const std::string& name = device->second;
    if (nic != state.nics.end()) {
      const std::string& id = nic->second.id;
      if (name == "driver_override")
        return (nic->second.driver_override.empty() ? "(null)" : nic->second.driver_override) +
               "\n";
      if (name == "vendor") return "0x" + id.substr(0, 4) + "\n";
      if (name == "device") return "0x" + id.substr(5) + "\n";
      if (name == "class") return "0x020000\n";
    }
  }
  if (const auto interface = split_interface(path); interface && is_of_a_nic(interface->first)) {
    const auto link = state.links.find(interface->first);
    if (link == state.links.end()) return error(ENOENT, "open");
    if (interface->second == "address") return link->second.mac + "\n";
    if (interface->second == "mtu") return fmt::format("{}\n", link->second.mtu_bytes);
  }
  for (const auto& [pci, nic] : state.nics)
    if (nic.group.empty() && path == fmt::format("{}{}/name", kGroups, group_of(nic)))
      return "vfio-noiommu\n";
  if (const auto node = state.nodes.find(path); node != state.nodes.end()) {
    if (node->second.kind == FileKind::kFile) return node->second.text;
    if (node->second.kind == FileKind::kFolder) return error(EISDIR, "read");
    const std::string behind = behind_links(path);
    if (behind == path || behind.empty()) return error(ELOOP, "open");
    return read_value(behind);
  }
  if (tree_ && is_kernels(path))
    if (auto text = tree_->read(path)) return std::move(*text);
  return error(ENOENT, "open");
}

Result<std::string> FakeHost::read_file(const std::string& path) {
  const auto found = state.nodes.find(path);
  if (found == state.nodes.end()) return fail(Errc::kSystem, "open", ENOENT);
  if (found->second.kind != FileKind::kFile) return fail(Errc::kRefused, "open", ELOOP);
  return found->second.text;
}

std::optional<std::string> FakeHost::link_target(const std::string& path) {
  if (const auto device = split_device(path)) {
    const auto nic = state.nics.find(device->first);
    if (nic != state.nics.end() && device->second == "driver")
      return nic->second.driver.empty()
                 ? std::nullopt
                 : std::optional("../../../bus/pci/drivers/" + nic->second.driver);
    if (nic != state.nics.end() && device->second == "iommu_group") {
      const std::string group = group_of(nic->second);
      return group.empty() ? std::nullopt : std::optional("../../../kernel/iommu_groups/" + group);
    }
  }
  if (const auto interface = split_interface(path); interface && is_of_a_nic(interface->first)) {
    const auto link = state.links.find(interface->first);
    if (link == state.links.end()) return std::nullopt;
    if (interface->second == "master" && !link->second.master.empty())
      return "../" + link->second.master;
    if (interface->second == "device" && link->second.kind.empty())
      for (const auto& [pci, nic] : state.nics)
        if (nic.pristine.permanent_mac == link->second.permanent_mac) return "../../../" + pci;
    return std::nullopt;
  }
  const auto found = state.nodes.find(path);
  if (found != state.nodes.end() && found->second.kind == FileKind::kLink)
    return found->second.text;
  return tree_ && is_kernels(path) ? tree_->link_target(path) : std::nullopt;
}

std::vector<std::string> FakeHost::list(const std::string& folder) {
  std::vector<std::string> names;
  if (tree_ && is_kernels(folder + "/")) names = tree_->list(folder);
  if (const auto device = split_device(folder); device && state.nics.contains(device->first)) {
    const Nic& nic = state.nics.at(device->first);
    const std::string& rest = device->second;
    if (rest == "net") return interfaces_of(nic);
    if (rest == "iommu_group/devices")
      for (const auto& [pci, other] : state.nics)
        if (pci == nic.pci || (!other.group.empty() && other.group == nic.group))
          names.push_back(pci);
    if (rest == "iommu_group/devices" && group_of(nic).empty()) return {};
    // A NIC's network comes and goes, and its folder is not in the bus's listing.
    std::erase_if(names, [&](const std::string& name) {
      return name == "net" || name == "driver" || name.starts_with("virtio");
    });
    if (rest.empty() && !interfaces_of(nic).empty()) names.emplace_back("net");
  } else if (folder.starts_with(kDrivers)) {
    names.clear();
    for (const auto& [pci, nic] : state.nics)
      if (nic.driver == folder.substr(kDrivers.size())) names.push_back(pci);
  } else if (folder + "/" == kInterfaces) {
    std::erase_if(names, [&](const std::string& name) { return is_of_a_nic(name); });
    for (const auto& [name, link] : state.links) names.push_back(name);
  } else if (const auto interface = split_interface(folder);
             interface && is_of_a_nic(interface->first)) {
    const auto link = state.links.find(interface->first);
    if (interface->second != "queues" || link == state.links.end()) names.clear();
    if (interface->second.empty() && link != state.links.end())
      for (const auto& child : link->second.children) names.push_back("upper_" + child.name);
  } else if (folder.starts_with(kGroups) && folder.ends_with("/devices")) {
    for (const auto& [pci, nic] : state.nics)
      if (folder == fmt::format("{}{}/devices", kGroups, group_of(nic))) names.push_back(pci);
  }
  for (auto node = state.nodes.lower_bound(folder == "/" ? "/" : folder + "/");
       node != state.nodes.end() && node->first.starts_with(folder); ++node)
    if (node->first != "/" && folder_of(node->first) == folder)
      names.push_back(node->first.substr(node->first.rfind('/') + 1));
  keep_unique(names);
  return names;
}

}  // namespace ztcp::setup::test
