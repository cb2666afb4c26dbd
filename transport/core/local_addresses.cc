// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/local_addresses.h"

#include <bit>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>

#include "transport/core/socket_address.h"

namespace ztcp {
namespace {

IpAddress address_of(const sockaddr& from) {
  SocketAddress copy;
  std::memcpy(&copy.storage, &from,
              from.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return to_endpoint(copy).address;
}

// A network mask is an address of leading ones.
std::uint8_t length_of(const sockaddr* mask, int family) {
  if (mask == nullptr) return family == AF_INET ? 32 : 128;
  // The kernel's C library leaves the family out of some.
  sockaddr_in6 copy{};
  std::memcpy(&copy, mask, family == AF_INET ? sizeof(sockaddr_in) : sizeof copy);
  copy.sin6_family = static_cast<sa_family_t>(family);
  const IpAddress ones = address_of(reinterpret_cast<const sockaddr&>(copy));
  if (family == AF_INET) return static_cast<std::uint8_t>(std::popcount(ones.v4().value));
  return static_cast<std::uint8_t>(std::popcount(ones.high) + std::popcount(ones.low));
}

}  // namespace

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
  return out;
}

}  // namespace ztcp
