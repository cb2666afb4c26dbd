// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/listen_address.h"

#include <algorithm>
#include <cstdint>

namespace ztcp {
namespace {

constexpr std::byte kWithMore{0xff};
constexpr std::byte kInSharedMemory{1};
constexpr std::byte kIpv6{2};
constexpr std::byte kSharesNic{4};
constexpr IpAddress kIpv6Loopback{0, 1};
constexpr std::size_t kReservedBytes = 4;

template <class T>
std::byte* put(std::byte* at, T number) {
  for (std::size_t i = sizeof number; i-- > 0;) *at++ = static_cast<std::byte>(number >> (8 * i));
  return at;
}

template <class T>
T take(const std::byte*& at) {
  T number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = static_cast<T>(number << 8 | std::to_integer<T>(*at++));
  return number;
}

// The last bytes, where IPv4 has the form ::a.b.c.d: no host has such an IPv6 address (RFC 4291
// section 2.5.5.1).
void put_last(std::byte* at, const Endpoint& endpoint) {
  const IpAddress address = endpoint.address;
  at = put(at, address.is_v4() ? 0 : address.high);
  at = put(at, address.is_v4() ? std::uint64_t{address.v4().value} : address.low);
  put(at, endpoint.port);
}

Endpoint take_last(const std::byte* at) {
  Endpoint endpoint;
  endpoint.address.high = take<std::uint64_t>(at);
  endpoint.address.low = take<std::uint64_t>(at);
  endpoint.port = take<std::uint16_t>(at);
  if (endpoint.address.high == 0 && endpoint.address.low >> 32 == 0 && endpoint.address.low > 1)
    endpoint.address = Ipv4Address{static_cast<std::uint32_t>(endpoint.address.low)};
  return endpoint;
}

std::byte flags_of(const ListenAddress& address) {
  return (address.in_shared_memory ? kInSharedMemory : std::byte{}) |
         (address.shares_nic ? kSharesNic : std::byte{});
}

// The IPv6 address of a watch that has no bytes of its own beside an IPv6 listener's.
IpAddress usual_watch(const ListenAddress& address) {
  return address.in_shared_memory ? kIpv6Loopback : address.endpoint.address;
}

// The first bytes with the flag kIpv6; the address is among the last ones.
std::byte* put_flags_and_ipv6(std::byte* at, const ListenAddress& address) {
  const Endpoint& watch = address.watch;
  const bool has_room = watch.address.is_v4() || watch.address == usual_watch(address);
  *at++ = kWithMore;
  *at++ = flags_of(address) | kIpv6;
  at = put(at + kReservedBytes, has_room ? watch.port : std::uint16_t{0});
  at = put(at, has_room && watch.address.is_v4() ? watch.address.v4().value : 0);
  return put(at, std::uint32_t{0});
}

// Replaces the addresses that the two parts of the handle have in other handles.
Status take_ipv6(ListenAddress& out, const Endpoint& last) {
  const bool is_clear = out.endpoint.address == Ipv4Address{} && last.port == 0;
  if (!is_clear || last.address == IpAddress() || last.address.is_v4())
    return fail(Errc::kProtocol, "listen address: no IPv6 address");
  out.endpoint.address = last.address;
  if (out.watch.port != 0 && out.watch.address == Ipv4Address{})
    out.watch.address = usual_watch(out);
  return {};
}

}  // namespace

ListenAddress::Bytes to_bytes(const ListenAddress& address) {
  const Endpoint& endpoint = address.endpoint;
  const Endpoint& watch = address.watch;
  const bool has_flags = flags_of(address) != std::byte{};
  ListenAddress::Bytes bytes{};
  std::byte* at = bytes.data();
  const bool is_v4 = endpoint.address.is_v4() && (watch.port == 0 || watch.address.is_v4());
  if (has_flags && !endpoint.address.is_v4())
    put_last(at + ListenAddress::kBaseBytes, {endpoint.address, 0});
  else if (watch.port != 0 && !is_v4)
    put_last(at + ListenAddress::kBaseBytes, watch);
  if (has_flags && !endpoint.address.is_v4()) {
    at = put_flags_and_ipv6(at, address);
  } else if (has_flags || (watch.port != 0 && is_v4)) {
    *at++ = kWithMore;
    *at++ = flags_of(address);
    at = put(at + kReservedBytes, is_v4 ? watch.port : std::uint16_t{0});
    at = put(at, is_v4 && watch.port != 0 ? watch.address.v4().value : 0);
    at = put(at, endpoint.address.v4().value);
  } else {
    at = put(at, endpoint.address.high);
    at = put(at, endpoint.address.low);
  }
  at = put(at, endpoint.port);
  std::copy(address.cookie.begin(), address.cookie.end(), at);
  return bytes;
}

Result<ListenAddress> parse_listen_address(const ListenAddress::Bytes& bytes) {
  ListenAddress out;
  const std::byte* at = bytes.data();
  bool is_ipv6 = false;
  if (*at == kWithMore) {
    ++at;
    const std::byte flags = *at++;
    is_ipv6 = (flags & kIpv6) != std::byte{};
    out.in_shared_memory = (flags & kInSharedMemory) != std::byte{};
    out.shares_nic = (flags & kSharesNic) != std::byte{};
    const bool is_known = (flags & ~kIpv6) == flags_of(out) &&
                          !(out.in_shared_memory && out.shares_nic) &&
                          (!is_ipv6 || flags_of(out) != std::byte{});
    const bool is_clear =
        std::all_of(at, at + kReservedBytes, [](std::byte b) { return b == std::byte{}; });
    if (!is_clear || !is_known) return fail(Errc::kProtocol, "listen address: reserved bytes");
    at += kReservedBytes;
    out.watch.port = take<std::uint16_t>(at);
    const Ipv4Address watch{take<std::uint32_t>(at)};
    if (out.watch.port != 0) out.watch.address = watch;
    out.endpoint.address = Ipv4Address{take<std::uint32_t>(at)};
    if (out.watch.port == 0 && (flags == std::byte{} || watch.value != 0))
      return fail(Errc::kProtocol, "listen address: watch without a port");
  } else {
    out.endpoint.address.high = take<std::uint64_t>(at);
    out.endpoint.address.low = take<std::uint64_t>(at);
  }
  out.endpoint.port = take<std::uint16_t>(at);
  if (out.endpoint.port == 0) return fail(Errc::kProtocol, "listen address: no port");
  std::copy_n(at, out.cookie.size(), out.cookie.begin());
  const Endpoint watch = take_last(bytes.data() + ListenAddress::kBaseBytes);
  if (is_ipv6) {
    ZTCP_CHECK(take_ipv6(out, watch));
    return out;
  }
  if (watch == Endpoint{}) return out;
  if (watch.port == 0 || out.watch.port != 0)
    return fail(Errc::kProtocol, "listen address: a second watch, or one without a port");
  out.watch = watch;
  return out;
}

}  // namespace ztcp
