// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Traps of clouds' NICs that a host can see.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/file/fields.h"
#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "config/nic_interface.h"
#include "core/nic_families.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

// Alibaba Cloud, "Enable eRDMA on a GPU-accelerated instance": with LL128 and an MTU other than
// these the data are inconsistent.
constexpr std::int64_t kErdmaMtu = 1400;
// No constant expression: with UndefinedBehaviorSanitizer gcc 12 compares no pointers in one.
const std::int64_t kErdmaJumboMtu = family_of_kernel_driver("erdma")->cloud_mtu_bytes;

constexpr std::int64_t kPlainMtu = 1500;

// The headers that an ENA NIC reads from an entry of its low-latency queue (LLQ). DPDK's ENA guide:
// longer ones need large entries on instances before the 5th generation.
constexpr int kLlqHeaderBytes = 96;

// The first release of DPDK whose gve driver knows the queue format DQO.
constexpr std::string_view kFirstDpdkWithDqo = "23.07";

// The folder of the NIC's device in sysfs.
std::string device_folder(const Nic& nic) {
  return nic.driver == NicDriver::kPci ? pci_folder(nic.pci)
                                       : "/sys/class/net/" + device_of(nic) + "/device";
}

// "1d0f:ec20"; empty: not readable.
std::string pci_id(Machine& machine, const std::string& folder) {
  const std::string vendor = read_line(machine, folder + "/vendor").value_or("");
  const std::string device = read_line(machine, folder + "/device").value_or("");
  if (!vendor.starts_with("0x") || !device.starts_with("0x")) return {};
  return vendor.substr(2) + ":" + device.substr(2);
}

// By its id, since vfio-pci may have taken it from its kernel driver.
const NicFamily* family_of(Machine& machine, const Nic& nic) {
  const std::string folder = device_folder(nic);
  if (const NicFamily* found = family_of_pci_id(pci_id(machine, folder))) return found;
  return family_of_kernel_driver(link_name(machine, folder + "/driver").value_or(""));
}

bool has_driver(Machine& machine, const std::string& interface, std::string_view driver) {
  return link_name(machine, "/sys/class/net/" + interface + "/device/driver") == driver;
}

void check_cloud_mtu(Checklist& list, const Nic& nic, const NicFamily& family) {
  const std::int64_t most = family.cloud_mtu_bytes;
  if (most == 0) return;
  const std::int64_t mtu =
      nic.driver == NicDriver::kPci
          ? nic.mtu_bytes
          : read_number(list.machine, "/sys/class/net/" + device_of(nic) + "/mtu").value_or(most);
  const std::string found = fmt::format("an MTU of {} on {}", mtu, family.name);
  if (mtu > most)
    list.warning("cloud_mtu", nic.name,
                 fmt::format("{}: the network of {} carries {} at most, and loses larger packets",
                             found, family.found_in, most),
                 fmt::format("mtu_bytes = {} in {}, or that MTU of the interface, on every host",
                             most, list.fabric.path));
  else if (mtu <= kPlainMtu)
    list.warning("cloud_mtu", nic.name,
                 fmt::format("{}, where the network of {} can carry {}: small packets cost speed",
                             found, family.found_in, most),
                 "raise the MTU of the cloud's network where it is lower, then that of each host's "
                 "interface; then run ztcp_setup again on every host");
  else
    list.good("cloud_mtu", nic.name, found);
}

// An acknowledgement over IPv6 with timestamps and one SACK block has 98 bytes of headers; the
// longest of IPv4 has 94.
void check_ena_headers(Checklist& list, const Nic& nic) {
  if (nic.address.address.is_v4()) return;
  list.warning("cloud_headers", nic.name,
               fmt::format("ENA takes {} bytes of headers on instances before the 5th generation; "
                           "those of IPv6 are longer once a packet is lost",
                           kLlqHeaderBytes),
               "use IPv4 addresses on such instances");
}

// Google's GPU machine series of the first and second generation have P100, V100, P4, T4, A100
// (ids below that of H100) and L4.
bool is_before_third_generation(Machine& machine, const std::string& gpu) {
  constexpr long kFirstHopper = 0x2300;
  constexpr long kL4 = 0x27b8;
  const std::string text = read_line(machine, pci_folder(gpu) + "/device").value_or("");
  const long id = std::strtol(text.c_str(), nullptr, 16);
  return id < kFirstHopper || id == kL4;
}

