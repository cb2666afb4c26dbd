// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/pci_function.h"

namespace ztcp::setup::pci {

bool is_there(Host& host, const std::string& address) {
  return config::exists(host, config::pci_folder(address));
}

std::string line_of(Host& host, const std::string& address, const char* file) {
  return config::read_line(host, config::pci_folder(address) + "/" + file).value_or("");
}

std::string driver_of(Host& host, const std::string& address) {
  return config::link_name(host, config::pci_folder(address) + "/driver").value_or("");
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

std::vector<std::string> group_nodes(const std::string& group) {
  if (group.empty()) return {};
  return {"/dev/vfio/" + group, "/dev/vfio/noiommu-" + group};
}

}  // namespace ztcp::setup::pci
