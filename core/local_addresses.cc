// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/local_addresses.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <sstream>
#include <system_error>

#include "core/socket_address.h"

namespace ztcp {
namespace {

IpAddress address_of(const sockaddr& from) {
  SocketAddress copy;
  std::memcpy(&copy.storage, &from,
              from.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return to_endpoint(copy).address;
}

// A network mask has the form of an address: leading ones.
std::uint8_t length_of(const sockaddr* mask, int family) {
  if (mask == nullptr) return family == AF_INET ? 32 : 128;
  // getifaddrs() leaves the family out of some masks.
  sockaddr_in6 copy{};
  std::memcpy(&copy, mask, family == AF_INET ? sizeof(sockaddr_in) : sizeof copy);
  copy.sin6_family = static_cast<sa_family_t>(family);
  const IpAddress ones = address_of(reinterpret_cast<const sockaddr&>(copy));
  if (family == AF_INET) return static_cast<std::uint8_t>(std::popcount(ones.v4().value));
  return static_cast<std::uint8_t>(std::popcount(ones.high) + std::popcount(ones.low));
}

}  // namespace

// "fe80...0001 02 40 20 80 eth0": address, index, length, scope and flags in hexadecimal, name.
void note_states(std::string_view if_inet6, std::vector<LocalAddress>& all) {
  std::istringstream lines{std::string(if_inet6)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string digits;
    std::string interface;
    unsigned index = 0;
    unsigned length = 0;
    unsigned scope = 0;
    unsigned flags = 0;
    words >> digits >> std::hex >> index >> length >> scope >> flags >> interface;
    if (!words || digits.size() != 32) continue;
    const IpAddress address(std::strtoull(digits.substr(0, 16).c_str(), nullptr, 16),
                            std::strtoull(digits.substr(16).c_str(), nullptr, 16));
    for (LocalAddress& one : all) {
      if (one.interface != interface || one.prefix.address != address) continue;
      if ((flags & IFA_F_DADFAILED) != 0)
        one.state = AddressState::kDuplicate;
      else if ((flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0)
        one.state = AddressState::kTentative;
    }
  }
}

std::string master_of(const std::string& interface, const std::string& sys_root) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path link = fs::path(sys_root) / "class/net" / interface / "master";
  const fs::path target = fs::read_symlink(link, error);
  if (error) return {};
  std::ifstream uevent(link / "uevent");
  for (std::string line; std::getline(uevent, line);)
    if (line == "DEVTYPE=vrf") return {};
  return target.filename();
}

std::vector<LocalAddress> local_addresses() {
  std::vector<LocalAddress> out;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return out;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    out.push_back({.interface = at->ifa_name,
                   .index = if_nametoindex(at->ifa_name),
                   .prefix = {address_of(*at->ifa_addr), length_of(at->ifa_netmask, family)},
                   .is_up = (at->ifa_flags & IFF_UP) != 0,
                   .is_running = (at->ifa_flags & IFF_RUNNING) != 0,
                   .is_loopback = (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(first);
  std::ifstream file("/proc/net/if_inet6");
  std::ostringstream states;
  states << file.rdbuf();
  note_states(states.str(), out);
  for (LocalAddress& one : out) one.master = master_of(one.interface);
  return out;
}

}  // namespace ztcp
