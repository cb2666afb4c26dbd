// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the ranks of a Bootstrap find each other.
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/bootstrap_wire.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf {
namespace {

// Followed by the cookie, the plan and the place, each ended by a zero.
struct Hello {
  std::int32_t rank;
  std::int32_t size;
};

void prepare(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // A machine that vanishes without a word is noticed too.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  const int idle_s = 5;
  const int probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

std::string next_text(std::span<const std::byte>& bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  std::string text = text_of({bytes.begin(), end});
  bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), text.size() + 1));
  return text;
}

int listen_on(const std::string& host, std::uint16_t port) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool v6 = fd >= 0;
  const int listener = v6 ? fd : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket: {}", std::strerror(errno));
  const int one = 1;
  const int zero = 0;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  int rc = 0;
  if (v6) {
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    rc = bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any);
  } else {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(port);
    rc = bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any);
  }
  if (rc != 0 || listen(listener, 1024) != 0)
    fail("cannot listen on port {} for --rendezvous {}:{}: {}", port, host, port,
         std::strerror(errno));
  return listener;
}

}  // namespace

LoopbackListener listen_on_loopback() {
  LoopbackListener listener;
  listener.fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listener.fd < 0 ||
      bind(listener.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.fd, 1024) != 0 ||
      getsockname(listener.fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail("cannot listen on 127.0.0.1: {}", std::strerror(errno));
  listener.port = ntohs(address.sin_port);
  return listener;
}

void Bootstrap::gather_ranks(const Options& options) {
  const int listener = options.listen_fd >= 0
                           ? options.listen_fd
                           : listen_on(options.rendezvous_host, options.rendezvous_port);
  fcntl(listener, F_SETFD, FD_CLOEXEC);
  fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
  peers_.resize(static_cast<std::size_t>(size_ - 1));
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_);
  std::vector<Peer> strangers;
  int missing = size_ - 1;
  while (missing > 0) {
    throw_if_interrupted();
    if (Clock::now() > deadline) {
      std::vector<int> absent;
      for (std::size_t i = 0; i < peers_.size(); ++i)
        if (peers_[i].fd < 0) absent.push_back(static_cast<int>(i) + 1);
      std::string list;
      for (const int r : absent) list += fmt::format("{}{}", list.empty() ? "" : ", ", r);
      close(listener);
      fail("waited {} s; not there: rank {}", timeout_.count(), list);
    }
    wait_for(listener, POLLIN);
    for (int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0;
         fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) {
      prepare(fd);
      strangers.emplace_back().fd = fd;
    }
    // Whoever has introduced itself becomes a peer; strays are dropped and hurt nobody.
    std::erase_if(strangers, [&](Peer& stranger) {
      const bool open = read_some(stranger);
      if (!stranger.frames.empty()) {
        if (admit(stranger, options)) {
          --missing;
        } else {
          close(stranger.fd);
        }
        return true;
      }
      if (open) return false;
      close(stranger.fd);
      return true;
    });
  }
  for (Peer& stranger : strangers) close(stranger.fd);
  close(listener);
  for (Peer& peer : peers_) send(peer, Type::kWelcome, {});
}

bool Bootstrap::admit(Peer& stranger, const Options& options) {
  const Frame frame = std::move(stranger.frames.front());
  stranger.frames.pop_front();
  Hello hello{};
  if (frame.type != Type::kHello || frame.payload.size() < sizeof hello) return false;
  std::memcpy(&hello, frame.payload.data(), sizeof hello);
  std::span<const std::byte> rest = std::span(frame.payload).subspan(sizeof hello);
  if (next_text(rest) != options.cookie) return false;
  const std::string plan = next_text(rest);
  const std::string place = next_text(rest);
  std::string refusal;
  if (hello.size != size_ || hello.rank < 1 || hello.rank >= size_) {
    refusal = fmt::format("rank {} of {} ({}) does not belong to {} ranks", hello.rank, hello.size,
                          place, size_);
  } else if (plan != options.plan()) {
    refusal = fmt::format("rank {} ({}) was started with other options: \"{}\", rank 0 has \"{}\"",
                          hello.rank, place, plan, options.plan());
  } else if (peers_[static_cast<std::size_t>(hello.rank - 1)].fd >= 0) {
    refusal =
        fmt::format("two processes say they are rank {}; the second is {}", hello.rank, place);
  }
  if (!refusal.empty()) {
    send(stranger, Type::kRefuse, bytes_of(refusal));
    close(stranger.fd);
    throw Failure(refusal);
  }
  stranger.rank = hello.rank;
  peers_[static_cast<std::size_t>(hello.rank - 1)] = std::move(stranger);
  return true;
}

void Bootstrap::join(const Options& options) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_);
  const std::string port = std::to_string(options.rendezvous_port);
  int last_error = 0;
  Peer peer;
  peer.rank = 0;
  while (peer.fd < 0) {
    throw_if_interrupted();
    if (Clock::now() > deadline)
      fail("could not reach rank 0 at {}:{} within {} s: {}", options.rendezvous_host, port,
           timeout_.count(), std::strerror(last_error));
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int rc = getaddrinfo(options.rendezvous_host.c_str(), port.c_str(), &hints, &found);
    if (rc != 0) fail("--rendezvous {}: {}", options.rendezvous_host, gai_strerror(rc));
    for (const addrinfo* a = found; a != nullptr && peer.fd < 0; a = a->ai_next) {
      const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) continue;
      prepare(fd);
      int error = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        // Bounded by the kernel's own SYN retries too, but five seconds show a dead address.
        const auto limit = std::min(deadline, Clock::now() + std::chrono::seconds(5));
        while (!wait_for(fd, POLLOUT) && Clock::now() < limit) throw_if_interrupted();
        socklen_t length = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
        sockaddr_storage remote{};
        socklen_t remote_length = sizeof remote;
        if (error == 0 &&
            getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &remote_length) != 0)
          error = ETIMEDOUT;
      }
      if (error == 0) {
        peer.fd = fd;
      } else {
        last_error = error;
        close(fd);
      }
    }
    freeaddrinfo(found);
    // Rank 0 may start later.
    if (peer.fd < 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  peers_.push_back(std::move(peer));

  const Hello hello{rank_, size_};
  Bytes payload(sizeof hello);
  std::memcpy(payload.data(), &hello, sizeof hello);
  for (const std::string& text : {options.cookie, options.plan(), my_place()}) {
    const auto bytes = bytes_of(text);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    payload.push_back(std::byte{0});
  }
  send(peers_[0], Type::kHello, payload);
  const Frame answer = await(peers_[0], deadline, "rank 0's welcome (are all ranks started?)");
  if (answer.type == Type::kRefuse) throw Failure(text_of(answer.payload));
  if (answer.type != Type::kWelcome)
    fail("{}:{} is no ztcp_perf rank 0", options.rendezvous_host, port);
}

}  // namespace ztcp::perf
