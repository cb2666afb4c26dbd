// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Access to the vfio group of a PCI function. Its node, /dev/vfio/12 or /dev/vfio/noiommu-3, exists
// once the driver is bound; without an IOMMU even its number is known only then.
#pragma once

#include <string>

#include "tools/ztcp_setup/resources/kind.h"
#include "tools/ztcp_setup/resources/owner.h"

namespace ztcp::setup::resource {

struct Access {
  std::string pci;
  std::string user;   // Empty: root.
  std::string group;  // Empty: root.
  std::uint32_t mode = 0660;
  Ids ids = {};

  struct Before {
    Ownership ownership;
    void fields(Fields& fields);
  };
  static constexpr const char* kKind = "access";
  static constexpr bool kLostAtBoot = true;
  std::string id() const { return pci; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void note_ids(Host& host) { ids.note(host, user, group); }
  void fields(Fields& fields);

 private:
  std::string node(Host& host) const;  // Empty: it does not exist yet.
};

}  // namespace ztcp::setup::resource
