// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Makes a machine in memory from a tree, with its network as rtnetlink would report it.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "config/machine/port_set.h"
#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"
#include "tools/ztcp_setup/host/hex.h"

namespace ztcp::setup::test {
namespace {

// IFLA_VLAN_ID, the start of the kernel's description of a VLAN.
constexpr std::string_view kVlanId = "06000100";

std::string vlan_info(std::uint16_t id) {
  const std::string bytes{static_cast<char>(id & 0xff), static_cast<char>(id >> 8)};
  return std::string(kVlanId) + to_hex(bytes) + "0000";
}

std::uint16_t vlan_id(const std::string& info) {
  if (!info.starts_with(kVlanId)) return 0;
  const std::string bytes = from_hex(info.substr(kVlanId.size(), 4));
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes.at(0)) |
                                    static_cast<unsigned char>(bytes.at(1)) << 8);
}

std::vector<NetworkItem> addresses_of(const config::Interface& interface) {
  std::vector<NetworkItem> items;
  std::vector<config::InterfaceAddress> addresses = interface.ipv4;
  addresses.insert(addresses.end(), interface.ipv6.begin(), interface.ipv6.end());
  for (const config::InterfaceAddress& address : addresses) {
    NetworkItem item{
        fmt::format("ip address add {} dev {}", to_string(address.prefix), interface.name), "00",
        0};
    if (address.valid_s != config::InterfaceAddress::kForever) {
      item.command += fmt::format(" valid_lft {}", address.valid_s);
      item.expires_unix_s = 1'764'000'000 + address.valid_s;
    }
    if (address.is_advertised) item.command += " mngtmpaddr";
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<NetworkItem> routes_of(const config::Network& network,
                                   const config::Interface& interface) {
  std::vector<NetworkItem> items;
  for (const config::Route& route : network.routes) {
    if (route.interface != interface.index) continue;
    std::string command = route.ipv6 ? "ip -6 route add" : "ip route add";
    command += " " + (route.destination.length == 0 ? "default" : to_string(route.destination));
    if (route.gateway) command += " via " + to_string(*route.gateway);
    if (route.is_advertised) command += " proto ra";
    items.push_back({fmt::format("{} dev {} table {} metric {}", command, interface.name,
                                 route.table, route.metric),
                     "00", 0});
  }
  return items;
}

// The word after `name`.
std::string word_after(const std::vector<std::string>& words, const char* name) {
  const auto found = std::find(words.begin(), words.end(), name);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

std::uint32_t number_after(const std::vector<std::string>& words, const char* name,
                           std::uint32_t otherwise) {
  const std::string word = word_after(words, name);
  std::from_chars(word.data(), word.data() + word.size(), otherwise);
  return otherwise;
}

std::optional<config::InterfaceAddress> address_in(const NetworkItem& item) {
  const auto words = words_of(item.command);
  config::InterfaceAddress address;
  const auto prefix = parse_ip_prefix(word_after(words, "add"));
  if (!prefix) return std::nullopt;
  address.prefix = *prefix;
  address.valid_s = number_after(words, "valid_lft", config::InterfaceAddress::kForever);
  address.is_advertised = words.back() == "mngtmpaddr";
  return address;
}

config::Route route_in(const NetworkItem& item, std::uint32_t interface) {
  const auto words = words_of(item.command);
  config::Route route;
  route.ipv6 = words.at(1) == "-6";
  if (const auto to = parse_ipv4_prefix(word_after(words, "add"))) route.destination = *to;
  route.gateway = parse_ip(word_after(words, "via"));
  route.is_advertised = word_after(words, "proto") == "ra";
  route.interface = interface;
  route.table = number_after(words, "table", 254);
  route.metric = number_after(words, "metric", 0);
  return route;
}

}  // namespace

FakeHost::FakeHost(std::string_view tree) : tree_(std::make_shared<FakeTree>(tree)) {
  for (const char* path : {"/", "/etc", "/var", "/var/lib", "/usr", "/usr/local", "/usr/local/sbin",
                           "/dev", "/dev/vfio", "/run"})
    add_folder(path);
  load_disk();
  for (const std::string& driver : tree_->list("/sys/bus/pci/drivers"))
    state.modules.insert(driver);
  for (const std::string& pci : tree_->nics()) load_nic(pci);
  for (const std::string& node : tree_->list("/sys/devices/system/node"))
    for (const std::string& size : tree_->list("/sys/devices/system/node/" + node + "/hugepages"))
      for (const char* count : {"nr_hugepages", "free_hugepages"}) {
        const std::string path =
            fmt::format("/sys/devices/system/node/{}/hugepages/{}/{}", node, size, count);
        state.values[path] = tree_->line(path);
      }
  state.largest_pages = 1'000'000;
  state.values[config::kReservedPorts] = "";
  state.values["/proc/sys/vm/compact_memory"] = "0";
  state.values["grub.cfg"] = "";
  std::string line = tree_->line("/proc/cmdline");
  if (line.starts_with("BOOT_IMAGE=")) line = line.substr(line.find(' ') + 1);
  state.boot["/boot/vmlinuz-1"] = state.boot_of_new_kernels = line;
  programs = {"systemctl", "udevadm", "sync"};
  for (const char* folder : {"/usr/sbin", "/sbin", "/usr/bin"})
    for (const std::string& name : tree_->list(folder)) programs.insert(name);
}

void FakeHost::load_disk() {
  for (const std::string& path : tree_->paths_on_disk()) {
    const FileKind kind = tree_->kind(path);
    if (kind == FileKind::kFolder) add_folder(path);
    if (kind == FileKind::kFile) add_file(path, tree_->read(path).value_or(""));
    if (kind == FileKind::kLink)
      state.nodes[path] = {kind, {0777, 0, 0}, tree_->link_target(path).value_or("")};
  }
}

void FakeHost::load_nic(const std::string& pci) {
  const std::string device = std::string(kDevices) + pci;
  const auto id = [&](const char* name) { return tree_->line(device + "/" + name).substr(2); };
  Nic nic{pci, id("vendor") + ":" + id("device"), "", "", "", "", {}};
  nic.home_driver = nic.driver = tree_->link_name(device + "/driver");
  nic.group = tree_->link_name(device + "/iommu_group");
  const config::Network& network = tree_->network();
  const auto names = tree_->interfaces_of(pci);
  if (names.empty()) {
    state.nics[pci] = nic;
    return;
  }
  const auto load_link = [&](const std::string& name, InterfaceState& pristine) {
    const config::Interface& interface = *network.find(name);
    const std::string folder = std::string(kInterfaces) + interface.name;
    pristine.name = interface.name;
    pristine.mac = tree_->line(folder + "/address");
    // Identifies its function; see interfaces_of().
    pristine.permanent_mac = tree_->line(std::string(kInterfaces) + names.front() + "/address");
    pristine.mtu_bytes = interface.mtu_bytes;
    pristine.queue_length = 1000;
    auto link = pristine;
    link.up = true;
    link.master = tree_->link_name(folder + "/master");
    link.addresses = addresses_of(interface);
    link.routes = routes_of(network, interface);
    for (const config::Interface& upper : network.interfaces) {
      if (upper.lower != interface.index) continue;
      auto vlan = pristine;
      vlan.name = upper.name;
      vlan.kind = upper.kind;
      vlan.info = vlan_info(upper.vlan_id);
      vlan.mtu_bytes = upper.mtu_bytes;
      vlan.queue_length = 0;
      vlan.up = true;
      vlan.addresses = addresses_of(upper);
      vlan.routes = routes_of(network, upper);
      link.children.push_back(std::move(vlan));
    }
    return link;
  };
  InterfaceState first = load_link(names.front(), nic.pristine);
  add_nic(nic, std::move(first));
  // Further ports of one function, with a driver that never releases it.
  for (std::size_t i = 1; i < names.size(); ++i) {
    InterfaceState pristine;
    add_link(load_link(names[i], pristine));
  }
}

Result<config::Network, config::Problem> FakeHost::network() {
  if (network_fault) return tl::unexpected(*network_fault);
  config::Network network;
  const auto index_of = [&](const std::string& name) {
    const config::Interface* known = tree_ ? tree_->network().find(name) : nullptr;
    if (known != nullptr) return known->index;
    return 100 +
           static_cast<std::uint32_t>(std::distance(state.links.begin(), state.links.find(name)));
  };
  // Bonds, bridges and NICs that are not on PCI; set-up does not change them.
  if (tree_)
    for (const config::Interface& interface : tree_->network().interfaces) {
      if (is_of_a_nic(interface.name)) continue;
      network.interfaces.push_back(interface);
      for (const config::Route& route : tree_->network().routes)
        if (route.interface == interface.index) network.routes.push_back(route);
    }
  for (const auto& [name, link] : state.links) {
    config::Interface interface;
    interface.index = index_of(name);
    interface.name = name;
    interface.kind = link.kind;
    interface.vlan_id = vlan_id(link.info);
    interface.mtu_bytes = link.mtu_bytes;
    for (const auto& [lower, below] : state.links)
      for (const auto& child : below.children)
        if (child.name == name) interface.lower = index_of(lower);
    for (const NetworkItem& item : link.addresses)
      if (const auto address = address_in(item))
        (address->prefix.address.is_v4() ? interface.ipv4 : interface.ipv6).push_back(*address);
    for (const NetworkItem& item : link.routes)
      network.routes.push_back(route_in(item, interface.index));
    network.interfaces.push_back(std::move(interface));
  }
  std::sort(network.interfaces.begin(), network.interfaces.end(),
            [](const auto& one, const auto& other) { return one.index < other.index; });
  return network;
}

std::vector<LocalAddress> FakeHost::addresses() {
  std::vector<LocalAddress> found;
  const auto known = network();
  if (!known) return found;
  const auto add = [&](const config::Interface& interface, const IpPrefix& prefix, bool up) {
    const bool running = up && !without_carrier.contains(interface.name);
    found.push_back({interface.name, interface.index, prefix, up, running, false});
  };
  for (const config::Interface& interface : known->interfaces) {
    const InterfaceState* link = find_link(interface.name);
    if (link == nullptr)
      for (const auto& address : interface.ipv4) add(interface, address.prefix, true);
    else
      for (const NetworkItem& item : link->addresses)
        add(interface, parse_ip_prefix(word_after(words_of(item.command), "add")).value(),
            link->up);
  }
  return found;
}

}  // namespace ztcp::setup::test
