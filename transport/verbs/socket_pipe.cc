// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/socket_pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>

namespace ztcp::verbs {
namespace {

constexpr std::size_t kParts = 2;

template <class Byte>
msghdr message_of(std::span<const std::span<Byte>> parts, std::array<iovec, kParts>& vectors) {
  msghdr out{};
  for (const auto& part : parts) {
    if (part.empty()) continue;
    vectors[out.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  out.msg_iov = vectors.data();
  return out;
}

Result<std::size_t> moved(ssize_t bytes, const char* call) {
  if (bytes >= 0) return static_cast<std::size_t>(bytes);
  // Not connected yet is no room, too.
  if (errno == EAGAIN || errno == EINTR) return 0;
  return fail(sockets::to_errc(errno), call, errno);
}

}  // namespace

Result<std::size_t> SocketPipe::send(std::span<const std::span<const std::byte>> parts) {
  std::array<iovec, kParts> vectors;
  const msghdr message = message_of(parts, vectors);
  return moved(sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL), "sendmsg");
}

Result<std::size_t> SocketPipe::receive(std::span<const std::span<std::byte>> parts) {
  std::array<iovec, kParts> vectors;
  msghdr message = message_of(parts, vectors);
  const ssize_t got = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (got == 0) return fail(Errc::kPeerClosed, "recvmsg");
  return moved(got, "recvmsg");
}

Result<bool> SocketPipe::greet(const Ticket& ticket) {
  const StreamHello hello = make_stream_hello(ticket);
  const std::array<std::span<const std::byte>, 1> parts{records::bytes_of(hello)};
  const std::size_t took = ZTCP_TRY(send(parts));
  // The first bytes of a connection: the kernel takes them whole.
  if (took != 0 && took != sizeof hello) return fail(Errc::kSystem, "sendmsg");
  return took != 0;
}

}  // namespace ztcp::verbs
