// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/tree.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void wrong(std::string_view line) {
  throw std::runtime_error("tree: unreadable line: " + std::string(line));
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
  }
  return out;
}

// The "../../.." that leads from the folder of `relative` to the root.
std::string up_from(const std::string& relative) {
  const auto depth = std::count(relative.begin(), relative.end(), '/');
  std::string text;
  for (long i = 0; i < depth; ++i) text += i == 0 ? ".." : "/..";
  return text;
}

std::pair<unsigned, unsigned> range(const std::string& text, int base) {
  const auto dash = text.find('-');
  const auto first = static_cast<unsigned>(std::stoul(text, nullptr, base));
  if (dash == std::string::npos) return {first, first};
  return {first, static_cast<unsigned>(std::stoul(text.substr(dash + 1), nullptr, base))};
}

template <class Words>
const std::string& need(const Words& words, const char* name) {
  const auto it = words.find(name);
  if (it == words.end()) wrong(std::string("missing ") + name);
  return it->second;
}

}  // namespace

Tree::Tree() {
  // Thousands of small files: they go to memory where there is such a folder, as sysfs itself is.
  const fs::path memory = "/dev/shm";
  const fs::path base = ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  std::string pattern = (base / "ztcp-tree-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  root_ = pattern;
  // Tests that run as other users read it, too.
  fs::permissions(root_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                             fs::perms::others_read | fs::perms::others_exec);
}

Tree::Tree(std::string_view description) : Tree() { add(description); }

Tree::~Tree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

std::string Tree::read(const fs::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("tree: can't open " + file.string());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void Tree::add(std::string_view description) {
  while (!description.empty()) {
    const auto end = std::min(description.find('\n'), description.size());
    const auto line = description.substr(0, end);
    if (!line.empty() && line.front() != '#') add_line(line);
    description.remove_prefix(std::min(end + 1, description.size()));
  }
  if (!node_of_cpu_.empty()) publish_cpus();
}

void Tree::add_line(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string verb;
  in >> verb;
  Words words;
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) wrong(line);
    const std::string name = word.substr(0, equals);
    if (name == "text") {
      words[name] = line.substr(line.find("text=") + 5);
      break;
    }
    words[name] = word.substr(equals + 1);
  }
  if (verb == "node") return add_node(words);
  if (verb == "pages") return add_pages(words);
  if (verb == "bridge" || verb == "pci") return add_pci(words, verb == "bridge");
  if (verb == "net") return add_net(words);
  if (verb == "vlan") return add_vlan(words);
  if (verb == "address") return add_address(words);
  if (verb == "route") return add_route(words);
  if (verb == "file") return add_file(need(words, "path"), unescaped(need(words, "text")) + "\n");
  if (verb == "link") return add_link(need(words, "path"), need(words, "to"));
  if (verb == "dir") return add_folder(need(words, "path"));
  wrong(line);
}

