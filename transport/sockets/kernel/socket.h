// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Kernel TCP sockets with this transport's options: non-blocking, closed on exec(), and with the
// timeouts of userspace TCP. Also reads their state from the kernel.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/address.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/result.h"
#include "core/stream.h"
#include "transport/sockets/kernel/device.h"

namespace ztcp::sockets {

struct SocketTimes {
  Duration user_timeout = std::chrono::seconds(8);
  Duration keepalive_idle = std::chrono::seconds(3);
  Duration keepalive_interval = std::chrono::milliseconds(1500);
};

struct Listening {
  Fd fd;
  Endpoint endpoint;
};
// Listens at the device's address, on the first free port of its range.
Result<Listening> open_listener(const Device& device);

// Starts to connect; the socket may be connected already. The caller calls limit_silence() once it
// is.
Result<Fd> dial(const Device& device, const SocketTimes& times, Endpoint remote,
                const DialSettings& settings = {});

struct Accepted {
  Fd fd;
  Endpoint remote;
};
// Absent: the accept queue is empty. `dscp`: the device's.
Result<std::optional<Accepted>> accept(const Fd& listener, const SocketTimes& times,
                                       std::uint8_t dscp = 0);

// Sets the user timeout: the connection fails once the peer has left data or keepalives
// unacknowledged for so long. Not before it is connected, because the kernel would apply the
// timeout to connect(), too.
void limit_silence(const Fd& fd, const SocketTimes& times);
// The same where the peer's window has been closed for `shut`: the kernel counts that time against
// the timeout although the peer answers, so `shut` is added.
void limit_silence(const Fd& fd, const SocketTimes& times, Duration shut);

// The error code for a socket call's errno.
Errc to_errc(int sys_errno);
// Why connect() failed. A rejection by a firewall's ICMP message is told from the peer's RST.
Error connect_error(const Fd& fd, int sys_errno);
// Closes the connection with RST. Bytes that the peer has not read are lost.
void reset(Fd fd);
// Whether the peer has this address.
bool leads_to(const Fd& fd, IpAddress remote);
// The peer's address and port.
Endpoint peer_of(int fd);
// Makes the kernel send keepalives as often as it can: from now on after each second of the peer's
// silence. With bytes in flight the kernel retransmits these instead, sooner.
void ask_for_answer(const Fd& fd);
// Whether the peer's TCP has ever sent a segment on this connection, even a RST. True where the
// kernel does not count segments (before 4.2).
bool was_answered(const Fd& fd);
// Time since the peer's last segment.
Duration silence(const Fd& fd);
// Segments that the kernel has retransmitted.
std::uint32_t retransmissions(const Fd& fd);
// The NIC's receive queue on which the connection's segments arrive, as a number that is the same
// for all connections of that queue. Absent: the driver does not report it, or there is no NIC.
std::optional<std::uint32_t> rx_queue(const Fd& fd);
// The connection's state as the kernel reports it, without timeouts. Bytes in flight are estimated
// from segments.
StreamHealth health(const Fd& fd);
// The same in more detail, with the addresses.
StreamStatistics statistics(const Fd& fd);
// Why the connection makes no progress.
StreamStall stall(const Fd& fd);
// Payload sent so far, retransmissions included; zero if the kernel does not report it.
struct SentBytes {
  std::uint64_t all = 0;
  std::uint64_t repeated = 0;
};
SentBytes sent_bytes(const Fd& fd);

// Asks by any socket of this host. Errors count as kUp.
InterfaceState interface_state(int socket, const std::string& interface);

}  // namespace ztcp::sockets
