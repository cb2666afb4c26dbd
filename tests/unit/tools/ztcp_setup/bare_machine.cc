// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/bare_machine.h"

#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ztcp::setup::test {

NetworkItem item(const std::string& command) { return {"ip " + command, "00", 0}; }

FakeHost::Nic nic(const char* pci, const char* group, const char* name, const char* mac) {
  InterfaceState pristine;
  pristine.name = name;
  pristine.mac = pristine.permanent_mac = mac;
  pristine.mtu_bytes = 1500;
  pristine.queue_length = 1000;
  pristine.settings = {{"channels", {{"combined", 8}}},
                       {"ring", {{"rx", 256}, {"tx", 256}}},
                       {"features", {{"rx-gro-hw", 1}, {"tx-tcp-segmentation", 1}}},
                       {"pause", {{"autoneg", 1}, {"rx", 0}, {"tx", 0}}},
                       {"private-flags", {{"legacy-rx", 0}, {"lldp", 1}}}};
  return {pci, "1af4:1041", "virtio-pci", "virtio-pci", "", group, pristine};
}

namespace {

// A NIC configured by the host: with its own MTU, a VLAN, addresses and routes.
InterfaceState in_use(const FakeHost::Nic& nic, int network) {
  InterfaceState link = nic.pristine;
  link.mtu_bytes = 9000;
  link.alias = "rail\xff";  // Arbitrary bytes.
  link.up = true;
  link.settings = {{"channels", {{"combined", 8}}},
                   {"ring", {{"rx", 4096}, {"tx", 1024}}},
                   {"features", {{"rx-gro-hw", 0}, {"tx-tcp-segmentation", 1}}},
                   {"pause", {{"autoneg", 0}, {"rx", 1}, {"tx", 0}}},
                   {"private-flags", {{"legacy-rx", 1}, {"lldp", 1}}}};
  link.addresses = {item(fmt::format("address add 10.77.{}.5/24 dev {}", network, link.name))};
  link.neighbours = {item(fmt::format("neighbour add 10.77.{}.1 dev {}", network, link.name))};
  link.routes = {item(fmt::format("route add 10.77.{}.0/24 dev {}", network, link.name)),
                 item(fmt::format("route add 10.99.0.0/16 via 10.77.{}.1", network))};
  InterfaceState vlan;
  vlan.name = link.name + ".7";
  vlan.kind = "vlan";
  vlan.info = "0600010007000000";  // IFLA_VLAN_ID 7
  vlan.mac = link.mac;
  vlan.permanent_mac = link.permanent_mac;
  vlan.mtu_bytes = 1400;
  vlan.up = true;
  vlan.addresses = {item(fmt::format("address add 10.78.{}.5/24 dev {}", network, vlan.name))};
  vlan.routes = {item(fmt::format("route add 10.78.{}.0/24 dev {}", network, vlan.name))};
  link.children = {vlan};
  return link;
}

}  // namespace

FakeHost bare_machine() {
  FakeHost host;
  const FakeHost::Nic a = nic(kNicA, "12", "ens1f0", "52:54:00:00:00:01");
  const FakeHost::Nic b = nic(kNicB, "13", "ens2f0", "52:54:00:00:00:02");
  host.add_nic(a, in_use(a, 1));
  host.add_nic(b, in_use(b, 2));
  host.add_folder("/etc/security");
  host.add_folder("/etc/security/limits.d");
  host.add_file(kLimits, "# ours\xff\n", {0640, 0, 990});
  host.state.values["grub.cfg"] = "";
  return host;
}

Resources nic_resources(const char* pci) {
  return {{fmt::format("{}: virtio-pci -> vfio-pci", pci), resource::Driver{pci, "vfio-pci"}},
          {fmt::format("{}: for group ztcp", pci), resource::Access{pci, "", "ztcp", 0660}}};
}

