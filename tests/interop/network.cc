// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/interop/network.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <linux/ipv6.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/fd.h"
#include "core/socket_address.h"

namespace ztcp::interop {
namespace {

Fd control_socket() { return Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

void fill(sockaddr& out, std::uint32_t address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  std::memcpy(&out, &in, sizeof(in));
}

in6_addr to_in6(IpAddress address) {
  const SocketAddress socket_address = to_socket_address({address, 0});
  return reinterpret_cast<const sockaddr_in6*>(socket_address.get())->sin6_addr;
}

bool add_ipv6_route(IpPrefix destination, IpAddress gateway) {
  const Fd control(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  in6_rtmsg route{};
  route.rtmsg_dst = to_in6(destination.address);
  route.rtmsg_dst_len = destination.length;
  route.rtmsg_gateway = to_in6(gateway);
  route.rtmsg_metric = 1;
  route.rtmsg_flags = RTF_UP | RTF_GATEWAY;
  return ioctl(control.get(), SIOCADDRT, &route) == 0;
}

bool add_ipv6_address(const std::string& name, IpPrefix address) {
  const Fd control(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress socket_address = to_socket_address({address.address, 0});
  in6_ifreq request{};
  request.ifr6_addr = to_in6(address.address);
  request.ifr6_prefixlen = address.length;
  request.ifr6_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
  if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return false;
  // The kernel uses it once it has noticed the interface's carrier, at most a second later.
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int tries = 0; tries < 10'000; ++tries) {
    if (bind(control.get(), socket_address.get(), socket_address.size_bytes) == 0) return true;
    nanosleep(&kPause, nullptr);
  }
  return false;
}

// A new network inherits these from the machine's, and tests need Linux's own defaults.
struct Setting {
  const char* name;
  const char* value;
  bool needed = true;
};
constexpr Setting kSettings[] = {
    // Path metrics that one connection learned must not decide how the next test's behaves.
    {"ipv4/tcp_no_metrics_save", "1"},
    {"ipv4/tcp_rmem", "4096 131072 6291456"},
    {"ipv4/tcp_wmem", "4096 16384 4194304"},
    // A kernel without cubic, or that reserves it for root of the machine, keeps its own choice.
    {"ipv4/tcp_congestion_control", "cubic", false},
    {"ipv4/conf/all/arp_ignore", "0"},
    {"ipv4/conf/default/arp_ignore", "0"},
    {"ipv4/conf/all/arp_announce", "0"},
    {"ipv4/conf/default/arp_announce", "0"},
    {"ipv4/conf/all/arp_filter", "0"},
    {"ipv4/conf/default/arp_filter", "0"},
    {"ipv4/conf/all/rp_filter", "0"},
    {"ipv4/conf/default/rp_filter", "0"},
    {"ipv4/conf/all/forwarding", "0"},
    {"ipv4/conf/default/forwarding", "0"},
    // An address is used at once; the kernel's own detection of duplicates takes a second.
    {"ipv6/conf/default/accept_dad", "0", false},
    {"ipv6/conf/default/disable_ipv6", "0", false},
};

}  // namespace

std::string enter_new_network() {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) return "no /dev/net/tun here";
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return "a network namespace of our own needs root or user namespaces";
  for (const Setting& known : kSettings)
    if (!set_setting(known.name, known.value) && known.needed)
      return fmt::format("/proc/sys/net/{} can't be set to {}", known.name, known.value);
  return {};
}

std::string setting(const std::string& name) {
  std::ifstream file("/proc/sys/net/" + name);
  std::string value;
  std::getline(file, value);
  return value;
}

bool set_setting(const std::string& name, const std::string& value) {
  std::ofstream file("/proc/sys/net/" + name);
  file << value << std::flush;
  return file.good();
}

bool configure_interface(const std::string& name, IpPrefix address) {
  const Fd control = control_socket();
  ifreq request = request_for(name);
  if (address.address.is_v4()) {
    fill(request.ifr_addr, address.v4().address.value);
    if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return false;
    fill(request.ifr_netmask, address.v4().mask());
    if (ioctl(control.get(), SIOCSIFNETMASK, &request) != 0) return false;
  }
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) return false;
  return address.address.is_v4() || add_ipv6_address(name, address);
}

bool set_interface_mac(const std::string& name, MacAddress mac) {
  const Fd control = control_socket();
  ifreq request = request_for(name);
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(request.ifr_hwaddr.sa_data, mac.bytes.data(), mac.bytes.size());
  return ioctl(control.get(), SIOCSIFHWADDR, &request) == 0;
}

bool set_interface_mtu(const std::string& name, std::uint16_t mtu_bytes) {
  const Fd control = control_socket();
  ifreq request = request_for(name);
  request.ifr_mtu = mtu_bytes;
  return ioctl(control.get(), SIOCSIFMTU, &request) == 0;
}

std::optional<MacAddress> known_mac(Ipv4Address neighbour) {
  std::ifstream file("/proc/thread-self/net/arp");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string address;
    std::string type;
    std::string flags;
    std::string mac;
    words >> address >> type >> flags >> mac;
    if (address == to_string(neighbour) && flags == "0x2") return parse_mac(mac);
  }
  return std::nullopt;
}

bool add_route(IpPrefix destination, IpAddress gateway, std::uint16_t advertised_mtu_bytes) {
  if (!gateway.is_v4()) return add_ipv6_route(destination, gateway);
  const Fd control = control_socket();
  rtentry route{};
  const std::uint32_t mask = destination.v4().mask();
  fill(route.rt_dst, destination.v4().address.value & mask);
  fill(route.rt_genmask, mask);
  fill(route.rt_gateway, gateway.v4().value);
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  if (advertised_mtu_bytes != 0) {
    // This field is in fact the MSS that the kernel advertises.
    route.rt_flags |= RTF_MTU;
    route.rt_mtu = advertised_mtu_bytes;
  }
  return ioctl(control.get(), SIOCADDRT, &route) == 0;
}

std::map<std::string, std::uint64_t> KernelCounters::read() {
  std::map<std::string, std::uint64_t> counters;
  // Pairs of lines: names, then values, each behind the group's name.
  for (const char* path : {"/proc/thread-self/net/netstat", "/proc/thread-self/net/snmp"}) {
    std::ifstream file(path);
    std::string names;
    std::string values;
    while (std::getline(file, names) && std::getline(file, values)) {
      std::istringstream name_words(names);
      std::istringstream value_words(values);
      std::string group;
      std::string name;
      std::int64_t value = 0;
      name_words >> group;
      value_words >> name;
      group.pop_back();  // The colon.
      while (name_words >> name && value_words >> value)
        counters[group + name] = static_cast<std::uint64_t>(value);
    }
  }
  std::ifstream ipv6("/proc/thread-self/net/snmp6");
  std::string name;
  std::uint64_t value = 0;
  while (ipv6 >> name >> value) counters[name] = value;
  return counters;
}

std::uint64_t KernelCounters::operator[](const std::string& name) const {
  const auto now = read();
  const auto at = now.find(name);
  if (at == now.end()) return 0;
  const auto before = start_.find(name);
  return at->second - (before == start_.end() ? 0 : before->second);
}

}  // namespace ztcp::interop
