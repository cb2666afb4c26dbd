// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host with a good RDMA device beside a GPU, for tests that break one thing each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {

inline constexpr const char* kSwitch = "pci0000:16/0000:16:00.0/0000:17:00.0";
inline constexpr const char* kNicBridge = "sys/bus/pci/devices/0000:18:02.0/config";
inline constexpr const char* kGpuBridge = "sys/bus/pci/devices/0000:18:00.0/config";

inline std::string device(const std::string& name, const std::string& interface,
                          const std::string& address, int mtu) {
  const std::string port = "file path=sys/class/infiniband/" + name + "/ports/1/";
  return "file path=sys/class/infiniband/" + name + "/node_type text=1: CA\\n\n" + port +
         "state text=4: ACTIVE\\n\n" + port + "rate text=100 Gb/sec (4X EDR)\\n\n" + port +
         "link_layer text=Ethernet\\n\n" + port +
         "gids/0 text=fe80:0000:0000:0000:0000:0000:0000:0001\\n\n" + port +
         "gid_attrs/types/0 text=RoCE v2\\n\n" + port + "gids/1 text=" + address + "\\n\n" + port +
         "gid_attrs/types/1 text=IB/RoCE v1\\n\n" + port + "gids/2 text=" + address + "\\n\n" +
         port + "gid_attrs/types/2 text=RoCE v2\\n\n" + port +
         "gid_attrs/ndevs/0 text=" + interface + "\\n\nfile path=sys/class/net/" + interface +
         "/mtu text=" + std::to_string(mtu) + "\\n\n";
}

inline std::string mapped(const std::string& last) {
  return "0000:0000:0000:0000:0000:ffff:0a00:" + last;
}

// A function's config space with ACS's control register, at the end of a chain of two.
inline std::string config_space(unsigned control) {
  std::string bytes(4096, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0x100, 0x15010001);  // Advanced error reporting, then 0x150.
  put(0x150, 0x0001000d);
  put(0x154, control << 16U);
  return bytes;
}

// A host with a good RDMA device; each test breaks one thing.
class CheckVerbs : public testing::Test {
 protected:
  CheckVerbs() {
    fabric_.path = "/etc/ztcp.conf";
    fabric_.run_dir = "/nowhere";  // No locks are needed.
    fabric_.nics.push_back(nic("ztcp0", "mlx5_0", "10.0.0.5/24"));
    addresses_.push_back(
        {.interface = "eth1", .index = 3, .prefix = fabric_.nics[0].address, .is_up = true});
    tree_.add_file("sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
    tree_.add_file("dev/infiniband/uverbs3", "");
    tree_.add_file("proc/self/limits",
                   "Max locked memory         unlimited            unlimited            bytes\n");
    tree_.add_file("proc/self/status", "CapEff:\t0000000000000000\n");
    allow(true);
    const std::string way(kSwitch);
    tree_.add(
        "bridge path=pci0000:16/0000:16:00.0 numa=0 buses=17-1e\nbridge path=" + way +
        " numa=0 buses=18-1e\nbridge path=" + way +
        "/0000:18:00.0 numa=0 buses=19-19\npci "
        "path=" +
        way +
        "/0000:18:00.0/0000:19:00.0 id=10de:2324 class=030200 numa=0 "
        "driver=nvidia\nbridge path=" +
        way + "/0000:18:02.0 numa=0 buses=1b-1b\npci path=" + way +
        "/0000:18:02.0/0000:1b:00.0 id=15b3:1021 class=020000 numa=0 "
        "driver=mlx5_core\nlink path=sys/class/infiniband/mlx5_0/device to=../../../devices/" +
        way + "/0000:18:02.0/0000:1b:00.0\n");
    tree_.add_file("sys/module/mlx5_ib/refcnt", "1\n");
    tree_.add_file(kNicBridge, config_space(0));
    tree_.add_file(kGpuBridge, config_space(0));
  }

  static Nic nic(const char* name, const char* device, const char* address) {
    Nic out;
    out.name = name;
    out.driver = NicDriver::kVerbs;
    out.device = device;
    out.address = *parse_ip_prefix(address);
    return out;
  }
  void allow(bool all) const {
    ASSERT_EQ(::chmod(tree_.path("dev/infiniband/uverbs3").c_str(), all ? 0666 : 0600), 0);
  }

  Check said(const std::string& name, const std::string& where = "") {
    Check found;
    for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_)) {
      EXPECT_NE(check.severity, Severity::kFault) << to_string(check.problem);
      if (check.name == name && (where.empty() || check.problem.where == where)) found = check;
    }
    EXPECT_EQ(found.name, name);
    return found;
  }
  // Expects a warning: the other NICs still work.
  Problem warning(const std::string& name, const std::string& where = "") {
    const Check check = said(name, where);
    EXPECT_EQ(check.severity, Severity::kWarning) << to_string(check.problem);
    EXPECT_FALSE(check.problem.mend.empty());
    return check.problem;
  }
  std::string good(const std::string& name) {
    const Check check = said(name);
    EXPECT_EQ(check.severity, Severity::kGood) << to_string(check.problem);
    return check.problem.what;
  }

  test::Tree tree_{device("mlx5_0", "eth1", mapped("0005"), 9000)};
  LiveMachine machine_{tree_.root()};
  Fabric fabric_;
  AddressList addresses_;
};

}  // namespace ztcp::config
