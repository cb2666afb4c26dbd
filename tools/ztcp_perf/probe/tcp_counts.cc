// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/tcp_counts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <system_error>

namespace ztcp::perf::probe {

TcpCounts count_tcp_bytes() {
  TcpCounts counts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename().string();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    int protocol = 0;
    socklen_t length = sizeof protocol;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0 || protocol != IPPROTO_TCP)
      continue;
    tcp_info info{};
    length = sizeof info;
    // Kernels before 4.19 do not count bytes.
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(tcp_info, tcpi_dsack_dups) + sizeof info.tcpi_dsack_dups)
      continue;
    counts.sent += info.tcpi_bytes_sent;
    // A lost acknowledgement makes the sender repeat segments that arrived; the peer reports them.
    const std::uint64_t needless = std::uint64_t{info.tcpi_dsack_dups} * info.tcpi_snd_mss;
    counts.resent +=
        info.tcpi_bytes_retrans - std::min<std::uint64_t>(needless, info.tcpi_bytes_retrans);
  }
  return counts;
}

std::optional<double> resent_share(const TcpCounts& counts) {
  // A measurement sends more; a connection that only watches the peer sends less.
  constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10U;
  if (counts.sent < kLeastBytes) return std::nullopt;
  return static_cast<double>(counts.resent) / static_cast<double>(counts.sent);
}

}  // namespace ztcp::perf::probe
