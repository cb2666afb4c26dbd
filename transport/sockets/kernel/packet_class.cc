// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/packet_class.h"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace ztcp::sockets {
namespace {

int priority_of(std::uint8_t dscp) { return dscp >> 3; }

bool is_v4(const Fd& fd) {
  int family = AF_INET;
  socklen_t size = sizeof family;
  getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family == AF_INET;
}

// The lower two bits are ECN's; the kernel keeps its own.
bool set_dscp(const Fd& fd, std::uint8_t dscp) {
  const int value = dscp << 2;
  return (is_v4(fd) ? setsockopt(fd.get(), IPPROTO_IP, IP_TOS, &value, sizeof value)
                    : setsockopt(fd.get(), IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value)) == 0;
}

// After the DSCP: with IPv4 the kernel derives a priority of its own from that.
bool set_priority(const Fd& fd, std::uint8_t dscp) {
  const int value = priority_of(dscp);
  return setsockopt(fd.get(), SOL_SOCKET, SO_PRIORITY, &value, sizeof value) == 0;
}

}  // namespace

void set_class(const Fd& fd, std::uint8_t dscp) {
  set_dscp(fd, dscp);
  set_priority(fd, dscp);
}

std::string class_refusal(const Device& device, std::uint8_t dscp) {
  const bool v4 = device.address.is_v4();
  const Fd fd(socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return {};  // Each use of a socket reports that.
  if (!set_dscp(fd, dscp))
    return fmt::format("the kernel refuses DSCP {} ({} {}): {}; its packets go without it", dscp,
                       v4 ? "IP_TOS" : "IPV6_TCLASS", dscp << 2, std::strerror(errno));
  if (!set_priority(fd, dscp))
    return fmt::format(
        "the kernel refuses priority {} (SO_PRIORITY) for DSCP {}: {}; packets have the DSCP "
        "alone{}",
        priority_of(dscp), dscp, std::strerror(errno),
        errno == EPERM ? "; priority 7 needs CAP_NET_ADMIN" : "");
  return {};
}

}  // namespace ztcp::sockets
