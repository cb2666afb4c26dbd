// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An Endpoint in the kernel's form, for socket calls.
#pragma once

#include <array>
#include <cstring>
#include <endian.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/address.h"

namespace ztcp {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size_bytes = sizeof(sockaddr_storage);

  int family() const { return storage.ss_family; }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

inline SocketAddress to_socket_address(Endpoint endpoint) {
  SocketAddress out;
  if (endpoint.address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htobe16(endpoint.port);
    v4.sin_addr.s_addr = htobe32(endpoint.address.v4().value);
    out.size_bytes = sizeof v4;
    std::memcpy(&out.storage, &v4, sizeof v4);
    return out;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htobe16(endpoint.port);
  const std::array<std::uint64_t, 2> words{htobe64(endpoint.address.high),
                                           htobe64(endpoint.address.low)};
  std::memcpy(&v6.sin6_addr, words.data(), sizeof words);
  out.size_bytes = sizeof v6;
  std::memcpy(&out.storage, &v6, sizeof v6);
  return out;
}

// From the result of getsockname() or accept(), of either family.
inline Endpoint to_endpoint(const SocketAddress& from) {
  if (from.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &from.storage, sizeof v4);
    return {Ipv4Address{be32toh(v4.sin_addr.s_addr)}, be16toh(v4.sin_port)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &from.storage, sizeof v6);
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), &v6.sin6_addr, sizeof words);
  return {IpAddress(be64toh(words[0]), be64toh(words[1])), be16toh(v6.sin6_port)};
}

}  // namespace ztcp
