// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sockets of this process at one of its addresses. A test shuts them down in place of a link
// failure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "core/socket_address.h"

namespace ztcp::verbs {

constexpr int kMostDescriptors = 1024;

inline bool is_at(int fd, const IpAddress& address) {
  SocketAddress own;
  return getsockname(fd, own.get(), &own.size_bytes) == 0 && own.family() == AF_INET &&
         to_endpoint(own).address == address;
}

// Both ends of all connections there.
inline std::vector<int> connected_at(const IpAddress& address) {
  std::vector<int> out;
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    SocketAddress other;
    if (is_at(fd, address) && getpeername(fd, other.get(), &other.size_bytes) == 0)
      out.push_back(fd);
  }
  return out;
}
inline void cut_at(const IpAddress& address) {
  for (const int fd : connected_at(address)) shutdown(fd, SHUT_RDWR);
}

inline std::uint64_t received_bytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}
inline std::uint64_t received_bytes_at(const IpAddress& address) {
  std::uint64_t out = 0;
  for (const int fd : connected_at(address)) out += received_bytes(fd);
  return out;
}
// Something came by each, and was read.
inline bool have_heard(const std::vector<int>& all) {
  return std::all_of(all.begin(), all.end(), [](int fd) {
    int unread = 0;
    return received_bytes(fd) > 0 && ioctl(fd, FIONREAD, &unread) == 0 && unread == 0;
  });
}

// Whether a stranger that sends `hello` to the listener there is turned away.
template <class Hello>
bool is_turned_away(const IpAddress& address, const Hello& hello) {
  constexpr timeval kTimeout{.tv_sec = 10, .tv_usec = 0};
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    int is_listener = 0;
    socklen_t size = sizeof is_listener;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &size) != 0 || is_listener == 0 ||
        !is_at(fd, address))
      continue;
    SocketAddress to;
    getsockname(fd, to.get(), &to.size_bytes);
    const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(stranger, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout);
    std::array<char, 256> said{};  // Why, perhaps.
    ssize_t got = 1;
    bool is_away = connect(stranger, to.get(), to.size_bytes) == 0 &&
                   send(stranger, &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello);
    while (is_away && got > 0) got = recv(stranger, said.data(), said.size(), 0);
    is_away = is_away && got == 0;
    close(stranger);
    return is_away;
  }
  ADD_FAILURE() << "nobody listens there";
  return false;
}

}  // namespace ztcp::verbs
