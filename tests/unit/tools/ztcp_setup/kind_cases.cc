// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/kind_cases.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/machine/port_set.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"

namespace ztcp::setup::test {
namespace {

struct Seen {
  FakeHost& host;
  bool text;

  std::string operator()(const resource::File& file) const {
    const FakeHost::Node* node = node_at(file.path);
    if (!text) return owner_at(file.path);
    return node == nullptr ? "" : node->text;
  }
  std::string operator()(const resource::Folder& folder) const { return owner_at(folder.path); }
  std::string operator()(const resource::Value& value) const {
    const auto found = host.state.values.find(value.path);
    return found == host.state.values.end() ? "none" : found->second;
  }
  std::string operator()(const resource::Module& module) const {
    return host.state.modules.contains(module.name) ? "loaded" : "not loaded";
  }
  std::string operator()(const resource::Mount& mount) const {
    const auto found = host.state.mounts.find(mount.path);
    if (found == host.state.mounts.end()) return "not mounted";
    std::string what = found->second;
    return what.erase(what.find("rw,"), 3);
  }
  std::string operator()(const resource::Driver& driver) const {
    const std::string& name = host.state.nics.at(driver.pci).driver;
    return name.empty() ? "no driver" : name;
  }
  std::string operator()(const resource::Access& access) const {
    const FakeHost::Nic& nic = host.state.nics.at(access.pci);
    const std::string number = nic.group.empty() ? "noiommu-" + noiommu_group(nic.pci) : nic.group;
    return owner_at("/dev/vfio/" + number);
  }
  std::string operator()(const resource::Unit& unit) const {
    return host.state.enabled.contains(unit.name) ? "enabled" : "disabled";
  }
  std::string operator()(const resource::BootArguments& boot) const {
    for (const auto& [kernel, line] : host.state.boot) {
      const auto words = words_of(line);
      for (const std::string& argument : boot.arguments)
        if (std::find(words.begin(), words.end(), argument) == words.end()) return "without";
    }
    return fmt::format("{}", fmt::join(boot.arguments, " "));
  }
  std::string operator()(const resource::CommandLineFile& line) const {
    const FakeHost::Node* node = node_at(line.path);
    const std::string ours = fmt::format("{}", fmt::join(line.arguments, " "));
    return node != nullptr && node->text.find(ours) != std::string::npos ? ours : "without";
  }
  std::string operator()(const resource::XdpProgram& program) const {
    const std::string folder = "/run/ztcp-bpf/" + program.interface;
    const auto found = host.state.xdp.find(folder);
    if (found == host.state.xdp.end()) return "no program of ztcp's";
    const XdpSteering& has = found->second;
    const std::string more =
        has.processes == 1 ? "" : fmt::format("-{}", has.listen_port + has.processes - 1);
    return fmt::format("TCP to {} port {}{} and {}-{} past the kernel, for {}",
                       to_string(has.address), has.listen_port, more, has.first_port, has.last_port,
                       owner_at(folder + "/sockets"));
  }
  std::string operator()(const resource::ReservedPorts&) const {
    return host.state.values.at(config::kReservedPorts);
  }
  // Visible only in the resources it announces.
  std::string operator()(const resource::Notice&) const { return ""; }

 private:
  const FakeHost::Node* node_at(const std::string& path) const {
    const auto found = host.state.nodes.find(path);
    return found == host.state.nodes.end() ? nullptr : &found->second;
  }
  std::string owner_at(const std::string& path) const {
    const FakeHost::Node* node = node_at(path);
    if (node == nullptr) return "none";
    const Ownership& who = node->ownership;
    return fmt::format("{:04o} {}:{}", who.mode, host.user_name(who.user),
                       host.group_name(who.group));
  }
};

}  // namespace

std::string seen(FakeHost& host, const Resource& resource, bool text) {
  return std::visit(Seen{host, text}, resource.what);
}

std::vector<KindCase> kind_cases() {
  const std::string limits = "@ztcp - memlock unlimited\n";
  const Resource module{"load vfio-pci", resource::Module{"vfio-pci"}};
  const Resource driver{"a NIC", resource::Driver{kNicA, "vfio-pci"}};
  return {
      {{{"a file", resource::File{kLimits, limits, 0644, ""}}}, "# ours\xff\n", limits},
      {{{"its owner", resource::File{kLimits, "# ours\xff\n", 0644, ""}}},
       "0640 root:ztcp",
       "0644 root:root"},
      {{{"a folder", resource::Folder{"/usr/local/tfabric/tools/run", 01777, "", "ztcp"}}},
       "none",
       "1777 root:ztcp"},
      {{{"pages", resource::Value{kPages0, "20", true}}}, "0", "20"},
      {{module, {"a setting of it", resource::Value{kNoIommu, "Y"}}}, "none", "Y"},
      {{module}, "not loaded", "loaded"},
      {{{"a mount", resource::Mount{"/dev/pages", "hugetlbfs", "pagesize=1024M,mode=1770"}}},
       "not mounted",
       "hugetlbfs pagesize=1024M,mode=1770"},
      {{module, driver}, "virtio-pci", "vfio-pci"},
      {{module, driver, {"for a group", resource::Access{kNicA, "", "ztcp", 0660}}},
       "none",
       "0660 root:ztcp"},
      {{{"a unit", resource::Unit{"ztcp-setup.service"}}}, "disabled", "enabled"},
      {{{"for the next boot", resource::BootArguments{{"iommu=pt", "hugepages=20"}}}},
       "without",
       "iommu=pt hugepages=20"},
      {{{"for systemd-boot",
         resource::CommandLineFile{kCommandLine, {"iommu=pt", "hugepages=20"}}}},
       "without",
       "iommu=pt hugepages=20"},
      {{{"ports", resource::ReservedPorts{"7471,61000-65535"}}},
       "8080,65000",
       "7471,8080,61000-65535"},
      {{{"an XDP program",
         resource::XdpProgram{"eth1", "10.0.0.5", 7471, 61000, 65535, "", "ztcp"}}},
       "no program of ztcp's",
       "TCP to 10.0.0.5 port 7471 and 61000-65535 past the kernel, for 0660 root:ztcp"},
      {{{"at boot", resource::File{kGrub, "iommu=pt\n", 0644, ""}},
        {"boot loader", resource::Notice{{"update-grub"}}}},
       "",
       ""},
  };
}

}  // namespace ztcp::setup::test
