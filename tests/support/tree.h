// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A folder with /sys, /proc, /dev and /etc of a machine that is not there, built from a short
// description (tests/data/trees/*.tree, or lines in a test) and removed with the object.
//
//   node id=0 cpus=0-3 memory_mib=1024
//   pages node=0 kib=2048 total=512 free=512           (node=-1: only the sum of the machine)
//   bridge path=pci0000:16/0000:16:00.0 numa=0 buses=17-18
//   pci path=pci0000:16/0000:16:00.0/0000:17:00.0 id=10de:2330 class=030200 numa=0
//       [driver=nvidia] [group=5] [link_gts=32.0 link_width=16]           (all on one line)
//   net path=PATH/0000:18:00.0 name=eth1 mac=02:00:00:00:00:01 mtu=9000 speed=100000
//   vlan on=eth1 name=eth1.100 id=100 mtu=8500
//   address if=eth1 ip=10.77.1.5/24 [valid=3600]       (seconds left of a lease)
//   route if=eth0 [to=10.0.0.0/8] [via=10.0.0.1] [table=254] [metric=100] [ipv6=1]
//     [advertised=1]
//   file path=proc/cmdline text=...          (the rest of the line; \n and \t are unescaped)
//   link path=sys/... to=../...
//   dir path=dev/vfio
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "config/network/network.h"

namespace ztcp::test {

class Tree {
 public:
  Tree();  // Empty.
  explicit Tree(std::string_view description);
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Reads a description from a file.
  static std::string read(const std::filesystem::path& file);

  const std::string& root() const { return root_; }
  // The answer of rtnetlink: the net, vlan, address and route lines.
  const config::Network& network() const { return network_; }
  std::string path(std::string_view relative) const { return root_ + "/" + std::string(relative); }

  void add(std::string_view description);
  void add_file(const std::string& relative, std::string_view text);
  void add_link(const std::string& relative, const std::string& target);
  void add_folder(const std::string& relative);
  void remove(const std::string& relative);

 private:
  using Words = std::map<std::string, std::string, std::less<>>;
  void add_line(std::string_view line);
  void add_node(const Words& words);
  void add_pages(const Words& words);
  void add_pci(const Words& words, bool bridge);
  void add_net(const Words& words);
  void add_vlan(const Words& words);
  void add_address(const Words& words);
  void add_route(const Words& words);
  config::Interface& interface_named(const std::string& name);
  void publish_cpus();

  std::string root_;
  std::map<unsigned, unsigned> node_of_cpu_;
  config::Network network_;
};

}  // namespace ztcp::test
