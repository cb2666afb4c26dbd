// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The driver of a PCI function. A network interface that it has is taken down first, and its
// addresses, routes, MTU and VLANs are recorded; reverting restores the driver and all of these.
//
// In the kernel's order: driver_override names the driver that may have the function, then it is
// unbound and probed again. A successful write proves nothing: the driver link is checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct Driver {
  std::string pci;     // "0000:3b:00.0"
  std::string driver;  // "vfio-pci"

  struct Before {
    std::string id;  // "1af4:1041", to recognise the device.
    std::string driver;
    std::string driver_override;
    std::vector<InterfaceState> links;
    void fields(Fields& fields);
  };
  static constexpr const char* kKind = "driver";
  static constexpr bool kLostAtBoot = true;
  static constexpr bool kNeverHalf = true;  // A NIC must not be left without any driver.
  std::string id() const { return pci; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void tell(Others& others) const { others.taken.insert(pci); }
  // A NIC that the host has reconfigured since is recorded anew.
  bool replaces(const Before& before) const;
  std::optional<config::Problem> in_use(Host& host) const;
  void fields(Fields& fields);

 private:
  void check_group(Host& host, const Others& others, config::Problems& problems) const;
  // Whether the function is not the recorded NIC. PCI addresses move when cards are added.
  std::optional<config::Problem> another_device(Host& host, const Before& before) const;
  Reverted revert_driver(Host& host, const Before& before) const;
};

}  // namespace ztcp::setup::resource
