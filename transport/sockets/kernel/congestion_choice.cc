// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/congestion_choice.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace ztcp::sockets {
namespace {

constexpr std::size_t kLongestName = 16;  // TCP_CA_NAME_MAX, which no public header has.

bool choose(const Fd& fd, const std::string& name) {
  return setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

void set_congestion_control(const Fd& fd, const std::string& name) { choose(fd, name); }

std::string congestion_control_of(const Fd& fd) {
  std::array<char, kLongestName + 1> name{};
  socklen_t size = kLongestName;
  if (getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return {};
  return name.data();
}

std::string congestion_refusal(const Device& device, const std::string& proc_root) {
  const std::string& name = device.congestion_control;
  if (name.empty()) return {};
  const Fd fd(socket(device.address.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || choose(fd, name)) return {};  // Each use of a socket reports that there is none.
  const int sys_errno = errno;
  constexpr const char* kAllowed = "/sys/net/ipv4/tcp_allowed_congestion_control";
  std::string allowed;
  std::ifstream file(proc_root + kAllowed);
  std::getline(file, allowed);
  return fmt::format(
      "the kernel refuses tcp.kernel_congestion_control = \"{}\": {}; sockets use {}. /proc{} has "
      "\"{}\": {}sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{} {}\", as root",
      name, std::strerror(sys_errno), congestion_control_of(fd), kAllowed, allowed,
      sys_errno == ENOENT ? fmt::format("modprobe tcp_{}, then ", name) : "", allowed, name);
}

}  // namespace ztcp::sockets
