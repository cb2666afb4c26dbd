// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Kernel sockets as this transport wants them: non-blocking, closed in forked children, and dead
// when a peer on userspace TCP would be, too.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/core/stream.h"
#include "transport/link/fd.h"
#include "transport/sockets/device.h"

namespace ztcp::sockets {

struct SocketTimes {
  Duration user_timeout = std::chrono::seconds(8);
  Duration keepalive_idle = std::chrono::seconds(3);
  Duration keepalive_interval = std::chrono::milliseconds(1500);
};

struct Listening {
  link::Fd fd;
  Endpoint endpoint;
};
// On the device's address, at the first port of its range that is free.
Result<Listening> open_listener(const Device& device);

// Connecting, or connected already. Its silence is not limited yet. `segment_bytes`: of payload in
// a segment, either way; zero: as the path's MTU says.
Result<link::Fd> dial(const Device& device, const SocketTimes& times, Endpoint remote,
                      std::uint32_t segment_bytes = 0);

struct Accepted {
  link::Fd fd;
  Endpoint remote;
};
// Nothing: nobody waits.
Result<std::optional<Accepted>> accept(const link::Fd& listener, const SocketTimes& times);

// The peer of a connected socket is dead once it has acknowledged nothing for the user timeout, or
// left so long keepalives unanswered. Before, the kernel would limit the connecting by it, too.
void limit_silence(const link::Fd& fd, const SocketTimes& times);
// The same where the peer's window has been closed for `shut` already: the kernel counts that time,
// too, though the peer answers.
void limit_silence(const link::Fd& fd, const SocketTimes& times, Duration shut);

// How a socket came to `sys_errno`, as others speak of it.
Errc to_errc(int sys_errno);
// Why it was not connected. A firewall that refuses for the peer by ICMP is no word of the peer's.
Error connect_error(const link::Fd& fd, int sys_errno);
// Closes it with RST: the peer hears that it is over, and what it has not read is lost.
void reset(link::Fd fd);
// Whether the other end has this address.
bool leads_to(const link::Fd& fd, IpAddress remote);
// The other end's.
Endpoint peer_of(int fd);
// Has the kernel ask the peer's for a sign of life, as soon as it does that: once nothing was heard
// for a second, and from now on after each second of silence. Where bytes are under way it sends
// them again, sooner than that.
void ask_for_answer(const link::Fd& fd);
// How long ago the last segment of the peer's came.
Duration silence(const link::Fd& fd);
// Segments that the kernel had to send again.
std::uint32_t retransmissions(const link::Fd& fd);
// Which receive queue of the NIC the connection's segments come by, as a number that is the same
// for all that come by it. Nothing where the driver does not tell, and of what never saw a NIC.
std::optional<std::uint32_t> rx_queue(const link::Fd& fd);
// What the kernel tells of the connection. It has counted segments, and tells of no timeouts.
StreamHealth health(const link::Fd& fd);
// Why it makes no progress.
StreamStall stall(const link::Fd& fd);
// Payload so far, repeats included, and of that the repeats. Zero where the kernel doesn't tell.
struct SentBytes {
  std::uint64_t all = 0;
  std::uint64_t repeated = 0;
};
SentBytes sent_bytes(const link::Fd& fd);

// By any socket of this host.
InterfaceState interface_state(int socket, const std::string& interface);

}  // namespace ztcp::sockets
