// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/netlink.h"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include "core/descriptor.h"

namespace ztcp::netlink {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kKernel = 0;
constexpr int kLastErrno = 4095;  // include/linux/err.h
// Limit for a whole answer. The kernel acts before it answers, so waiting means its locks, which
// drivers hold for seconds at times.
constexpr std::chrono::seconds kTimeout{30};
// For a dump that keeps changing.
constexpr int kTries = 5;
// Room for two million routes: a safety limit.
constexpr std::size_t kLongestAnswer = 256U << 20;
// The kernel fills 32 KiB at most.
constexpr std::size_t kLongestDatagram = 64U << 10;

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

class Kernel final : public Channel {
 public:
  explicit Kernel(int protocol)
      : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)) {}
  bool is_open() const { return static_cast<bool>(socket_); }

  Status send(Bytes request) override {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::sendto(socket_.get(), request.data(), request.size(), 0,
                 reinterpret_cast<sockaddr*>(&kernel), sizeof(kernel)) < 0)
      return fail_errno("netlink");
    return {};
  }

  Result<Datagram> receive(Deadline deadline) override {
    for (;;) {
      pollfd ready{socket_.get(), POLLIN, 0};
      const int count = ::poll(&ready, 1, milliseconds_until(deadline));
      if (count < 0 && errno != EINTR) return fail_errno("netlink");
      if (count <= 0 && Clock::now() >= deadline) return fail(Errc::kTimedOut, "netlink");
      if (count <= 0) continue;
      sockaddr_nl sender{};
      socklen_t length = sizeof(sender);
      const ssize_t size =
          ::recvfrom(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC,
                     reinterpret_cast<sockaddr*>(&sender), &length);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size < 0) return fail_errno("netlink");
      const auto bytes =
          static_cast<std::size_t>(size);  // The datagram's size, even if it was cut.
      if (bytes > buffer_.size()) return fail(Errc::kTruncated, "netlink", EMSGSIZE);
      return Datagram{sender.nl_pid, Bytes(buffer_).first(bytes)};
    }
  }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kLongestDatagram);
  Descriptor socket_;
};

}  // namespace

Result<std::unique_ptr<Channel>> open_kernel(int protocol) {
  auto kernel = std::make_unique<Kernel>(protocol);
  if (!kernel->is_open()) return fail_errno("netlink socket");
  return kernel;
}

Result<Session> Session::open(int protocol) { return Session(ZTCP_TRY(open_kernel(protocol))); }

Status Session::carry_out(NetlinkRequest request) {
  request.header().nlmsg_flags |= NLM_F_ACK;
  std::vector<std::byte> heard;
  ZTCP_CHECK(exchange(request, heard));
  return {};
}

Status Session::query(NetlinkRequest request, const Visit& visit) {
  request.header().nlmsg_flags |= NLM_F_ACK;
  std::vector<std::byte> heard;
  ZTCP_CHECK(exchange(request, heard));
  for_each_message(heard, visit);
  return {};
}

Status Session::dump(NetlinkRequest request, const Visit& visit) {
  for (int i = 0; i < kTries; ++i) {
    std::vector<std::byte> heard;
    if (ZTCP_TRY(exchange(request, heard)) == End::kInterrupted) continue;
    for_each_message(heard, visit);
    return {};
  }
  return fail(Errc::kSystem, "netlink (the network keeps changing)", EAGAIN);
}

Result<Session::End> Session::exchange(NetlinkRequest& request, std::vector<std::byte>& heard) {
  if (!request.fits()) return fail(Errc::kInvalidArgument, "netlink request", EMSGSIZE);
  request.header().nlmsg_seq = ++sequence_;
  ZTCP_CHECK(channel_->send(request.bytes()));
  const Deadline deadline = Clock::now() + kTimeout;
  bool interrupted = false;
  bool too_long = false;
  std::optional<int> end;  // 0, or the kernel's errno.
  const auto take = [&](const Message& message) {
    // Skip late answers to earlier requests that were given up.
    if (message.header.nlmsg_seq != sequence_ || end) return;
    interrupted |= (message.header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
    // Both begin with a negative errno, or 0 for success. NLMSG_ERROR is also the acknowledgement.
    if (message.header.nlmsg_type == NLMSG_ERROR || message.header.nlmsg_type == NLMSG_DONE)
      end = -std::clamp(message.fixed<int>(), -kLastErrno, 0);
    if (message.header.nlmsg_type < NLMSG_MIN_TYPE) return;
    // Read on to the end even then: the kernel runs one dump at a time.
    too_long |= heard.size() + aligned(message.header.nlmsg_len) > kLongestAnswer;
    if (too_long) return;
    const Bytes header = std::as_bytes(std::span(&message.header, 1));
    heard.insert(heard.end(), header.begin(), header.end());
    heard.insert(heard.end(), message.payload.begin(), message.payload.end());
    heard.resize(aligned(heard.size()));
  };
  while (!end) {
    const Datagram datagram = ZTCP_TRY(channel_->receive(deadline));
    if (datagram.sender == kKernel && !for_each_message(datagram.bytes, take))
      return fail(Errc::kProtocol, "netlink", EBADMSG);
    // Messages already in the socket are received after the deadline, too.
    if (!end && Clock::now() >= deadline) return fail(Errc::kTimedOut, "netlink");
  }
  if (*end != 0) return fail(Errc::kSystem, "netlink", *end);
  if (too_long) return fail(Errc::kOutOfMemory, "netlink", EMSGSIZE);
  // Changed during the dump: the result may mix old and new.
  return interrupted ? End::kInterrupted : End::kWhole;
}

}  // namespace ztcp::netlink
