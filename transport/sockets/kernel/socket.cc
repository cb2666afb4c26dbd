// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <linux/tcp.h>  // Not netinet/tcp.h, which defines the same names; see answered.cc.
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>

#include "core/socket_address.h"
#include "transport/sockets/kernel/advice.h"
#include "transport/sockets/kernel/congestion_choice.h"
#include "transport/sockets/kernel/packet_class.h"

namespace ztcp::sockets {
namespace {

// Limits the unsent bytes in the kernel, since these can't be moved to another flow.
constexpr int kUnsentBytes = 256 << 10;
// Retries for connections that ended in the accept queue. More failures in a row have another
// reason, such as a seccomp filter.
constexpr int kMostGone = 64;

int whole_seconds(Duration d) {
  return static_cast<int>(std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::seconds>(d + std::chrono::milliseconds(500))
             .count()));
}

void set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

// Errors are ignored: none of these options fails on a TCP socket.
void tune(int fd, const SocketTimes& times) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, whole_seconds(times.keepalive_idle));
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, whole_seconds(times.keepalive_interval));
}

Result<Fd> new_socket(const Device& device) {
  const int family = device.address.is_v4() ? AF_INET : AF_INET6;
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail(to_errc(errno), "socket", errno);
  if (family == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (device.bind_to_device &&
      setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.interface.c_str(),
                 static_cast<socklen_t>(device.interface.size())) != 0)
    return fail_errno(kBindToDevice);
  if (device.dscp != 0) set_class(fd, device.dscp);
  if (!device.congestion_control.empty()) set_congestion_control(fd, device.congestion_control);
  return fd;
}

SocketAddress address_on(const Device& device, Endpoint endpoint) {
  SocketAddress out = to_socket_address(endpoint);
  if (out.family() != AF_INET6 || device.scope == 0) return out;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &out.storage, sizeof v6);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) v6.sin6_scope_id = device.scope;
  std::memcpy(&out.storage, &v6, sizeof v6);
  return out;
}

}  // namespace

Errc to_errc(int sys_errno) {
  switch (sys_errno) {
    case ECONNREFUSED:
      return Errc::kRefused;
    case ECONNRESET:
    case EPIPE:
      return Errc::kPeerClosed;
    case ETIMEDOUT:
      return Errc::kTimedOut;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EACCES:  // ICMPv6: prohibited.
    case EADDRNOTAVAIL:
    case ENETDOWN:
    case ENODEV:
      return Errc::kNoRoute;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return Errc::kOutOfMemory;
    case EADDRINUSE:
      return Errc::kBusy;
    default:
      return Errc::kSystem;
  }
}

// TCP answers with RST for a port where nobody listens; ICMP "port unreachable" is for protocols
// without such an answer (RFC 1122 section 3.2.2.1). So a refusal without a segment came by ICMP.
Error connect_error(const Fd& fd, int sys_errno) {
  if (sys_errno == ECONNREFUSED && !was_answered(fd))
    return Error{Errc::kNoRoute, sys_errno, "connect: rejected by ICMP, as firewalls do"};
  return Error{to_errc(sys_errno), sys_errno, "connect"};
}

Result<Listening> open_listener(const Device& device) {
  int last_error = EADDRINUSE;
  for (std::uint32_t port = device.first_port; port <= device.last_port; ++port) {
    // A new socket for each port, because a socket can be bound only once.
    Fd fd = ZTCP_TRY(new_socket(device));
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    SocketAddress address = address_on(device, {device.address, static_cast<std::uint16_t>(port)});
    // With SO_REUSEADDR two sockets may bind one port; the second then fails in listen().
    if (bind(fd.get(), address.get(), address.size_bytes) == 0 &&
        ::listen(fd.get(), SOMAXCONN) == 0) {
      address.size_bytes = sizeof address.storage;
      if (getsockname(fd.get(), address.get(), &address.size_bytes) != 0)
        return fail_errno("getsockname");
      return Listening{std::move(fd), to_endpoint(address)};
    }
    last_error = errno;
    if (last_error != EADDRINUSE) break;
  }
  return fail(to_errc(last_error), kBind, last_error);
}

