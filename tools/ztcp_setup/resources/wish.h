// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What set-up wants of the machine, one thing at a time: the seam between the plan, which decides,
// and the hands, which carry it out, journal it and take it back. A wish names the state that is
// wanted, never the way there; the state before is read when the wish is granted and goes into the
// journal first. A wish that holds already changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ztcp::setup::wish {

// The numbers of a user and a group when the wish was granted, as the journal remembers them:
// accounts of a directory are not known at boot, before the network.
struct Ids {
  std::optional<std::uint32_t> user;
  std::optional<std::uint32_t> group;
};

// A file that is ours as a whole. Folders that it needs and that are missing are made, and undone,
// with it. Undo: what was there before, or nothing.
struct File {
  std::string path;
  std::string text;
  std::uint32_t mode = 0644;
  std::string group;  // Empty: root.
  Ids ids = {};
};

// A folder. Undo removes it when it was not there before and holds nothing but lock files.
struct Folder {
  std::string path;
  std::uint32_t mode = 0755;
  std::string user;   // Empty: root.
  std::string group;  // Empty: root.
  Ids ids = {};
};

// One value of sysfs or procfs. `at_least`: a larger number fulfils the wish as well (pages that
// somebody else reserved). The kernel may grant less than asked: that is a fault, with both
// numbers.
struct Value {
  std::string path;
  std::string value;
  bool at_least = false;
};

// A kernel module, or driver, that is loaded.
struct Module {
  std::string name;
};

// A file system mounted at a folder (hugetlbfs), which is made if need be. Undo unmounts what was
// not mounted before.
struct Mount {
  std::string path;
  std::string type;     // "hugetlbfs"
  std::string options;  // "pagesize=1048576K,mode=1770"
};

// The driver that has a PCI function. A network interface it had before is taken down first, its
// addresses, routes, MTU and VLANs recorded; undo brings back the driver and all of these.
struct Driver {
  std::string pci;     // "0000:3b:00.0"
  std::string driver;  // "vfio-pci"
};

// Who may open the vfio group of a PCI function. Its node, /dev/vfio/12 or /dev/vfio/noiommu-3,
// exists once the driver is bound; without an IOMMU even its number is known only then.
struct Access {
  std::string pci;
  std::string user;   // Empty: root.
  std::string group;  // Empty: root.
  std::uint32_t mode = 0660;
  Ids ids = {};
};

// A systemd unit that is enabled. Undo disables what was not enabled before.
struct Unit {
  std::string name;  // "ztcp-setup.service"
};

// Arguments on the kernel command line of every installed kernel, where the boot loader takes no
// drop-in file: grubby adds and removes them. Undo removes what was not there before.
struct BootArguments {
  std::vector<std::string> arguments;  // "iommu=pt", "hugepagesz=1G", "hugepages=50"
};

// A program that makes others notice the wishes before it, back to the Notices before those
// ("update-grub", "systemctl daemon-reload"): run after them when one of them changed something,
// and again when they are taken back.
struct Notice {
  std::vector<std::string> argv;
};

}  // namespace ztcp::setup::wish

namespace ztcp::setup {

// Granted in order, taken back in reverse. The whole list, whether it holds already or not: what an
// earlier set-up was granted and is no longer wished is given back.
struct Wish {
  std::string why;  // One line for people: "0000:1b:00.0 (ztcp0): virtio-pci -> vfio-pci".
  std::variant<wish::File, wish::Folder, wish::Value, wish::Module, wish::Mount, wish::Driver,
               wish::Access, wish::Unit, wish::BootArguments, wish::Notice>
      what;
};
using Wishes = std::vector<Wish>;

}  // namespace ztcp::setup