void check_gvnic_format(Checklist& list, const Nic& nic) {
  const std::string_view dpdk = ZTCP_DPDK_VERSION;
  const auto gpu = std::find_if(list.gpus.begin(), list.gpus.end(), [&](const std::string& one) {
    return !is_before_third_generation(list.machine, one);
  });
  if (dpdk >= kFirstDpdkWithDqo || gpu == list.gpus.end())
    return list.good("cloud_queues", nic.name, "gVNIC, by the driver of DPDK " + std::string(dpdk));
  list.warning(
      "cloud_queues", nic.name,
      fmt::format("the gVNIC driver of DPDK {} knows the queue format GQI alone; machine series "
                  "of the third generation and later, with a GPU such as {}, have DQO, with which "
                  "the NIC does not start",
                  dpdk, *gpu),
      "sudo ztcp_setup --undo, then sudo ztcp_setup --transport xdp, or sockets");
}

// The kernel runs netvsc's XDP program on its VF, too, and drops what the program there sends to an
// AF_XDP socket of another interface (xsk_rcv_check() of Linux).
void check_netvsc(Checklist& list, const Nic& nic) {
  const std::string interface = device_of(nic);
  if (nic.driver == NicDriver::kXdp)
    return list.fault("cloud_vf", nic.name,
                      fmt::format("{} is netvsc, whose AF_XDP sockets lose each frame that arrives "
                                  "through its VF",
                                  interface),
                      fmt::format("driver = \"socket\" in {}: kernel sockets", list.fabric.path));
  for (const std::string& entry : list.machine.list("/sys/class/net/" + interface))
    if (entry.starts_with("lower_"))
      return list.good("cloud_vf", nic.name,
                       fmt::format("netvsc {} with its VF {}", interface, entry.substr(6)));
  list.warning("cloud_vf", nic.name,
               fmt::format("netvsc {} has no VF now: all packets go through the host's software "
                           "switch, at a fraction of the speed",
                           interface),
               "turn accelerated networking on for this NIC; during maintenance of the host the "
               "VF is away for a while");
}

// A VF below netvsc: packets that arrive through the other path are not this interface's.
void check_netvsc_vf(Checklist& list, const Nic& nic) {
  const std::string interface = device_of(nic);
  const auto master = link_name(list.machine, "/sys/class/net/" + interface + "/master");
  if (!master || !has_driver(list.machine, *master, "hv_netvsc")) return;
  list.warning("cloud_vf", nic.name,
               fmt::format("{} is the VF of {}, and goes away during maintenance of the host",
                           interface, *master),
               fmt::format("interface = \"{}\" in {}, which has the address and uses the VF",
                           *master, list.fabric.path));
}

}  // namespace

Next check_cloud_nic(Checklist& list, const Nic& nic) {
  if (nic.driver != NicDriver::kPci) check_netvsc_vf(list, nic);
  const NicFamily* const family = family_of(list.machine, nic);
  if (family == nullptr) return Next::kGoOn;
  check_cloud_mtu(list, nic, *family);
  if (family->kernel_driver == "hv_netvsc") check_netvsc(list, nic);
  if (nic.driver != NicDriver::kPci) return Next::kGoOn;
  if (family->dpdk_driver == "net_ena") check_ena_headers(list, nic);
  if (family->dpdk_driver == "net_gve") check_gvnic_format(list, nic);
  if (family->spreads_untold && nic.queues != 1)
    list.good("cloud_spread", nic.name,
              fmt::format("{} does not tell how it spreads flows over receive queues, so "
                          "connections are dialled until each is on its own",
                          family->name));
  return Next::kGoOn;
}

Next check_rdma_cloud(Checklist& list, const Nic& nic) {
  const RdmaPort& port = list.rdma_port(nic);
  const std::string device = fmt::format("{}/{}/device/driver", kRdmaDevices, nic.device);
  if (port.interface.empty() || link_name(list.machine, device) != "erdma") return Next::kGoOn;
  const auto mtu = read_number(list.machine, "/sys/class/net/" + port.interface + "/mtu");
  if (!mtu) return Next::kGoOn;
  const std::string found =
      fmt::format("{} is eRDMA, and {} has an MTU of {}", nic.device, port.interface, *mtu);
  if (*mtu == kErdmaJumboMtu || *mtu == kErdmaMtu) {
    list.good("rdma_cloud", nic.name, found);
    return Next::kGoOn;
  }
  list.warning(
      "rdma_cloud", nic.name,
      fmt::format("{}: Alibaba Cloud wants {} or {}, else NCCL's protocol LL128 gives wrong data",
                  found, kErdmaJumboMtu, kErdmaMtu),
      fmt::format("sudo ip link set dev {} mtu {}, or {} where the network has no jumbo frames; or "
                  "on all hosts export NCCL_PROTO=^LL128",
                  shell_word(port.interface), kErdmaJumboMtu, kErdmaMtu));
  return Next::kGoOn;
}

}  // namespace ztcp::config
