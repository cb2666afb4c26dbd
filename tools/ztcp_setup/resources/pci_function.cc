// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/pci_function.h"

namespace ztcp::setup::pci {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string folder_of(const std::string& address) { return "/sys/bus/pci/devices/" + address; }

bool is_there(Host& host, const std::string& address) {
  return host.facts(folder_of(address)).kind != FileKind::kAbsent;
}

std::string line_of(Host& host, const std::string& address, const char* file) {
  const std::string text = host.read_value(folder_of(address) + "/" + file).value_or("");
  return text.substr(0, text.find('\n'));
}

std::string driver_of(Host& host, const std::string& address) {
  return last_part(host.link_target(folder_of(address) + "/driver").value_or(""));
}

std::string override_of(Host& host, const std::string& address) {
  std::string name = line_of(host, address, "driver_override");
  return name == "(null)" ? "" : name;
}

std::string id_of(Host& host, const std::string& address) {
  const auto part = [&](const char* name) {
    std::string text = line_of(host, address, name);
    return text.starts_with("0x") ? text.substr(2) : text;
  };
  return part("vendor") + ":" + part("device");
}

std::string group_of(Host& host, const std::string& address) {
  return last_part(host.link_target(folder_of(address) + "/iommu_group").value_or(""));
}

std::vector<std::string> group_nodes(const std::string& group) {
  if (group.empty()) return {};
  return {"/dev/vfio/" + group, "/dev/vfio/noiommu-" + group};
}

std::vector<std::string> interfaces_of(Host& host, const std::string& address) {
  const std::string device = folder_of(address);
  std::vector<std::string> names = host.list(device + "/net");
  for (const std::string& child : host.list(device))
    if (child.starts_with("virtio") || child.starts_with("vmbus"))
      for (std::string& name : host.list(device + "/" + child + "/net"))
        names.push_back(std::move(name));
  return names;
}

}  // namespace ztcp::setup::pci
