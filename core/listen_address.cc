// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/listen_address.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace ztcp {
namespace {

constexpr std::byte kWithMore{0xff};
constexpr std::byte kInSharedMemory{1};
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

// In the last bytes, where IPv4 has the form ::a.b.c.d: no host has such an IPv6 address (RFC 4291
// section 2.5.5.1).
void put_watch(std::byte* at, const Endpoint& watch) {
  const IpAddress address = watch.address;
  at = put(at, address.is_v4() ? 0 : address.high);
  at = put(at, address.is_v4() ? std::uint64_t{address.v4().value} : address.low);
  put(at, watch.port);
}

Endpoint take_watch(const std::byte* at) {
  Endpoint watch;
  watch.address.high = take<std::uint64_t>(at);
  watch.address.low = take<std::uint64_t>(at);
  watch.port = take<std::uint16_t>(at);
  if (watch.address.high == 0 && watch.address.low >> 32 == 0 && watch.address.low > 1)
    watch.address = Ipv4Address{static_cast<std::uint32_t>(watch.address.low)};
  return watch;
}

}  // namespace

ListenAddress::Bytes to_bytes(const ListenAddress& address) {
  const auto& [endpoint, watch, cookie, in_shared_memory] = address;
  ListenAddress::Bytes bytes{};
  std::byte* at = bytes.data();
  assert(endpoint.address.is_v4() || !in_shared_memory);
  const bool is_v4 = endpoint.address.is_v4() && (watch.port == 0 || watch.address.is_v4());
  if (watch.port != 0 && !is_v4) put_watch(at + ListenAddress::kBaseBytes, watch);
  if (in_shared_memory || (watch.port != 0 && is_v4)) {
    *at++ = kWithMore;
    *at++ = in_shared_memory ? kInSharedMemory : std::byte{};
    at = put(at + kReservedBytes, is_v4 ? watch.port : std::uint16_t{0});
    at = put(at, is_v4 && watch.port != 0 ? watch.address.v4().value : 0);
    at = put(at, endpoint.address.v4().value);
  } else {
    at = put(at, endpoint.address.high);
    at = put(at, endpoint.address.low);
  }
  at = put(at, endpoint.port);
  std::copy(cookie.begin(), cookie.end(), at);
  return bytes;
}

Result<ListenAddress> parse_listen_address(const ListenAddress::Bytes& bytes) {
  ListenAddress out;
  const std::byte* at = bytes.data();
  if (*at == kWithMore) {
    ++at;
    const std::byte flags = *at++;
    out.in_shared_memory = flags == kInSharedMemory;
    const bool is_clear =
        std::all_of(at, at + kReservedBytes, [](std::byte b) { return b == std::byte{}; });
    if (!is_clear || (flags != std::byte{} && !out.in_shared_memory))
      return fail(Errc::kProtocol, "listen address: reserved bytes");
    at += kReservedBytes;
    out.watch.port = take<std::uint16_t>(at);
    const Ipv4Address watch{take<std::uint32_t>(at)};
    if (out.watch.port != 0) out.watch.address = watch;
    out.endpoint.address = Ipv4Address{take<std::uint32_t>(at)};
    if (out.watch.port == 0 && (!out.in_shared_memory || watch.value != 0))
      return fail(Errc::kProtocol, "listen address: watch without a port");
  } else {
    out.endpoint.address.high = take<std::uint64_t>(at);
    out.endpoint.address.low = take<std::uint64_t>(at);
  }
  out.endpoint.port = take<std::uint16_t>(at);
  if (out.endpoint.port == 0) return fail(Errc::kProtocol, "listen address: no port");
  std::copy_n(at, out.cookie.size(), out.cookie.begin());
  const Endpoint watch = take_watch(bytes.data() + ListenAddress::kBaseBytes);
  if (watch == Endpoint{}) return out;
  if (watch.port == 0 || out.watch.port != 0)
    return fail(Errc::kProtocol, "listen address: a second watch, or one without a port");
  out.watch = watch;
  return out;
}

}  // namespace ztcp
