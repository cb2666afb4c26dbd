// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host with a good interface that ztcp's own TCP shares with the kernel; each test breaks one
// thing.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config::test {

using ztcp::test::Tree;

struct PastKernelHost {
  Tree tree;
  LiveMachine machine{tree.root()};
  Fabric fabric;
  XdpFactsByInterface xdp;
  AddressList addresses{{.interface = "eth1",
                         .index = 3,
                         .prefix = *parse_ip_prefix("10.0.0.5/24"),
                         .is_up = true,
                         .is_running = true}};

  // `more`: further lines of the tree.
  explicit PastKernelHost(NicDriver driver, const std::string& more = {})
      : tree(
            "dir path=run\n"
            "file path=sys/class/net/eth1/mtu text=9000\n"
            "file path=sys/class/net/eth1/uevent text=INTERFACE=eth1\n"
            "file path=proc/self/status text=Name:\\tx\\nCapEff:\\t000001ffffffffff\n"
            "file path=proc/sys/net/ipv4/ip_local_port_range text=32768\\t60999\n"
            "file path=proc/sys/net/ipv4/ip_local_reserved_ports text=\n" +
            more) {
    fabric.path = "/etc/ztcp.conf";
    fabric.run_dir = "/run";
    Nic nic;
    nic.name = "ztcp0";
    nic.driver = driver;
    nic.interface = "eth1";
    nic.address = *parse_ip_prefix("10.0.0.5/24");
    nic.mtu_bytes = 9000;
    nic.first_port = 61000;
    nic.last_port = 65535;
    fabric.nics.push_back(nic);
  }
  Nic& nic() { return fabric.nics.front(); }
  void sysctl(const std::string& name, const std::string& value) {
    tree.add_file("proc/sys/net/ipv4/" + name, value + "\n");
  }
  Check said(const std::string& name) {
    for (const Check& check : run_checks(fabric, machine, {}, {}, addresses, xdp))
      if (check.name == name) return check;
    return {};
  }
  Problem problem(const std::string& name, Severity severity) {
    const Check check = said(name);
    EXPECT_EQ(check.name, name);
    EXPECT_EQ(check.severity, severity) << check.problem.what;
    return check.problem;
  }
};

}  // namespace ztcp::config::test
