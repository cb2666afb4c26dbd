// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The NIC drivers of DPDK that ztcp links in where the distribution has them: the only list.
// transport/link/meson.build reads the first word of each row, set-up the kernel's drivers, the
// link the properties; a test compares docs/choose.md.
#pragma once

#include <array>
#include <string_view>

namespace ztcp {

struct DpdkDriver {
  std::string_view name;  // Of the library, and of ports whose driver has properties below.
  // The kernel's drivers from which set-up takes such a NIC; the second may be empty.
  std::string_view kernel_driver;
  std::string_view other_kernel_driver = "";
  // Reports the speed of a wire. All others may be faster than they report: software, which invents
  // a speed (vmxnet3 says 10 Gb/s), and functions of a NIC that reach each other inside it.
  bool reports_wire_speed = false;
  // Spreads received packets over its queues, but does not tell how.
  bool spreads_untold = false;
};

// clang-format off
inline constexpr std::array<DpdkDriver, 13> kDpdkDrivers = {{
    {.name = "net_virtio", .kernel_driver = "virtio-pci", .spreads_untold = true},
    {.name = "net_ena", .kernel_driver = "ena"},
    {.name = "net_gve", .kernel_driver = "gvnic", .other_kernel_driver = "gve", .spreads_untold = true},
    {.name = "net_iavf", .kernel_driver = "iavf"},
    {.name = "net_ice", .kernel_driver = "ice", .reports_wire_speed = true},
    {.name = "net_i40e", .kernel_driver = "i40e", .reports_wire_speed = true},
    {.name = "net_ixgbe", .kernel_driver = "ixgbe", .reports_wire_speed = true},
    {.name = "net_e1000", .kernel_driver = "e1000e", .other_kernel_driver = "igb"},
    {.name = "net_bnxt", .kernel_driver = "bnxt_en"},
    {.name = "net_vmxnet3", .kernel_driver = "vmxnet3"},
    {.name = "net_hns3", .kernel_driver = "hns3", .reports_wire_speed = true},
    {.name = "net_idpf", .kernel_driver = "idpf"},
    {.name = "net_ionic", .kernel_driver = "ionic"},
}};
// clang-format on

// Null: no such driver, memif's for example.
constexpr const DpdkDriver* find_dpdk_driver(std::string_view name) {
  for (const DpdkDriver& driver : kDpdkDrivers)
    if (driver.name == name) return &driver;
  return nullptr;
}

// Whether ztcp can drive a NIC that has this driver of the kernel.
constexpr bool is_replaceable(std::string_view kernel_driver) {
  for (const DpdkDriver& driver : kDpdkDrivers)
    if (driver.kernel_driver == kernel_driver ||
        (!kernel_driver.empty() && driver.other_kernel_driver == kernel_driver))
      return true;
  return false;
}

}  // namespace ztcp
