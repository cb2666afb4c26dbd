// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The rendezvous on rank 0: judges callers and admits ranks.
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/bootstrap_wire.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf {
namespace {

std::string next_text(std::span<const std::byte>& bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  const auto size = static_cast<std::size_t>(end - bytes.begin());
  std::string text = text_of(bytes.first(size));
  bytes = bytes.subspan(std::min(bytes.size(), size + 1));
  return text;
}

// The address rank 0 listens at: a numeric loopback address if given, else all addresses. A name
// does not count: Debian's /etc/hosts maps a host's own name to 127.0.1.1.
struct ListenAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

ListenAddress listen_address(const std::string& host, std::uint16_t port, bool has_v6) {
  ListenAddress out;
  auto& v4 = reinterpret_cast<sockaddr_in&>(out.address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out.address);
  in_addr given{};
  const bool on_v4_loopback =
      inet_pton(AF_INET, host.c_str(), &given) == 1 && (ntohl(given.s_addr) >> 24U) == 127;
  if (on_v4_loopback || !has_v6) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    if (on_v4_loopback) v4.sin_addr = given;
    out.length = sizeof v4;
  } else {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = host == "::1" ? in6addr_loopback : in6addr_any;
    out.length = sizeof v6;
  }
  return out;
}

int listen_on(const std::string& host, std::uint16_t port) {
  const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe >= 0) close(probe);
  const ListenAddress at = listen_address(host, port, probe >= 0);
  const int listener = socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket: {}", std::strerror(errno));
  const int one = 1;
  const int zero = 0;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (at.address.ss_family == AF_INET6)
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at.address), at.length) != 0 ||
      listen(listener, 1024) != 0)
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

void Bootstrap::take_callers(int listener, std::vector<Caller>& callers) const {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce; ++i) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const bool no_descriptor = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (fd < 0 && !no_descriptor) return;
    // The oldest has had the most time to prove its rank; a dropped rank dials again.
    if (!callers.empty() && (no_descriptor || callers.size() >= max_callers())) {
      close(callers.front().peer.fd);
      callers.erase(callers.begin());
    } else if (no_descriptor) {
      poll(nullptr, 0, 50);
      return;
    }
    if (fd < 0) continue;
    prepare(fd);
    Caller caller{.peer = {}, .challenge = random_nonce(), .since = Clock::now()};
    caller.peer.fd = fd;
    if (send_at_once(fd, make_frame(FrameType::kChallenge, caller.challenge)))
      callers.push_back(std::move(caller));
    else
      close(fd);
  }
}

int Bootstrap::judge_callers(std::vector<Caller>& callers, const Options& options) {
  int admitted = 0;
  const auto now = Clock::now();
  std::erase_if(callers, [&](Caller& caller) {
    const bool open = read_some(caller.peer);
    if (!caller.peer.reader.frames().empty()) {
      if (judge(caller, options) == Verdict::kAdmitted)
        ++admitted;
      else
        close(caller.peer.fd);
      return true;
    }
    if (open && now - caller.since < kGreetingTimeout) return false;
    close(caller.peer.fd);
    return true;
  });
  return admitted;
}

void Bootstrap::gather_ranks(const Options& options) {
  const int listener = options.listen_fd >= 0
                           ? options.listen_fd
                           : listen_on(options.rendezvous_host, options.rendezvous_port);
  fcntl(listener, F_SETFD, FD_CLOEXEC);
  fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
  peers_.resize(static_cast<std::size_t>(size_ - 1));
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_);
  std::vector<Caller> callers;
  std::vector<pollfd> watched;
  int missing = size_ - 1;
  while (missing > 0) {
    throw_if_interrupted();
    if (Clock::now() > deadline) {
      std::string list;
      for (std::size_t i = 0; i < peers_.size(); ++i)
        if (peers_[i].fd < 0) list += fmt::format("{}{}", list.empty() ? "" : ", ", i + 1);
      close(listener);
      fail("waited {} s; missing: rank {}{}", timeout_.count(), list,
           refusals_ == 0 ? ""
                          : fmt::format(" ({} refused, the last: {})", refusals_, last_refusal_));
    }
    watched.assign(1, {listener, POLLIN, 0});
    for (const Caller& caller : callers) watched.push_back({caller.peer.fd, POLLIN, 0});
    poll(watched.data(), watched.size(), 50);
    take_callers(listener, callers);
    missing -= judge_callers(callers, options);
  }
  for (const Caller& caller : callers) close(caller.peer.fd);
  close(listener);
  for (Peer& peer : peers_) send(peer, FrameType::kWelcome, {});
}

// A caller that proved the secret is a rank of this run that was started wrongly, which ends the
// run; any other caller may be an unrelated program.
void Bootstrap::refuse(Peer& caller, const std::string& why, bool is_proven) {
  send_at_once(caller.fd, make_frame(FrameType::kRefuse, bytes_of(why)));
  if (is_proven) throw Failure(why);
  ++refusals_;
  last_refusal_ = why;
}

Bootstrap::Verdict Bootstrap::judge(Caller& caller, const Options& options) {
  const Frame frame = caller.peer.reader.pop();
  Hello hello{};
  if (frame.type != FrameType::kHello || frame.payload.size() < sizeof hello)
    return Verdict::kDropped;
  std::memcpy(&hello, frame.payload.data(), sizeof hello);
  std::span<const std::byte> rest = std::span(frame.payload).subspan(sizeof hello);
  const std::string plan = next_text(rest);
  const std::string place = next_text(rest);
  const auto said = std::span(frame.payload).subspan(sizeof hello.proof);
  if (!msg::equal_in_constant_time(hello.proof,
                                   prove_rank(options.secret, caller.challenge, said))) {
    refuse(caller.peer,
           fmt::format("rank {} ({}) and rank 0 have different secrets; give all ranks the same "
                       "--secret-file or ZTCP_PERF_SECRET",
                       hello.rank, place),
           /*is_proven=*/false);
    return Verdict::kDropped;
  }
  std::string refusal;
  if (hello.size != size_ || hello.rank < 1 || hello.rank >= size_) {
    refusal = fmt::format("rank {} of {} ({}) does not belong to {} ranks", hello.rank, hello.size,
                          place, size_);
  } else if (plan != options.plan()) {
    refusal = fmt::format("rank {} ({}) was started with other options: \"{}\", rank 0 has \"{}\"",
                          hello.rank, place, plan, options.plan());
  } else if (peers_[static_cast<std::size_t>(hello.rank - 1)].fd >= 0) {
    refusal = fmt::format("two processes claim to be rank {}; the second is {}", hello.rank, place);
  }
  if (!refusal.empty()) {
    refuse(caller.peer, refusal, /*is_proven=*/!options.secret.empty());
    return Verdict::kDropped;
  }
  const Proof proof = prove_rank_0(options.secret, caller.challenge, hello.nonce);
  if (!send_at_once(caller.peer.fd, make_frame(FrameType::kAdmit, proof))) return Verdict::kDropped;
  caller.peer.reader.set_max_payload(kMaxPayload);
  caller.peer.rank = hello.rank;
  peers_[static_cast<std::size_t>(hello.rank - 1)] = std::move(caller.peer);
  return Verdict::kAdmitted;
}

}  // namespace ztcp::perf
