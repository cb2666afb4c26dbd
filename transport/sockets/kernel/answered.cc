// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Uses the kernel's header, because the C library's tcp_info lacks the count of segments.
#include <cstddef>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/sockets/kernel/socket.h"

namespace ztcp::sockets {

bool was_answered(const Fd& fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  constexpr std::size_t kEnd = offsetof(tcp_info, tcpi_segs_in) + sizeof info.tcpi_segs_in;
  return size < kEnd || info.tcpi_segs_in != 0;
}

}  // namespace ztcp::sockets