Result<Fd> dial(const Device& device, const SocketTimes& times, Endpoint remote,
                const DialSettings& settings) {
  Fd fd = ZTCP_TRY(new_socket(device));
  tune(fd.get(), times);
  if (settings.dscp) set_class(fd, *settings.dscp);
  if (settings.segment_bytes != 0)
    set(fd.get(), IPPROTO_TCP, TCP_MAXSEG, static_cast<int>(settings.segment_bytes));
  // The kernel chooses the port in connect(), so that each peer can be reached from all ports.
  set(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const SocketAddress from = address_on(device, {device.address, 0});
  if (bind(fd.get(), from.get(), from.size_bytes) != 0) return fail(to_errc(errno), kBind, errno);
  const SocketAddress to = address_on(device, remote);
  // EINVAL: a blackhole route, or a link-local address without an interface.
  if (connect(fd.get(), to.get(), to.size_bytes) != 0 && errno != EINPROGRESS)
    return fail(errno == EINVAL ? Errc::kNoRoute : to_errc(errno), "connect", errno);
  return fd;
}

Result<std::optional<Accepted>> accept(const Fd& listener, const SocketTimes& times,
                                       std::uint8_t dscp) {
  for (int gone = 0; gone < kMostGone; ++gone) {
    SocketAddress from;
    const int fd =
        accept4(listener.get(), from.get(), &from.size_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Accepted out{Fd(fd), to_endpoint(from)};
      tune(fd, times);
      if (dscp != 0) set_class(out.fd, dscp);
      limit_silence(out.fd, times);
      return std::optional(std::move(out));
    }
    switch (errno) {
      case EAGAIN:
        return std::nullopt;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return fail(Errc::kOutOfMemory, "accept", errno);
      case EBADF:  // The application has closed our descriptor; a retry would not help.
      case EINVAL:
      case ENOTSOCK:
        return fail(Errc::kSystem, "accept", errno);
      default:
        break;  // That connection ended before it was accepted; see accept(2).
    }
  }
  return fail(Errc::kSystem, "accept", errno);
}

void limit_silence(const Fd& fd, const SocketTimes& times) {
  limit_silence(fd, times, Duration::zero());
}

void limit_silence(const Fd& fd, const SocketTimes& times, Duration shut) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(times.user_timeout + shut);
  set(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(ms.count()));
}

void reset(Fd fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

namespace {

// Fields that an older kernel does not report are zero. `told`: the size of the reported part.
tcp_info info_of(const Fd& fd, socklen_t* told = nullptr) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  if (told != nullptr) *told = size;
  return info;
}

}  // namespace

Endpoint peer_of(int fd) {
  SocketAddress address;
  if (getpeername(fd, address.get(), &address.size_bytes) != 0) return {};
  return to_endpoint(address);
}

bool leads_to(const Fd& fd, IpAddress remote) { return peer_of(fd.get()).address == remote; }

// Setting TCP_KEEPIDLE restarts the timer, less the time since the peer's last segment.
void ask_for_answer(const Fd& fd) { set(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, 1); }

Duration silence(const Fd& fd) {
  const tcp_info info = info_of(fd);
  return std::chrono::milliseconds(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv));
}

std::uint32_t retransmissions(const Fd& fd) { return info_of(fd).tcpi_total_retrans; }

// Kernels without busy polling know no NAPI instance, but the CPU that handled the last segment,
// which stands for the queue if interrupts are spread over CPUs. With a NAPI instance the CPU is
// not used: over loopback it is the sender's.
std::optional<std::uint32_t> rx_queue(const Fd& fd) {
  int number = 0;
  socklen_t size = sizeof number;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_INCOMING_NAPI_ID, &number, &size) == 0)
    return number > 0 ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt;
  if (errno != ENOPROTOOPT ||
      getsockopt(fd.get(), SOL_SOCKET, SO_INCOMING_CPU, &number, &size) != 0 || number < 0)
    return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

StreamHealth health(const Fd& fd) {
  const tcp_info info = info_of(fd);
  const std::uint64_t segment = info.tcpi_snd_mss;
  StreamHealth health;
  health.srtt = std::chrono::microseconds(info.tcpi_rtt);
  health.cwnd_bytes = info.tcpi_snd_cwnd * segment;
  health.unacked_bytes = info.tcpi_unacked * segment;
  health.retransmitted_bytes = info.tcpi_total_retrans * segment;
  // The kernel counts the SYN of the connecting side, too.
  health.delivered_bytes = info.tcpi_bytes_acked > 0 ? info.tcpi_bytes_acked - 1 : 0;
  return health;
}

