// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/device_list.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "config/nic_interface.h"
#include "core/log.h"
#include "core/pci_path.h"

namespace ztcp::sockets {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

const LocalAddress* find(std::span<const LocalAddress> all, const config::Nic& nic) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const LocalAddress& one) {
    return one.interface == nic.interface && one.prefix.address == nic.address.address;
  });
  return found == all.end() ? nullptr : &*found;
}

// Whether another interface is in the same network, in which case sockets are bound to theirs. Not
// needed for link-local IPv6, since the zone names the interface.
bool shares_network(const LocalAddress& ours, std::span<const LocalAddress> all) {
  if (ours.prefix.address.is_link_local_v6()) return false;
  return std::any_of(all.begin(), all.end(), [&](const LocalAddress& other) {
    return other.index != ours.index && other.is_up &&
           (ours.prefix.contains(other.prefix.address) ||
            other.prefix.contains(ours.prefix.address));
  });
}

// Whether the driver reports a constant, as veth and tun do. An interface over a card or over other
// interfaces reports theirs, and so do the kinds with a DEVTYPE (bond, bridge, vlan). A macvlan
// whose card is in another namespace looks like a veth; over a slow card it then gets more threads
// than it needs.
bool has_nominal_speed(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "device", error)) return false;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().starts_with("lower_")) return false;
  std::ifstream uevent(folder / "uevent");
  for (std::string line; std::getline(uevent, line);)
    if (line.starts_with("DEVTYPE=")) return false;
  return true;
}

// The queues of an interface over others (a VLAN, a bond) carry no packets: those of the lower
// interfaces count.
std::uint32_t count_rx_queues(const fs::path& folder, int depth = 0) {
  constexpr int kDeepest = 4;  // A VLAN over a bond is two.
  std::uint32_t below = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (depth < kDeepest && entry->path().filename().string().starts_with("lower_"))
      below += count_rx_queues(entry->path(), depth + 1);
  if (below != 0) return below;
  std::uint32_t own = 0;
  for (fs::directory_iterator entry(folder / "queues", error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().starts_with("rx-")) ++own;
  return own;
}

SpeedSource speed_source(const config::Nic& nic, std::int64_t told, const fs::path& folder) {
  if (told <= 0) return SpeedSource::kGuess;
  return nic.speed_mbps == 0 && has_nominal_speed(folder) ? SpeedSource::kNominal
                                                          : SpeedSource::kTold;
}

const char* remark(SpeedSource source) {
  switch (source) {
    case SpeedSource::kGuess:
      return " (a guess: its driver reports none)";
    case SpeedSource::kNominal:
      return " (nominal: a virtual interface)";
    case SpeedSource::kTold:
      break;
  }
  return "";
}

Device describe(const config::Nic& nic, const LocalAddress& own, std::span<const LocalAddress> all,
                const fs::path& sys_root) {
  Device device;
  device.name = nic.name;
  device.interface = config::device_of(nic);
  device.address = own.prefix.address;
  device.scope = own.prefix.address.is_link_local_v6() ? own.index : 0;
  device.first_port = nic.first_port;
  device.last_port = nic.last_port;
  device.dscp = static_cast<std::uint8_t>(nic.dscp);
  device.bind_to_device = shares_network(own, all);
  device.gpu_pci = nic.gpu_pci;
  device.gpu_uuid = nic.gpu_uuid;
  device.nccl_devices = nic.nccl_devices;
  const fs::path folder = sys_root / "class/net" / device.interface;
  // -1 or unreadable if the driver does not know it or there is no carrier.
  const std::int64_t told =
      nic.speed_mbps != 0 ? nic.speed_mbps : read_number(folder / "speed").value_or(0);
  device.speed_source = speed_source(nic, told, folder);
  if (told > 0) device.speed_mbps = static_cast<std::uint32_t>(told);
  device.pci_path = pci_path_of(sys_root, folder / "device");
  device.numa_node = nic.numa_node;
  if (device.numa_node < 0 && !device.pci_path.empty())
    device.numa_node = static_cast<std::int32_t>(
        read_number(fs::path(device.pci_path) / "numa_node").value_or(-1));
  device.rx_queues = count_rx_queues(folder);
  device.mtu_bytes = static_cast<std::uint32_t>(read_number(folder / "mtu").value_or(0));
  return device;
}

const char* remark(const LocalAddress& address) {
  if (!address.is_up) return " (down)";
  if (!address.is_running) return " (no carrier)";
  return address.state == AddressState::kDuplicate ? " (another host of the link has it, too)" : "";
}

// Logs the chosen interfaces that peers may be unable to reach, because the job would fail without
// naming the reason, and the interfaces left out for that reason.
void say_what_is_odd(const InterfaceChoice& choice, bool is_named) {
  for (const LocalAddress& one : choice.left_out)
    log::info("{} is not used: it {}, and other interfaces fit", one.interface, oddity_of(one));
  if (is_named) return;
  for (const LocalAddress& one : choice.taken)
    if (const std::string oddity = oddity_of(one); !oddity.empty())
      log::warn(
          "{}: it {}, so peers may be unable to reach it at {}, and no better interface fits {}; "
          "choose one with NCCL_SOCKET_IFNAME",
          one.interface, oddity, to_string(one.prefix.address), choice.by);
}

std::vector<std::string> texts_of(std::span<const LocalAddress> all) {
  std::vector<std::string> texts;
  for (const LocalAddress& one : all)
    texts.push_back(fmt::format("{} {}{}", one.interface, to_string(one.prefix), remark(one)));
  return texts;
}

std::string gpu_text(const Device& device) {
  if (!device.gpu_pci.empty()) return "GPU " + device.gpu_pci;
  return device.gpu_uuid.empty() ? "any GPU" : device.gpu_uuid;
}

}  // namespace

