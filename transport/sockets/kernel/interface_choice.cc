// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/interface_choice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <net/if.h>
#include <netdb.h>

#include <fmt/format.h>

#include "core/socket_address.h"
#include "core/socket_ifname.h"

namespace ztcp::sockets {
namespace {

constexpr std::size_t kMostInterfaces = 16;  // NCCL's MAX_IFS.

bool is_loopback_v6(IpAddress address) { return address == IpAddress(0, 1); }

// Other values are ignored, as by NCCL.
bool is_of_family(std::string_view wanted, IpAddress address) {
  if (wanted == "AF_INET") return address.is_v4();
  if (wanted == "AF_INET6") return !address.is_v4();
  return true;
}

// How well an address suits its interface; the lower, the better.
int rank_of(const LocalAddress& one) {
  const IpAddress address = one.prefix.address;
  const bool is_this_host = address.is_v4() && address.v4().value >> 24 == 127;
  const int reach = address.is_link_local() ? 1 : is_this_host ? 2 : 0;
  return reach + (one.state == AddressState::kTentative ? 4 : 0);
}

struct Fitting {
  std::vector<LocalAddress> taken;
  std::vector<LocalAddress> left_out;
};

// Leaves out the interfaces that most peers can't reach, unless no other is found.
Fitting leave_odd_ones(std::vector<LocalAddress> found) {
  const auto is_even = [](const LocalAddress& one) { return oddity_of(one).empty(); };
  Fitting out;
  if (std::ranges::any_of(found, is_even)) {
    const auto odd = std::stable_partition(found.begin(), found.end(), is_even);
    out.left_out.assign(odd, found.end());
    found.erase(odd, found.end());
  }
  out.taken = std::move(found);
  if (out.taken.size() > kMostInterfaces) out.taken.resize(kMostInterfaces);
  return out;
}

Fitting fitting(std::string_view rule, std::string_view family, std::span<const LocalAddress> all) {
  std::vector<LocalAddress> found;
  for (const LocalAddress& one : all) {
    const IpAddress address = one.prefix.address;
    if (!one.is_running || is_loopback_v6(address) || one.state == AddressState::kDuplicate ||
        !is_of_family(family, address) || !fits_socket_ifname(rule, one.interface))
      continue;
    const auto known = std::ranges::find(found, one.interface, &LocalAddress::interface);
    if (known == found.end())
      found.push_back(one);
    else if (rank_of(one) < rank_of(*known))
      *known = one;
  }
  if (!rule.starts_with('=')) return leave_odd_ones(std::move(found));
  if (found.size() > kMostInterfaces) found.resize(kMostInterfaces);
  return {std::move(found), {}};
}

// The interface in rank 0's network, regardless of its name and of NCCL_SOCKET_FAMILY.
std::vector<LocalAddress> network_of(const InterfaceRequest& request,
                                     std::span<const LocalAddress> all) {
  const IpAddress host = *request.comm_id_host;
  for (const LocalAddress& one : all) {
    const std::uint32_t zone = one.prefix.address.is_link_local_v6() ? one.index : 0;
    if (one.prefix.contains(host) && zone == request.comm_id_zone &&
        one.state != AddressState::kDuplicate)
      return {one};
  }
  return {};
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<IpAddress> resolve(const std::string& host) {
  if (const auto numeric = parse_ip(host)) return numeric;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) return std::nullopt;
  std::optional<IpAddress> address;
  if (first->ai_family == AF_INET || first->ai_family == AF_INET6) {
    SocketAddress copy;
    std::memcpy(&copy.storage, first->ai_addr, first->ai_addrlen);
    address = to_endpoint(copy).address;
  }
  freeaddrinfo(first);
  return address;
}

}  // namespace

std::string oddity_of(const LocalAddress& address) {
  if (!address.master.empty()) return "is a part of " + address.master;
  return address.prefix.address.is_link_local() ? "has a link-local address alone" : "";
}

InterfaceChoice choose_interfaces(const InterfaceRequest& request,
                                  std::span<const LocalAddress> all) {
  const auto choice = [&](Fitting found, std::string by) {
    if (is_of_family(request.family, Ipv4Address{}) != is_of_family(request.family, IpAddress()))
      by += " and NCCL_SOCKET_FAMILY=" + request.family;
    return InterfaceChoice{std::move(found.taken), std::move(by), std::move(found.left_out)};
  };
  if (says_interfaces(request.ifname))
    return choice(fitting(request.ifname, request.family, all),
                  "NCCL_SOCKET_IFNAME=" + request.ifname);
  if (auto infiniband = fitting("ib", request.family, all); !infiniband.taken.empty())
    return choice(std::move(infiniband), "NCCL's rules (ib* before all others)");
  if (request.comm_id_host)
    if (auto network = network_of(request, all); !network.empty())
      return {std::move(network), "NCCL_COMM_ID=" + request.comm_id, {}};
  if (auto most = fitting("^docker,lo,virbr", request.family, all); !most.taken.empty())
    return choice(std::move(most), "NCCL's rules (all but docker*, lo* and virbr*)");
  constexpr std::array<std::string_view, 3> kLast{"docker", "lo", "virbr"};
  for (const std::string_view name : kLast)
    if (auto left = fitting(name, request.family, all); !left.taken.empty())
      return choice(std::move(left),
                    fmt::format("NCCL's rules ({}*, since there is no other)", name));
  return choice({}, "NCCL's rules");
}

std::optional<CommIdHost> comm_id_host(std::string_view comm_id) {
  if (!comm_id.starts_with('[')) {
    const std::string_view name = comm_id.substr(0, comm_id.find(':'));
    if (name.empty()) return std::nullopt;
    return CommIdHost{std::string(name), {}};
  }
  const std::size_t end = comm_id.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = comm_id.substr(1, end - 1);
  const std::size_t percent = std::min(inside.rfind('%'), inside.size());
  const std::string_view zone = inside.substr(std::min(percent + 1, inside.size()));
  return CommIdHost{std::string(inside.substr(0, percent)), std::string(zone)};
}

InterfaceRequest interface_request() {
  InterfaceRequest request{.ifname = variable("NCCL_SOCKET_IFNAME"),
                           .family = variable("NCCL_SOCKET_FAMILY"),
                           .comm_id = variable("NCCL_COMM_ID")};
  if (const auto host = comm_id_host(request.comm_id)) {
    request.comm_id_host = resolve(host->name);
    if (!host->zone.empty()) request.comm_id_zone = if_nametoindex(host->zone.c_str());
  }
  return request;
}

}  // namespace ztcp::sockets
