// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks a NIC on PCI.
#include <charconv>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/file/fields.h"
#include "config/machine/readings.h"

namespace ztcp::config {
namespace {

// linux/capability.h. The kernel requires the first to open a group without an IOMMU, and shows
// physical addresses, which such a NIC needs, only with the second.
constexpr unsigned kCapSysRawio = 17;
constexpr unsigned kCapSysAdmin = 21;
constexpr std::string_view kVfioDriver = "vfio-pci";

// Grants missing access and changes nothing else.
constexpr const char* kRunSetup = "sudo ztcp_setup";

std::string driver_of(const Checklist& list, const Nic& nic) {
  return link_name(list.machine, pci_folder(nic.pci) + "/driver").value_or("no driver");
}

void check_told_speed(Checklist& list, const Nic& nic, const std::string& interface,
                      const std::string& path) {
  const auto text = read_line(list.machine, path + "/speed");
  std::uint32_t mbps = 0;  // Stays 0 for -1: the driver does not know.
  if (text) std::from_chars(text->data(), text->data() + text->size(), mbps);
  if (mbps != 0 && nic.speed_mbps != 0 && mbps != nic.speed_mbps)
    list.warning(
        "speed", nic.name,
        fmt::format("speed_mbps = {} in the config, {} says {}", nic.speed_mbps, interface, mbps),
        fmt::format("write speed_mbps = {} into {}, unless it was stated on purpose", mbps,
                    list.fabric.path));
}

// Capabilities that vfio requires where no IOMMU confines the NIC.
void check_capabilities(Checklist& list, const Nic& nic) {
  std::vector<std::string> missing;
  if (!has_capability(list.machine, kCapSysRawio)) missing.emplace_back("CAP_SYS_RAWIO");
  if (!has_capability(list.machine, kCapSysAdmin)) missing.emplace_back("CAP_SYS_ADMIN");
  if (missing.empty()) return;
  list.fault(
      "vfio", nic.name,
      fmt::format("without an IOMMU, CAP_SYS_RAWIO and CAP_SYS_ADMIN are needed; missing: {}",
                  fmt::join(missing, ", ")),
      "run as root; a container with --user 0 --cap-add SYS_RAWIO --cap-add SYS_ADMIN");
}

}  // namespace

Next check_pci_device(Checklist& list, const Nic& nic) {
  const auto pci_class = read_line(list.machine, pci_folder(nic.pci) + "/class");
  if (!pci_class) {
    list.fault("pci", nic.name,
               fmt::format("the config has it at {}, where there is no device", nic.pci),
               kSetUpAnew);
    return Next::kStop;
  }
  if (!pci_class->starts_with("0x02")) {
    list.fault("pci", nic.name,
               fmt::format("the device at {} is no NIC: its class is {}, wanted 0x02....", nic.pci,
                           *pci_class),
               kSetUpAnew);
    return Next::kStop;
  }
  list.good("pci", nic.name, nic.pci);
  return Next::kGoOn;
}

Next check_known_speed(Checklist& list, const Nic& nic) {
  if (nic.speed_mbps != 0)
    list.good("speed", nic.name, fmt::format("{} Mb/s", nic.speed_mbps));
  else
    list.warning("speed", nic.name,
                 fmt::format("speed_mbps = 0 in the config, so NCCL is told {} Mb/s, a guess",
                             kGuessedSpeedMbps),
                 fmt::format("sudo ztcp_setup --speed MBPS, or write speed_mbps = ... into {}",
                             list.fabric.path));
  return Next::kGoOn;
}

Next check_driver(Checklist& list, const Nic& nic) {
  const std::string driver = driver_of(list, nic);
  if (driver == kVfioDriver)
    list.good("driver", nic.name, driver);
  else
    list.fault("driver", nic.name,
               fmt::format("{} is bound to {}, wanted {}", nic.pci, driver, kVfioDriver),
               kRunSetup);
  return Next::kGoOn;
}

Next check_vfio_group(Checklist& list, const Nic& nic) {
  if (driver_of(list, nic) != kVfioDriver) return Next::kGoOn;
  const auto group = link_name(list.machine, pci_folder(nic.pci) + "/iommu_group");
  const std::string vfio = "/dev/vfio/";
  const std::string with_iommu = vfio + group.value_or("?");
  const std::string without_iommu = vfio + "noiommu-" + group.value_or("?");
  if (!group || (!exists(list.machine, with_iommu) && !exists(list.machine, without_iommu))) {
    list.fault("vfio", nic.name, fmt::format("{} has no group under {}", nic.pci, vfio),
               "sudo ztcp_setup; in a container pass --device /dev/vfio/vfio and the group's");
    return Next::kGoOn;
  }
  const HostClass found =
      exists(list.machine, with_iommu) ? HostClass::kIommu : HostClass::kNoIommu;
  if (found != list.fabric.host.host_class)
    list.fault("vfio", nic.name,
               fmt::format("host.class = \"{}\" in the config, the machine is \"{}\"",
                           name_of(list.fabric.host.host_class), name_of(found)),
               fmt::format("write class = \"{}\" under [host], or change the IOMMU setting",
                           name_of(found)));
  const std::string& node = found == HostClass::kIommu ? with_iommu : without_iommu;
  if (list.machine.may_access(node, R_OK | W_OK))
    list.good("vfio", nic.name, node + " may be opened");
  else
    list.fault("vfio", nic.name, fmt::format("user {} may not open {}", ::geteuid(), node),
               "sudo ztcp_setup --group GROUP, of which the user is a member");
  if (found == HostClass::kNoIommu) check_capabilities(list, nic);
  return Next::kGoOn;
}

// Compares with the kernel driver's values, while a kernel driver has the NIC.
Next check_pci_interface(Checklist& list, const Nic& nic) {
  const auto interfaces = interfaces_of(list.machine, nic.pci);
  if (interfaces.empty()) {
    list.good("mac", nic.name, fmt::format("{}; compared when the NIC starts", to_string(nic.mac)));
    return Next::kGoOn;
  }
  const std::string path = "/sys/class/net/" + interfaces.front();
  if (const auto text = read_line(list.machine, path + "/address")) {
    const auto mac = parse_mac(*text);
    if (mac && *mac == nic.mac)
      list.good("mac", nic.name, *text);
    else
      list.fault("mac", nic.name,
                 fmt::format("mac = {} in the config, {} has {}: another NIC took its place",
                             to_string(nic.mac), interfaces.front(), *text),
                 kSetUpAnew);
  }
  check_told_speed(list, nic, interfaces.front(), path);
  const auto mtu = read_line(list.machine, path + "/mtu");
  int mtu_bytes = 0;
  if (!mtu || std::from_chars(mtu->data(), mtu->data() + mtu->size(), mtu_bytes).ec != std::errc{})
    return Next::kGoOn;
  if (mtu_bytes == nic.mtu_bytes)
    list.good("mtu", nic.name, fmt::format("{} bytes", mtu_bytes));
  else
    list.fault("mtu", nic.name,
               fmt::format("mtu_bytes = {} in the config, {} has {}", nic.mtu_bytes,
                           interfaces.front(), mtu_bytes),
               fmt::format("write mtu_bytes = {} into {}, or: sudo ip link set dev {} mtu {}",
                           mtu_bytes, list.fabric.path, interfaces.front(), nic.mtu_bytes));
  return Next::kGoOn;
}

void check_equal_speeds(Checklist& list) {
  std::string speeds;
  const Nic* first = nullptr;
  bool equal = true;
  for (const Nic& nic : list.fabric.nics) {
    if (nic.driver != NicDriver::kPci) continue;
    if (first == nullptr) first = &nic;
    equal = equal && told_speed_mbps(nic) == told_speed_mbps(*first);
    speeds += fmt::format("{}{} {}", speeds.empty() ? "" : ", ", nic.name, told_speed_mbps(nic));
  }
  if (!equal)
    list.warning("speed", list.fabric.path,
                 fmt::format("NCCL is told unequal speeds ({} Mb/s): it prefers the fastest NIC to "
                             "the nearest, for every GPU",
                             speeds),
                 "sudo ztcp_setup --speed MBPS sets the slowest one's speed for all");
}

}  // namespace ztcp::config
