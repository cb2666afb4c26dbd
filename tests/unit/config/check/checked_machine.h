// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A machine that fits its config, for tests that break one thing at a time. Each fault names both
// values and its mend.
#pragma once

#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {

inline constexpr const char* kNicFolder = "sys/devices/pci0000:00/0000:00:05.0";
inline constexpr const char* kWellMachine =
    "node id=0 cpus=0-1 memory_mib=65536\n"
    "pages node=0 kib=2048 total=4096 free=3000\n"
    "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=vfio-pci group=7\n"
    "pci path=pci0000:00/0000:00:1e.0 id=10de:20b2 class=030200 numa=0 driver=nvidia\n"
    "file path=etc/machine-id text=0123456789abcdef0123456789abcdef\n"
    "file path=dev/vfio/vfio text=\n"
    "file path=dev/vfio/7 text=\n"
    "dir path=run\n"
    "file path=proc/self/cgroup text=0::/user.slice/job\n"
    "file path=sys/fs/cgroup/user.slice/job/hugetlb.2MB.max text=max\n"
    "file path=proc/self/limits text=Limit Soft Limit Hard Limit Units\\n"
    "Max locked memory         unlimited            unlimited            bytes\n"
    "file path=proc/self/status text=Name:\\tx\\nCapEff:\\t0000000000000000\n"
    "file path=proc/self/mountinfo text=22 1 259:1 / / rw - ext4 /dev/root rw\n";

struct CheckedMachine {
  test::Tree tree{kWellMachine};
  Fabric fabric;
  mutable LiveMachine live{tree.root()};
  GpuList gpus{"0000:00:1e.0"};

  CheckedMachine() {
    fabric.path = "/etc/ztcp.conf";
    fabric.run_dir = "/run";
    fabric.host = {"0123456789abcdef0123456789abcdef", "gpu-7", HostClass::kIommu, "", ""};
    fabric.hugepages = {2048, 5120, 0};
    Nic nic;
    nic.name = "ztcp0";
    nic.driver = NicDriver::kPci;
    nic.pci = "0000:00:05.0";
    nic.mac = *parse_mac("02:00:00:00:00:05");
    nic.address = *parse_ipv4_prefix("10.0.0.5/24");
    nic.mtu_bytes = 9001;
    nic.numa_node = 0;
    nic.speed_mbps = 100000;
    nic.gpu_pci = "0000:00:1e.0";
    fabric.nics.push_back(nic);
  }
  Nic& nic() { return fabric.nics.front(); }

  // Gives the NIC back to its kernel driver.
  void unbind(const std::string& mac, int mtu, int speed = -1) {
    tree.add(
        "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=ena group=7");
    tree.remove(std::string(kNicFolder) + "/driver");
    tree.add_link(std::string(kNicFolder) + "/driver", "../../../bus/pci/drivers/ena");
    tree.add("net path=pci0000:00/0000:00:05.0 name=ens5 mac=" + mac +
             " mtu=" + std::to_string(mtu) + " speed=" + std::to_string(speed));
  }

  std::vector<Check> of_severity(Severity severity) const {
    std::vector<Check> found;
    for (const Check& check : run_checks(fabric, live, gpus))
      if (check.severity == severity) found.push_back(check);
    return found;
  }
  // The only fault, which must be from this check.
  Problem fault(const std::string& name) const {
    const auto faults = of_severity(Severity::kFault);
    EXPECT_THAT(faults, testing::SizeIs(1)) << name;
    if (faults.size() != 1) return {};
    EXPECT_EQ(faults[0].name, name);
    EXPECT_FALSE(faults[0].problem.mend.empty());
    return faults[0].problem;
  }
};

// Root has all permissions, so root runs `ask` as another user.
template <class Ask>
auto as_nobody(Ask&& ask) {
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) throw std::runtime_error("seteuid");
  auto answer = ask();
  if (root && ::seteuid(0) != 0) throw std::runtime_error("seteuid");
  return answer;
}

// Adds a second NIC, with its own node and GPU; its node has no pages left.
inline void add_second_nic(CheckedMachine& machine) {
  machine.tree.add(
      "node id=1 cpus=2-3 memory_mib=65536\n"
      "pages node=1 kib=2048 total=4096 free=0\n"
      "pci path=pci0000:80/0000:80:05.0 id=1d0f:ec20 class=020000 numa=1 driver=vfio-pci group=8\n"
      "pci path=pci0000:80/0000:80:1e.0 id=10de:20b2 class=030200 numa=1 driver=nvidia\n"
      "file path=dev/vfio/8 text=\n");
  Nic nic = machine.nic();
  nic.name = "ztcp1";
  nic.pci = "0000:80:05.0";
  nic.mac = *parse_mac("02:00:00:00:00:06");
  nic.address = *parse_ipv4_prefix("10.0.0.6/24");
  nic.numa_node = 1;
  nic.gpu_pci = "0000:80:1e.0";
  machine.fabric.nics.push_back(nic);
}

// A machine with one software NIC only.
struct CheckedSoftware : CheckedMachine {
  explicit CheckedSoftware(NicDriver driver) {
    fabric.hugepages.page_kib = 0;
    nic().driver = driver;
    nic().pci.clear();
    nic().gpu_pci.clear();
    gpus.clear();
    tree.add_folder("sockets");
    nic().memif_socket = "/sockets/a.sock";
    nic().tap_interface = "tap0";
    tree.add(
        "file path=dev/net/tun text=\nfile path=sys/class/net/tap0/mtu text=9001\n"
        "file path=sys/class/net/tap0/tun_flags text=0x1002");
    ::chmod(tree.path("run").c_str(), 0777);
    ::chmod(tree.path("dev/net/tun").c_str(), 0666);
  }
};

}  // namespace ztcp::config
