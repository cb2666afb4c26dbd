// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel of the machine in memory: drivers, values, modules, mounts, and the programs that use
// them.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"
#include "tools/ztcp_setup/host/place_file.h"

namespace ztcp::setup::test {
namespace {

std::string node_of(const FakeHost::Nic& nic) {
  return "/dev/vfio/" + (nic.group.empty() ? "noiommu-" + noiommu_group(nic.pci) : nic.group);
}

std::string name_of_argument(const std::string& word) { return word.substr(0, word.find('=')); }

std::vector<std::string> of_name(const std::vector<std::string>& words, const std::string& name) {
  std::vector<std::string> found;
  std::copy_if(words.begin(), words.end(), std::back_inserter(found),
               [&](const std::string& word) { return name_of_argument(word) == name; });
  return found;
}

// Like grubby on RHEL 8 and later: an added argument replaces all words of its name. An existing
// equal argument keeps its place.
void add_arguments(std::vector<std::string>& words, const std::vector<std::string>& added) {
  std::set<std::string> replaced;
  for (const std::string& word : added)
    if (const std::string name = name_of_argument(word);
        of_name(words, name) != of_name(added, name))
      replaced.insert(name);
  if (replaced.contains("hugepages")) replaced.insert("hugepagesz");
  std::erase_if(words, [&](const auto& word) { return replaced.contains(name_of_argument(word)); });
  for (const std::string& word : added)
    if (replaced.contains(name_of_argument(word))) words.push_back(word);
}

}  // namespace

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

// Changes a node's pages; the machine's sum follows.
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

std::optional<XdpSteering> FakeHost::xdp_program(const std::string& folder) {
  const auto found = state.xdp.find(folder);
  return found == state.xdp.end() ? std::nullopt : std::optional(found->second);
}
std::string FakeHost::xdp_obstacle(const std::string& interface) {
  const auto found = xdp_obstacles.find(interface);
  return found == xdp_obstacles.end() ? std::string() : found->second;
}
Status FakeHost::attach_xdp(const std::string& folder, const XdpSteering& wanted) {
  return change("attach xdp " + folder, [&]() -> Status {
    if (!is_folder(folder)) return error(ENOENT, "bpf");
    for (const char* file : {"/link", "/sockets", "/program", "/steering"})
      state.nodes[folder + file] = {FileKind::kFile, {0600, 0, 0}, ""};
    state.xdp[folder] = wanted;
    return {};
  });
}
Status FakeHost::detach_xdp(const std::string& folder) {
  return change("detach xdp " + folder, [&]() -> Status {
    for (const char* file : {"/link", "/sockets", "/program", "/steering"})
      state.nodes.erase(folder + file);
    state.xdp.erase(folder);
    return {};
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
  if (argv.at(0) == "modprobe" && argv.at(1) == "--dry-run")
    return errors.contains("run " + line) ? ProgramResult{1, false, "not found\n"} : result;
  if (argv.at(0) == "systemctl" && argv.at(1) == "is-enabled") {
    if (errors.contains("run " + line)) return ProgramResult{128 + 9, true, ""};
    const bool enabled = state.enabled.contains(argv.at(2));
    return ProgramResult{enabled ? 0 : 1, false, enabled ? "enabled\n" : "disabled\n"};
  }
  if (argv.at(0) == "grubby" && argv.at(1) == "--info=ALL") {
    if (errors.contains("run " + line)) return ProgramResult{1, false, "injected\n"};
    for (const auto& [kernel, arguments] : state.boot)
      result.output += fmt::format("index=0\nkernel=\"{}\"\nargs=\"{}\"\n", kernel, arguments);
    return result;
  }
  if (const auto answer = answers.find(line); answer != answers.end()) {
    result.output = answer->second;
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
        add_arguments(words, argument("--args=").value_or(std::vector<std::string>{}));
        arguments = fmt::format("{}", fmt::join(words, " "));
      };
      const bool all = argv[1] == "--update-kernel=ALL";
      for (auto& [kernel, arguments] : state.boot)
        if (all || argv[1] == "--update-kernel=" + kernel) update(arguments);
      if (all) update(state.boot_of_new_kernels);
    } else if (argv[0] == "update-grub") {
      // The boot loader uses the drop-in file's content when the program ran.
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

}  // namespace ztcp::setup::test
