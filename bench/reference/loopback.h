// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Shared parts of the programs here that measure kernel TCP over loopback.
#pragma once

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace ztcp::bench {

inline constexpr std::size_t kBufferBytes = 64U << 20;
inline constexpr std::size_t kPieceBytes = 512U << 10;

[[noreturn]] inline void give_up(const char* call) {
  std::perror(call);
  std::_Exit(1);
}

inline int checked(int result, const char* call) {
  if (result < 0) give_up(call);
  return result;
}

// Goes round a buffer a piece at a time.
class Cursor {
 public:
  std::byte* at(std::vector<std::byte>& memory) const { return memory.data() + offset_; }
  std::size_t piece() const { return std::min(kPieceBytes, kBufferBytes - offset_); }
  void move(std::size_t bytes) { offset_ = (offset_ + bytes) % kBufferBytes; }
  std::size_t offset() const { return offset_; }

 private:
  std::size_t offset_ = 0;
};

inline int new_socket() {
  const int socket = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  const int one = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return socket;
}

// A listener on a port that the kernel chooses. For two processes it is made before the fork.
class Gate {
 public:
  explicit Gate(unsigned backlog) : listener_(new_socket()) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    checked(::bind(listener_, name(), size), "bind");
    checked(::listen(listener_, static_cast<int>(backlog)), "listen");
    checked(::getsockname(listener_, name(), &size), "getsockname");
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { ::close(listener_); }

  std::vector<int> connect(unsigned count) {
    std::vector<int> sockets;
    for (unsigned i = 0; i < count; ++i) {
      sockets.push_back(new_socket());
      checked(::connect(sockets.back(), name(), sizeof address_), "connect");
    }
    return sockets;
  }
  std::vector<int> accept(unsigned count) {
    std::vector<int> sockets;
    for (unsigned i = 0; i < count; ++i)
      sockets.push_back(checked(::accept(listener_, nullptr, nullptr), "accept"));
    return sockets;
  }

 private:
  sockaddr* name() { return reinterpret_cast<sockaddr*>(&address_); }

  int listener_;
  sockaddr_in address_{};
};

}  // namespace ztcp::bench