void Tree::add_file(const std::string& relative, std::string_view text) {
  const fs::path file = path(relative);
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void Tree::add_link(const std::string& relative, const std::string& target) {
  const fs::path link = path(relative);
  fs::create_directories(link.parent_path());
  fs::remove(link);
  fs::create_symlink(target, link);
}

void Tree::add_folder(const std::string& relative) { fs::create_directories(path(relative)); }

void Tree::remove(const std::string& relative) { fs::remove_all(path(relative)); }

void Tree::add_node(const Words& words) {
  const std::string folder = "sys/devices/system/node/node" + need(words, "id");
  const auto node = static_cast<unsigned>(std::stoul(need(words, "id")));
  const auto [first, last] = range(need(words, "cpus"), 10);
  for (unsigned cpu = first; cpu <= last; ++cpu) node_of_cpu_[cpu] = node;
  const auto memory_kib = std::stoull(need(words, "memory_mib")) * 1024;
  add_file(folder + "/meminfo", fmt::format("Node {} MemTotal: {} kB\n", node, memory_kib));
  add_file(folder + "/cpulist", need(words, "cpus") + "\n");
}

void Tree::add_pages(const Words& words) {
  const std::string& node = need(words, "node");
  const std::string size = fmt::format("hugepages-{}kB", need(words, "kib"));
  const std::string folder =
      node == "-1" ? "sys/kernel/mm/hugepages/" + size
                   : fmt::format("sys/devices/system/node/node{}/hugepages/{}", node, size);
  add_file(folder + "/nr_hugepages", need(words, "total") + "\n");
  add_file(folder + "/free_hugepages", need(words, "free") + "\n");
  if (node != "-1") add_folder("sys/kernel/mm/hugepages/" + size);
}

void Tree::add_pci(const Words& words, bool bridge) {
  const std::string device = "sys/devices/" + need(words, "path");
  const std::string address = fs::path(device).filename();
  const std::string id = bridge ? "8086:352a" : need(words, "id");
  const std::string& node = need(words, "numa");
  add_file(device + "/vendor", "0x" + id.substr(0, 4) + "\n");
  add_file(device + "/device", "0x" + id.substr(5) + "\n");
  add_file(device + "/class",
           "0x" + (bridge ? std::string("060400") : need(words, "class")) + "\n");
  for (const char* name : {"subsystem_vendor", "subsystem_device", "revision"})
    add_file(device + "/" + name, "0x0000\n");
  add_file(device + "/numa_node", node + "\n");
  // Configuration space, header type 1: hwloc reads from it which buses lie behind a bridge.
  std::string config(256, '\0');
  if (bridge) {
    const auto [first, last] = range(need(words, "buses"), 16);
    config[0x0e] = 1;
    config[0x18] = static_cast<char>(std::stoul(address.substr(5, 2), nullptr, 16));
    config[0x19] = static_cast<char>(first);
    config[0x1a] = static_cast<char>(last);
  }
  add_file(device + "/config", config);
  std::uint64_t cpus = 0;
  for (const auto& [cpu, cpu_node] : node_of_cpu_)
    if (node == "-1" || std::to_string(cpu_node) == node) cpus |= std::uint64_t{1} << cpu;
  add_file(device + "/local_cpus", fmt::format("{:x}\n", cpus));
  add_link("sys/bus/pci/devices/" + address, "../../../devices/" + words.find("path")->second);
  if (const auto it = words.find("driver"); it != words.end()) {
    add_folder("sys/bus/pci/drivers/" + it->second);
    add_link(device + "/driver", up_from(device) + "/sys/bus/pci/drivers/" + it->second);
  }
  if (const auto it = words.find("group"); it != words.end()) {
    const std::string devices = "sys/kernel/iommu_groups/" + it->second + "/devices/";
    add_link(devices + address, up_from(devices + address) + "/" + device);
    add_link(device + "/iommu_group", up_from(device) + "/sys/kernel/iommu_groups/" + it->second);
  }
}

void Tree::add_net(const Words& words) {
  const std::string& name = need(words, "name");
  const std::string interface = "sys/devices/" + need(words, "path") + "/net/" + name;
  add_file(interface + "/address", need(words, "mac") + "\n");
  add_file(interface + "/mtu", need(words, "mtu") + "\n");
  add_file(interface + "/speed", need(words, "speed") + "\n");
  add_file(interface + "/operstate", "up\n");
  add_link(interface + "/device", "../../../" + fs::path(need(words, "path")).filename().string());
  add_link("sys/class/net/" + name, "../../devices/" + need(words, "path") + "/net/" + name);
  interface_named(name).mtu_bytes = static_cast<std::uint32_t>(std::stoul(need(words, "mtu")));
}

config::Interface& Tree::interface_named(const std::string& name) {
  for (config::Interface& known : network_.interfaces)
    if (known.name == name) return known;
  config::Interface& added = network_.interfaces.emplace_back();
  added.index = static_cast<std::uint32_t>(network_.interfaces.size()) + 1;  // 1 is lo.
  added.name = name;
  return added;
}

void Tree::add_vlan(const Words& words) {
  const std::string& on = need(words, "on");
  const std::string& name = need(words, "name");
  const std::uint32_t lower = interface_named(on).index;
  config::Interface& vlan = interface_named(name);
  vlan.kind = "vlan";
  vlan.vlan_id = static_cast<std::uint16_t>(std::stoul(need(words, "id")));
  vlan.lower = lower;
  vlan.mtu_bytes = static_cast<std::uint32_t>(std::stoul(need(words, "mtu")));
  add_folder("sys/devices/virtual/net/" + name);
  add_link("sys/class/net/" + name, "../../devices/virtual/net/" + name);
  add_link("sys/class/net/" + name + "/lower_" + on, "../" + on);
  add_link("sys/class/net/" + on + "/upper_" + name, "../" + name);
}

void Tree::add_address(const Words& words) {
  config::InterfaceAddress address;
  const auto prefix = parse_ip_prefix(need(words, "ip"));
  if (!prefix) throw std::runtime_error("tree: no address: " + need(words, "ip"));
  address.prefix = *prefix;
  if (const auto it = words.find("valid"); it != words.end())
    address.valid_s = static_cast<std::uint32_t>(std::stoul(it->second));
  address.is_advertised = words.contains("advertised");
  config::Interface& interface = interface_named(need(words, "if"));
  (prefix->address.is_v4() ? interface.ipv4 : interface.ipv6).push_back(address);
}

void Tree::add_route(const Words& words) {
  const auto number = [&](const char* name, std::uint32_t otherwise) {
    const auto it = words.find(name);
    return it == words.end() ? otherwise : static_cast<std::uint32_t>(std::stoul(it->second));
  };
  config::Route route;
  route.interface = interface_named(need(words, "if")).index;
  route.table = number("table", 254);
  route.metric = number("metric", 0);
  route.ipv6 = number("ipv6", 0) != 0;
  route.is_advertised = number("advertised", 0) != 0;
  if (const auto it = words.find("to"); it != words.end())
    route.destination = route.ipv6 ? Ipv4Prefix{{}, parse_ip_prefix(it->second).value().length}
                                   : parse_ipv4_prefix(it->second).value();
  if (const auto it = words.find("via"); it != words.end()) route.gateway = parse_ip(it->second);
  network_.routes.push_back(route);
}

// hwloc looks at devices only once it has found processors.
void Tree::publish_cpus() {
  std::map<unsigned, std::uint64_t> mask_of_node;
  for (const auto& [cpu, node] : node_of_cpu_) mask_of_node[node] |= std::uint64_t{1} << cpu;
  std::string cpuinfo;
  for (const auto& [cpu, node] : node_of_cpu_) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/topology", cpu);
    add_file(folder + "/core_id", fmt::format("{}\n", cpu));
    add_file(folder + "/physical_package_id", fmt::format("{}\n", node));
    add_file(folder + "/thread_siblings", fmt::format("{:x}\n", std::uint64_t{1} << cpu));
    add_file(folder + "/core_siblings", fmt::format("{:x}\n", mask_of_node[node]));
    cpuinfo += fmt::format("processor\t: {}\n\n", cpu);
  }
  for (const auto& [node, mask] : mask_of_node) {
    const std::string folder = fmt::format("sys/devices/system/node/node{}", node);
    add_file(folder + "/cpumap", fmt::format("{:x}\n", mask));
    std::string distances;
    for (const auto& [other, unused] : mask_of_node)
      distances += fmt::format("{} ", other == node ? 10 : 21);
    add_file(folder + "/distance", distances + "\n");
  }
  const std::string all = fmt::format("0-{}\n", node_of_cpu_.rbegin()->first);
  for (const char* name : {"online", "possible", "present"})
    add_file(std::string("sys/devices/system/cpu/") + name, all);
  add_file("sys/devices/system/node/online", fmt::format("0-{}\n", mask_of_node.rbegin()->first));
  add_file("proc/cpuinfo", cpuinfo);
}

}  // namespace ztcp::test