StreamStatistics statistics(const Fd& fd) {
  // As in the kernel's enum, from TCP_ESTABLISHED = 1 on.
  constexpr std::array<const char*, 13> kStates = {
      "",       "ESTABLISHED", "SYN-SENT", "SYN-RECEIVED", "FIN-WAIT-1", "FIN-WAIT-2",  "TIME-WAIT",
      "CLOSED", "CLOSE-WAIT",  "LAST-ACK", "LISTEN",       "CLOSING",    "SYN-RECEIVED"};
  socklen_t told = 0;
  const tcp_info info = info_of(fd, &told);
  StreamStatistics out;
  if (info.tcpi_state < kStates.size()) out.state = kStates[info.tcpi_state];
  SocketAddress local;
  if (getsockname(fd.get(), local.get(), &local.size_bytes) == 0) out.local = to_endpoint(local);
  out.remote = peer_of(fd.get());
  const std::uint32_t segment = info.tcpi_snd_mss;
  out.in_flight_bytes = info.tcpi_unacked * segment;
  out.cwnd_bytes = info.tcpi_snd_cwnd * segment;
  if (told >= offsetof(tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd)
    out.peer_window_bytes = info.tcpi_snd_wnd;
  out.own_window_bytes = info.tcpi_rcv_space;
  out.mss_bytes = segment;
  constexpr std::uint32_t kUnknownRtt = UINT32_MAX;
  if (info.tcpi_min_rtt != kUnknownRtt) out.rtt_min = std::chrono::microseconds(info.tcpi_min_rtt);
  out.rtt = std::chrono::microseconds(info.tcpi_rtt);
  out.unsent_bytes = info.tcpi_notsent_bytes;
  out.sent_bytes = info.tcpi_bytes_sent - std::min(info.tcpi_bytes_sent, info.tcpi_bytes_retrans);
  out.received_bytes = info.tcpi_bytes_received;
  out.retransmitted_bytes = info.tcpi_bytes_retrans;
  out.needless_bytes = std::uint64_t{info.tcpi_dsack_dups} * segment;
  out.zero_window_time = std::chrono::microseconds(info.tcpi_rwnd_limited);
  out.is_window_shut = stall(fd).is_shut;
  return out;
}

// A timeout counts only if the peer has not answered since, even with a closed window. It has not
// if its silence is longer than the current RTO.
StreamStall stall(const Fd& fd) {
  socklen_t told = 0;
  const tcp_info info = info_of(fd, &told);
  const bool tells_window = told >= offsetof(tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd;
  const bool waits_for_window = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes != 0;
  // An answer resets tcpi_probes, so with fewer probes than this the peer answers.
  constexpr int kUnanswered = 3;
  StreamStall out;
  out.is_acked = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0;
  out.is_shut = (waits_for_window && info.tcpi_probes + info.tcpi_backoff != 0 &&
                 info.tcpi_probes < kUnanswered) ||
                (tells_window && info.tcpi_unacked != 0 && info.tcpi_snd_wnd == 0);
  out.silence = std::chrono::milliseconds(info.tcpi_last_ack_recv);
  const bool has_answered = out.silence <= std::chrono::microseconds(info.tcpi_rto);
  if (out.is_shut || out.is_acked || has_answered) return out;
  out.timeouts = waits_for_window ? info.tcpi_probes : info.tcpi_retransmits;
  return out;
}

SentBytes sent_bytes(const Fd& fd) {
  const tcp_info info = info_of(fd);
  return {.all = info.tcpi_bytes_sent, .repeated = info.tcpi_bytes_retrans};
}

// An unknown state counts as kUp, so that no false alarm is logged.
InterfaceState interface_state(int socket, const std::string& interface) {
  ifreq request{};
  if (interface.size() >= sizeof request.ifr_name) return InterfaceState::kUp;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size());
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0)
    return errno == ENODEV ? InterfaceState::kMissing : InterfaceState::kUp;
  if ((request.ifr_flags & IFF_UP) == 0) return InterfaceState::kSetDown;
  if ((request.ifr_flags & IFF_RUNNING) == 0) return InterfaceState::kNoCarrier;
  return InterfaceState::kUp;
}

}  // namespace ztcp::sockets
