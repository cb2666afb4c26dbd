// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/rendezvous.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"
#include "tools/ztcp_perf/probe/handshake.h"
#include "tools/ztcp_perf/probe/rendezvous_file.h"

namespace ztcp::perf::probe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A caller that is no rank may be any program: it gets this long, and this many bytes.
constexpr auto kGreetingTimeout = 5s;
constexpr std::size_t kLongestGreeting = 4096;
constexpr std::size_t kMostCallers = 256;

Clock::time_point deadline_of(const ProbeOptions& options) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(options.host_timeout_s));
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

void prepare(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // Detects a host that vanishes without closing the connection.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void say(int fd, const Json& json) {
  const std::string line = to_line(json);
  // Short lines fit any socket's buffer; a lost peer shows at the next read.
  [[maybe_unused]] const ssize_t size = ::send(fd, line.data(), line.size(), MSG_NOSIGNAL);
}

// A connection that is read line by line, without reading beyond the line.
struct LineReader {
  int fd = -1;
  std::string line;
  enum class State { kWaiting, kComplete, kClosed };
  State read_some() {
    for (char c = 0; line.size() < kLongestGreeting;) {
      const ssize_t size = recv(fd, &c, 1, 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return State::kWaiting;
      if (size <= 0) return State::kClosed;
      if (c == '\n') return State::kComplete;
      line += c;
    }
    return State::kClosed;
  }
};

struct Listener {
  int fd = -1;
  std::uint16_t port = 0;
};

// All addresses, IPv6 too where the host has it. Port 0: the kernel's choice.
Listener listen_at(std::uint16_t port) {
  Listener listener{socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), port};
  const bool has_v6 = listener.fd >= 0;
  if (!has_v6) listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int one = 1;
  const int zero = 0;
  setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (has_v6) setsockopt(listener.fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  auto* address = has_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t length = has_v6 ? sizeof v6 : sizeof v4;
  if (listener.fd < 0 || bind(listener.fd, address, length) != 0 ||
      listen(listener.fd, 1024) != 0 || getsockname(listener.fd, address, &length) != 0)
    fail("rank 0 cannot listen on port {}: {}", port, std::strerror(errno));
  listener.port = ntohs(has_v6 ? v6.sin6_port : v4.sin_port);
  return listener;
}

// A connection that has not yet proved to be a rank.
struct Guest {
  LineReader reader;
  Nonce challenge;
  Clock::time_point since;
};

class Gathering {
 public:
  Gathering(int listener, const std::string& secret, int ranks)
      : listener_(listener), secret_(secret), arrivals_(static_cast<std::size_t>(ranks)) {}
  ~Gathering() {
    for (const Guest& guest : guests_) close(guest.reader.fd);
    close(listener_);
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  std::vector<Arrival> run(Clock::time_point deadline) {
    for (std::size_t missing = arrivals_.size() - 1; missing > 0 && Clock::now() < deadline;) {
      throw_if_interrupted();
      std::vector<pollfd> watched = {{listener_, POLLIN, 0}};
      for (const Guest& guest : guests_) watched.push_back({guest.reader.fd, POLLIN, 0});
      poll(watched.data(), watched.size(), 50);
      take_guests();
      std::erase_if(guests_, [&](Guest& guest) {
        const auto state = guest.reader.read_some();
        if (state == LineReader::State::kComplete) missing -= judge(guest);
        if (state == LineReader::State::kWaiting && Clock::now() - guest.since < kGreetingTimeout)
          return false;
        if (guest.reader.fd >= 0) close(guest.reader.fd);
        return true;
      });
    }
    return std::move(arrivals_);
  }

 private:
  void take_guests() {
    for (int fd = -1; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      // The oldest had the most time; a rank that is dropped calls again.
      if (guests_.size() == kMostCallers) {
        close(guests_.front().reader.fd);
        guests_.erase(guests_.begin());
      }
      prepare(fd);
      guests_.push_back({{fd, {}}, random_nonce(), Clock::now()});
      say(fd, make_challenge(guests_.back().challenge));
    }
  }

  // Whether it is a rank that was missing.
  bool judge(Guest& guest) {
    const auto line = parse_line(guest.reader.line);
    if (!line) return false;
    const auto ranks = static_cast<int>(arrivals_.size());
    Caller caller = judge_answer(*line, secret_, ranks, guest.challenge);
    if (caller.refusal.empty() && arrivals_[static_cast<std::size_t>(caller.rank)].fd >= 0) {
      caller.refusal = fmt::format("two processes claim to be rank {}", caller.rank);
      caller.admission = {{"refuse", caller.refusal}};
    }
    say(guest.reader.fd, caller.admission);
    if (!caller.refusal.empty()) {
      std::fprintf(stderr, "ztcp_perf probe: refused: %s\n", caller.refusal.c_str());
      return false;
    }
    arrivals_[static_cast<std::size_t>(caller.rank)] = {std::exchange(guest.reader.fd, -1),
                                                        caller.host};
    return true;
  }

  int listener_;
  const std::string& secret_;
  std::vector<Arrival> arrivals_;
  std::vector<Guest> guests_;
};

// One attempt. -1: refused, or no answer within a few seconds.
int dial(const std::string& host, std::uint16_t port, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  int dialled = -1;
  for (const addrinfo* a = found; a != nullptr && dialled < 0; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    prepare(fd);
    const auto limit = std::min(deadline, Clock::now() + 5s);
    int error = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    pollfd writable{fd, POLLOUT, 0};
    while (error == EINPROGRESS && Clock::now() < limit) {
      throw_if_interrupted();
      if (poll(&writable, 1, 50) <= 0) continue;
      socklen_t length = sizeof error;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error == 0)
      dialled = fd;
    else
      close(fd);
  }
  freeaddrinfo(found);
  return dialled;
}

// The next line; absent: the connection was closed, or none came in time.
std::optional<Json> next_line(int fd) {
  LineReader reader{fd, {}};
  const auto limit = Clock::now() + kGreetingTimeout;
  while (Clock::now() < limit) {
    throw_if_interrupted();
    const auto state = reader.read_some();
    if (state == LineReader::State::kComplete) return parse_line(reader.line);
    if (state == LineReader::State::kClosed) return std::nullopt;
    pollfd readable{fd, POLLIN, 0};
    poll(&readable, 1, 50);
  }
  return std::nullopt;
}

// False: rank 0 closed the connection.
bool introduce(int fd, const ProbeOptions& options, const std::string& secret) {
  const auto challenge = next_line(fd);
  if (!challenge) return false;
  const Nonce nonce = random_nonce();
  say(fd, answer_challenge(*challenge, secret, options.rank, options.ranks, host_name(), nonce));
  const auto admission = next_line(fd);
  if (!admission) return false;
  check_admission(*admission, secret, *challenge, nonce);
  // The agent reads and writes it like a pipe.
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return true;
}

}  // namespace

std::vector<Arrival> gather(const ProbeOptions& options) {
  const Listener listener = listen_at(options.rendezvous_port);
  const std::string secret = options.rendezvous_file.empty() ? options.secret : random_secret();
  std::optional<RendezvousFile> file;
  if (!options.rendezvous_file.empty())
    file.emplace(options.rendezvous_file, Place{host_name(), listener.port, secret});
  std::vector<Arrival> arrivals =
      Gathering(listener.fd, secret, options.ranks).run(deadline_of(options));
  arrivals[0].host = host_name();
  return arrivals;
}

int join(const ProbeOptions& options) {
  const auto deadline = deadline_of(options);
  Place place{options.rendezvous_host, options.rendezvous_port, options.secret};
  while (Clock::now() < deadline) {
    throw_if_interrupted();
    bool is_known = true;
    // Read again each time: the file of an earlier run may still be there.
    if (!options.rendezvous_file.empty()) {
      const auto read = read_rendezvous_file(options.rendezvous_file);
      is_known = read.has_value();
      if (is_known) place = *read;
    }
    if (is_known) {
      const int fd = dial(place.host, place.port, deadline);
      if (fd >= 0 && introduce(fd, options, place.secret)) return fd;
      if (fd >= 0) close(fd);
    }
    std::this_thread::sleep_for(100ms);
  }
  if (options.rendezvous_file.empty())
    fail("could not reach rank 0 at {}:{} within {:g} s (--host-timeout)", place.host, place.port,
         options.host_timeout_s);
  fail("no rank 0 could be reached through {} within {:g} s (--host-timeout)",
       options.rendezvous_file, options.host_timeout_s);
}

}  // namespace ztcp::perf::probe
