// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The rendezvous on ranks other than 0.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/bootstrap_wire.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf {

constexpr std::chrono::seconds kNaming{2};

int Bootstrap::dial(const Options& options, Clock::time_point deadline) {
  const std::string port = std::to_string(options.rendezvous_port);
  int last_error = 0;
  while (true) {
    throw_if_interrupted();
    if (Clock::now() > deadline)
      fail("could not reach rank 0 at {}:{} within {} s: {}", options.rendezvous_host, port,
           timeout_.count(),
           last_error != 0 ? std::strerror(last_error) : "it closed each connection");
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int rc = getaddrinfo(options.rendezvous_host.c_str(), port.c_str(), &hints, &found);
    if (rc != 0) fail("--rendezvous {}: {}", options.rendezvous_host, gai_strerror(rc));
    int dialled = -1;
    for (const addrinfo* a = found; a != nullptr && dialled < 0; a = a->ai_next) {
      const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) continue;
      prepare(fd);
      int error = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        // The kernel's SYN retries limit it too, but five seconds suffice to detect a dead address.
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
        dialled = fd;
      } else {
        last_error = error;
        close(fd);
      }
    }
    freeaddrinfo(found);
    if (dialled >= 0) return dialled;
    // Rank 0 may start later.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::optional<Frame> Bootstrap::next_frame(Peer& peer, Clock::time_point deadline,
                                           const std::string& what) {
  while (true) {
    throw_if_interrupted();
    const bool open = read_some(peer);
    if (!peer.reader.frames().empty()) return peer.reader.pop();
    if (peer.reader.is_malformed())
      fail("{}: the listener is not a ztcp_perf of this release", what);
    if (!open) return std::nullopt;
    if (Clock::now() > deadline) fail("waited too long for {}", what);
    wait_for(peer.fd, POLLIN);
  }
}

bool Bootstrap::introduce_to(Peer& rank_0, const Options& options, Clock::time_point deadline) {
  const std::string what =
      fmt::format("rank 0 at {}:{}", options.rendezvous_host, options.rendezvous_port);
  const auto challenged = next_frame(rank_0, deadline, what);
  if (!challenged) return false;
  Nonce challenge;
  if (challenged->type != FrameType::kChallenge || challenged->payload.size() != challenge.size())
    fail("{} sent a malformed frame", what);
  std::memcpy(challenge.data(), challenged->payload.data(), challenge.size());

  Hello hello{.proof = {}, .nonce = random_nonce(), .rank = rank_, .size = size_};
  Bytes payload(sizeof hello);
  for (const std::string& text : {options.plan(), my_place()}) {
    const auto bytes = bytes_of(text);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    payload.push_back(std::byte{0});
  }
  std::memcpy(payload.data(), &hello, sizeof hello);
  hello.proof =
      prove_rank(options.secret, challenge, std::span(payload).subspan(sizeof hello.proof));
  std::memcpy(payload.data(), &hello, sizeof hello);
  if (!send_at_once(rank_0.fd, make_frame(FrameType::kHello, payload))) return false;

  const auto answer = next_frame(rank_0, deadline, what);
  if (!answer) return false;
  if (answer->type == FrameType::kRefuse) throw Failure(text_of(answer->payload));
  if (answer->type != FrameType::kAdmit ||
      !msg::equal_in_constant_time(answer->payload,
                                   prove_rank_0(options.secret, challenge, hello.nonce)))
    fail("{} does not know this run's secret: another program listens there", what);
  rank_0.reader.set_max_payload(kMaxPayload);
  return true;
}

void Bootstrap::join(const Options& options) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_);
  peers_.resize(1);
  Peer& rank_0 = peers_[0];
  rank_0.rank = 0;
  rank_0.fd = dial(options, deadline);
  while (!introduce_to(rank_0, options, deadline)) {
    // Displaced by other callers, or rank 0 has ended.
    close(std::exchange(rank_0.fd, -1));
    rank_0.reader = FrameReader();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rank_0.fd = dial(options, deadline);
  }
  // Rank 0, which may have started just now, waits as long for the others, and then names those
  // that are missing.
  const auto last = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_) + kNaming;
  if (await(rank_0, last, "rank 0's welcome (are all ranks started?)").type != FrameType::kWelcome)
    malformed(0);
}

}  // namespace ztcp::perf
