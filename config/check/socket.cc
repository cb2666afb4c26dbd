// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks a NIC that stays with the kernel.
#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/readings.h"
#include "config/machine/tcp_sockets.h"
#include "config/nic_interface.h"

namespace ztcp::config {
namespace {

constexpr const char* kSysctls = "/proc/sys/net/";

std::optional<std::int64_t> sysctl(Checklist& list, const std::string& name) {
  return read_number(list.machine, kSysctls + name);
}

const LocalAddress* find_address(const Checklist& list, const Nic& nic) {
  const auto found =
      std::find_if(list.addresses.begin(), list.addresses.end(), [&](const LocalAddress& one) {
        return one.interface == nic.interface && one.prefix.address == nic.address.address;
      });
  return found == list.addresses.end() ? nullptr : &*found;
}

// "10.0.0.6/24, fe80::1/64"; empty: it has no addresses, or does not exist.
std::string addresses_on(const Checklist& list, const std::string& interface) {
  std::string text;
  for (const LocalAddress& one : list.addresses)
    if (one.interface == interface) text += (text.empty() ? "" : ", ") + to_string(one.prefix);
  return text;
}

// Another interface with an address in the NIC's network.
const LocalAddress* neighbour_of(const Checklist& list, const LocalAddress& own) {
  if (own.prefix.address.is_link_local_v6()) return nullptr;
  const auto found =
      std::find_if(list.addresses.begin(), list.addresses.end(), [&](const LocalAddress& other) {
        return other.index != own.index && other.is_up &&
               (own.prefix.contains(other.prefix.address) ||
                other.prefix.contains(own.prefix.address));
      });
  return found == list.addresses.end() ? nullptr : &*found;
}

// The kernel uses the larger, or stricter, of the values for "all" and for the interface.
std::int64_t effective(Checklist& list, const std::string& interface, const std::string& name) {
  const auto of = [&](const std::string& whom) {
    return sysctl(list, fmt::format("ipv4/conf/{}/{}", whom, name)).value_or(0);
  };
  return std::max(of("all"), of(interface));
}

// The NIC's ports at which another socket listens.
struct TakenPorts {
  std::set<std::uint16_t> all;
  bool is_certain = true;  // False: some of the sockets may be for IPv6 alone.
};
TakenPorts taken_ports(Checklist& list, const Nic& nic) {
  TakenPorts taken;
  for (const TcpSocket& socket : tcp_sockets(list.machine)) {
    const bool is_ours = socket.port >= nic.first_port && socket.port <= nic.last_port;
    if (!is_ours || socket.state != TcpSocket::kListening ||
        !receives_at(socket, nic.address.address))
      continue;
    taken.all.insert(socket.port);
    if (may_be_ipv6_only(socket, nic.address.address)) taken.is_certain = false;
  }
  return taken;
}

// Two or three numbers: "32768 60999", "4096 131072 6291456".
std::vector<std::int64_t> numbers_of(Checklist& list, const std::string& name) {
  std::istringstream words(text_of(list.machine, kSysctls + name));
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

namespace {

// A warning for a NIC in a merged device: its connections use the other NICs.
void fault(Checklist& list, const Nic& nic, const char* name, std::string what, std::string mend) {
  if (is_merged_socket(nic))
    list.warning(name, nic.name, std::move(what), std::move(mend));
  else
    list.fault(name, nic.name, std::move(what), std::move(mend));
}

}  // namespace

Next check_socket_interface(Checklist& list, const Nic& nic) {
  const std::string device = device_of(nic);
  const std::string folder = "/sys/class/net/" + device;
  const LocalAddress* const own = find_address(list, nic);
  const std::string others = addresses_on(list, nic.interface);
  // In a network namespace /sys may be incomplete, so addresses count first.
  if (own == nullptr && others.empty() && !exists(list.machine, folder)) {
    fault(list, nic, "interface",
          fmt::format("interface = \"{}\" is not an interface of this machine", nic.interface),
          fmt::format("ip -brief address shows them; correct interface in {}, or remove the "
                      "NIC",
                      list.fabric.path));
    return Next::kStop;
  }
  if (own == nullptr) {
    fault(list, nic, "address",
          fmt::format("address = \"{}\" in the config, {} has {}", to_string(nic.address),
                      nic.interface, others.empty() ? "none" : others),
          fmt::format("sudo ip address add {} dev {}, or write its own address into {}",
                      to_string(nic.address), device, list.fabric.path));
    return Next::kStop;
  }
  const std::string text =
      fmt::format("{} {}, MTU {}", nic.interface, to_string(nic.address),
                  read_line(list.machine, folder + "/mtu").value_or("unknown"));
  if (!own->is_up)
    fault(list, nic, "interface", text + ", is down",
          fmt::format("sudo ip link set dev {} up", device));
  else if (!own->is_running)
    list.warning("interface", nic.name, text + ", has no carrier",
                 "the cable, or the cloud's console");
  else
    list.good("interface", nic.name, text);
  return Next::kGoOn;
}

// Sockets are bound to the interface, which decides how packets leave; these settings decide how
// they arrive.
Next check_socket_network(Checklist& list, const Nic& nic) {
  const LocalAddress* const own = find_address(list, nic);
  const LocalAddress* const other = own == nullptr ? nullptr : neighbour_of(list, *own);
  if (other == nullptr || !nic.address.address.is_v4()) return Next::kGoOn;
  const std::string device = device_of(nic);
  const std::string network =
      fmt::format("{} and {} are in one network ({}, {})", device, other->interface,
                  to_string(own->prefix), to_string(other->prefix));
  constexpr std::int64_t kStrict = 1;
  if (effective(list, device, "rp_filter") == kStrict)
    list.warning("network", nic.name,
                 network +
                     "; with net.ipv4.conf.*.rp_filter = 1 the kernel drops packets that arrive on "
                     "another interface than the route back uses",
                 fmt::format("sudo sysctl -w net/ipv4/conf/{}/rp_filter=2, unless ip rule gives "
                             "each address a table of its own",
                             device));
  else if (effective(list, device, "arp_ignore") == 0)
    list.warning("network", nic.name,
                 network +
                     "; with net.ipv4.conf.*.arp_ignore = 0 each answers ARP for both, so that "
                     "one may receive all packets",
                 "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2");
  else
    list.good("network", nic.name, network + ", kept apart");
  return Next::kGoOn;
}

// The ports on which peers reach a process: kernel sockets', and those over which RDMA connections
// are negotiated. A fault of one RDMA device is a warning: the other NICs still work.
Next check_listening_ports(Checklist& list, const Nic& nic) {
  if (nic.first_port == 0) return Next::kGoOn;  // The kernel chooses one.
  const TakenPorts taken = taken_ports(list, nic);
  const int all = nic.last_port - nic.first_port + 1;
  const int used = static_cast<int>(taken.all.size());
  const char* const doubt =
      taken.is_certain ? "" : "; listeners on [::] count, also those for IPv6 alone";
  if (used == all) {
    const std::string what =
        fmt::format("all ports {}-{} are in use{}", nic.first_port, nic.last_port, doubt);
    const std::string mend = fmt::format(
        "ss -ltnp shows by which processes; widen first_port and last_port in {}, one for each "
        "process",
        list.fabric.path);
    if (nic.driver == NicDriver::kVerbs)
      list.warning("ports", nic.name, what, mend);
    else
      fault(list, nic, "ports", what, mend);
    return Next::kGoOn;
  }
  const auto range = numbers_of(list, "ipv4/ip_local_port_range");
  if (range.size() == 2 && range[0] <= nic.last_port && nic.first_port <= range[1] &&
      text_of(list.machine, std::string(kSysctls) + "ipv4/ip_local_reserved_ports").size() <= 1)
    list.warning("ports", nic.name,
                 fmt::format("the ports {}-{} lie in net.ipv4.ip_local_port_range = {} {}: any "
                             "connection may take one",
                             nic.first_port, nic.last_port, range[0], range[1]),
                 fmt::format("sudo sysctl -w net.ipv4.ip_local_reserved_ports={}-{}",
                             nic.first_port, nic.last_port));
  else
    list.good("ports", nic.name,
              fmt::format("{} of {} are free ({}-{}): one for each process{}", all - used, all,
                          nic.first_port, nic.last_port, doubt));
  return Next::kGoOn;
}

// The speed that NCCL is told: the config's, else the driver's.
Next check_socket_speed(Checklist& list, const Nic& nic) {
  const std::string device = device_of(nic);
  const LocalAddress* const own = find_address(list, nic);
  if (own == nullptr || own->is_loopback) return Next::kGoOn;  // A loopback has no speed.
  const std::int64_t told =
      read_number(list.machine, "/sys/class/net/" + device + "/speed").value_or(0);
  if (told > 0 && nic.speed_mbps != 0 && told != nic.speed_mbps)
    list.warning(
        "speed", nic.name,
        fmt::format("speed_mbps = {} in the config, {} says {}", nic.speed_mbps, device, told),
        fmt::format("remove speed_mbps from {}, unless it was stated on purpose",
                    list.fabric.path));
  else if (told > 0 || nic.speed_mbps != 0)
    list.good("speed", nic.name, fmt::format("{} Mb/s", told > 0 ? told : nic.speed_mbps));
  else
    list.warning("speed", nic.name,
                 fmt::format("neither the config nor the driver of {} states it, so NCCL is told "
                             "{} Mb/s, a guess",
                             device, kGuessedSpeedMbps),
                 fmt::format("sudo ztcp_setup --speed MBPS, or write speed_mbps = ... into {}",
                             list.fabric.path));
  return Next::kGoOn;
}

// Checks other sysctls that limit connections.
void check_socket_switches(Checklist& list) {
  struct Switch {
    const char* name;
    const char* without;
  };
  constexpr Switch kSwitches[] = {
      {"tcp_moderate_rcvbuf", "connections keep the small buffers that they begin with"},
      {"tcp_window_scaling", "a connection has at most 64 KiB in flight"},
      {"tcp_sack", "each lost packet costs a round trip, and many a timeout"},
  };
  for (const Switch& one : kSwitches)
    if (sysctl(list, std::string("ipv4/") + one.name) == 0)
      list.warning("buffers", std::string("net.ipv4.") + one.name,
                   fmt::format("is 0: {}", one.without),
                   fmt::format("sudo sysctl -w net.ipv4.{}=1", one.name));
}

// Sockets leave their buffers to the kernel, which enlarges them up to these limits;
// net.core.rmem_max and wmem_max limit only sizes that a program sets itself.
void check_socket_buffers(Checklist& list) {
  constexpr std::int64_t kWantedBytes = 4 << 20;  // The kernel's own default, or less.
  for (const char* name : {"tcp_rmem", "tcp_wmem"}) {
    const auto sizes = numbers_of(list, std::string("ipv4/") + name);
    const std::string path = std::string("net.ipv4.") + name;
    if (sizes.size() != 3) continue;  // Not readable here.
    if (sizes[2] >= kWantedBytes)
      list.good("buffers", path, fmt::format("up to {} KiB a connection", sizes[2] / 1024));
    else
      list.warning(
          "buffers", path,
          fmt::format("allows {} KiB a connection, too little for a fast network", sizes[2] / 1024),
          fmt::format("sudo sysctl -w {}=\"{} {} {}\"", path, sizes[0], sizes[1], kWantedBytes));
  }
}

}  // namespace ztcp::config