bool carries(const config::Nic& nic) {
  return nic.driver == config::NicDriver::kSocket && !config::is_merged_socket(nic);
}

Result<std::vector<Device>> devices_of(const config::Fabric& fabric,
                                       std::span<const LocalAddress> all,
                                       const std::string& sys_root) {
  std::vector<Device> devices;
  for (const config::Nic& nic : fabric.nics) {
    const LocalAddress* const own = find(all, nic);
    // The check of the host has seen the address and gives advice if not: it has gone since.
    if (own == nullptr) return fail(Errc::kBadConfig, "an interface without its address");
    devices.push_back(describe(nic, *own, all, sys_root));
    devices.back().choice = "by " + fabric.who_chose();
  }
  return devices;
}

std::string device_text(const Device& device) {
  const std::string pci = fs::path(device.pci_path).filename();
  return fmt::format(
      "{} {}{}, {}, {} Mb/s{}, {}, {}, MTU {}{}, {}; GPUDirect RDMA off: kernel sockets end in "
      "host "
      "memory{}",
      device.interface, to_string(device.address),
      device.bind_to_device ? " (sockets bound to it: another interface is in this network)" : "",
      pci.empty() ? "no PCI function" : "PCI " + pci, device.speed_mbps,
      remark(device.speed_source), gpu_text(device),
      device.numa_node < 0 ? "NUMA node unknown" : fmt::format("NUMA node {}", device.numa_node),
      device.mtu_bytes == 0 ? std::string("unknown") : fmt::format("{}", device.mtu_bytes),
      device.dscp == 0 ? "" : fmt::format(", DSCP {}", device.dscp),
      device.first_port == 0 ? std::string("ports of the kernel's choice")
                             : fmt::format("ports {}-{}", device.first_port, device.last_port),
      device.choice.empty() ? "" : "; chosen " + device.choice);
}

Result<config::Fabric, std::string> fabric_of(config::Fabric settings,
                                              const InterfaceRequest& request,
                                              std::span<const LocalAddress> all) {
  const InterfaceChoice choice = choose_interfaces(request, all);
  if (choice.taken.empty())
    return tl::unexpected(fmt::format(
        "no interface that is up and has a carrier fits {}; this host has {}", choice.by,
        all.empty() ? "none with an address" : fmt::format("{}", fmt::join(texts_of(all), ", "))));
  say_what_is_odd(choice, request.ifname.starts_with('='));
  config::Fabric fabric = std::move(settings);
  fabric.chosen_by = choice.by;
  fabric.nics.clear();
  for (const LocalAddress& one : choice.taken) {
    config::Nic nic;
    nic.name = one.interface;
    nic.driver = config::NicDriver::kSocket;
    nic.interface = one.interface;
    nic.address = one.prefix;
    nic.first_port = nic.last_port = 0;
    fabric.nics.push_back(std::move(nic));
  }
  return fabric;
}

}  // namespace ztcp::sockets