Resources all_resources() {
  Resources resources{
      {"pages at boot", resource::File{kGrub, "iommu=pt hugepages=20\n", 0644, ""}},
      {"boot loader", resource::Notice{{"update-grub"}}},
      {"kernel arguments", resource::BootArguments{{"iommu=pt", "hugepages=20"}}},
      {"limits", resource::File{kLimits, "@ztcp - memlock unlimited\n", 0644, ""}},
      {"pages of node 0", resource::Value{kPages0, "20", true}},
      {"mount pages", resource::Mount{"/dev/hugepages1G", "hugetlbfs", "pagesize=1024M,mode=1770"}},
      {"load vfio-pci", resource::Module{"vfio-pci"}},
      {"run folder", resource::Folder{"/usr/local/tfabric/tools/run", 01777, "", "ztcp"}},
  };
  resources.push_back(
      {"file system for XDP programs", resource::Mount{"/run/ztcp-bpf", "bpf", "mode=755"}});
  resources.push_back({"ports", resource::ReservedPorts{"7471,61000-65535"}});
  resources.push_back(
      {"XDP program", resource::XdpProgram{"ens3f0", "10.0.0.5", 7471, 61000, 65535, "", "ztcp"}});
  for (const char* pci : {kNicA, kNicB})
    for (Resource& resource : nic_resources(pci)) resources.push_back(std::move(resource));
  resources.push_back({"config", resource::File{kConfig, "schema = 1\n", 0644, ""}});
  resources.push_back({"unit", resource::File{kUnitFile, "[Unit]\n", 0644, ""}});
  resources.push_back({"units, read again", resource::Notice{{"systemctl", "daemon-reload"}}});
  resources.push_back({"set-up at each boot", resource::Unit{"ztcp-setup.service"}});
  return resources;
}

namespace {

// Every fault must have a mend.
Outcome mendable(Outcome outcome) {
  for (const config::Problem& fault : outcome.faults)
    EXPECT_FALSE(fault.mend.empty()) << to_string(fault);
  return outcome;
}

Outcome refused(config::Problem problem) {
  Outcome outcome;
  outcome.faults.push_back(std::move(problem));
  return outcome;
}

}  // namespace

Outcome set_up(FakeHost& host, const Resources& resources, Scope scope, const Progress& progress) {
  auto journal = Journal::open(host);
  return mendable(journal ? apply_all(host, *journal, resources, scope, progress)
                          : refused(journal.error()));
}

Outcome undo(FakeHost& host) {
  auto journal = Journal::open(host);
  return mendable(journal ? revert_all(host, *journal, {}) : refused(journal.error()));
}

std::string all_of(const config::Problems& problems) {
  std::string text;
  for (const config::Problem& problem : problems) text += to_string(problem) + "\n";
  return text;
}

void expect_same(const FakeHost::State& is, const FakeHost::State& wanted) {
  if (is == wanted) return;
  std::string text;
  for (const auto& [path, node] : is.nodes)
    if (!wanted.nodes.contains(path))
      text += "additional " + path + "\n";
    else if (!(wanted.nodes.at(path) == node))
      text += "different " + path + ": " + node.text + "\n";
  for (const auto& [path, node] : wanted.nodes)
    if (!is.nodes.contains(path)) text += "missing " + path + "\n";
  for (const auto& [path, value] : is.values)
    if (!wanted.values.contains(path) || wanted.values.at(path) != value)
      text += "value " + path + " = " + value + "\n";
  for (const auto& [name, link] : wanted.links)
    if (!is.links.contains(name) || !(is.links.at(name) == link)) text += "link " + name + "\n";
  if (is.nics != wanted.nics) text += "NICs\n";
  if (is.modules != wanted.modules) text += "modules\n";
  if (is.mounts != wanted.mounts) text += "mounts\n";
  if (is.boot != wanted.boot || is.boot_of_new_kernels != wanted.boot_of_new_kernels)
    text += "boot arguments\n";
  ADD_FAILURE() << "machines differ:\n" << text;
}

}  // namespace ztcp::setup::test
