// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The driver that has a PCI function. A network interface it had before is taken down first, its
// addresses, routes, MTU and VLANs recorded; reverting brings back the driver and all of these.
//
// As the kernel wants it: driver_override names the driver that may have the function, then it is
// unbound and probed anew. Nothing here believes a write that succeeded; it looks at the driver
// link.
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
    std::string id;  // "1af4:1041": whether it is the same device still.
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
  // A NIC that got a new life in the network since is recorded anew.
  bool replaces(const Before& before) const;
  std::optional<config::Problem> in_use(Host& host) const;
  void fields(Fields& fields);

 private:
  void check_group(Host& host, const Others& others, config::Problems& problems) const;
  // Whether the function is another NIC than was recorded. PCI addresses move when cards are added.
  std::optional<config::Problem> another_device(Host& host, const Before& before) const;
  Reverted revert_driver(Host& host, const Before& before) const;
};

}  // namespace ztcp::setup::resource
