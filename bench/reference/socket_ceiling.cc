// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures the highest throughput of kernel TCP on this machine: two processes, N sockets over
// loopback between them, each with its own thread on either side that sends and receives at once,
// 512 KiB at a time, out of and into buffers of 64 MiB. A plugin with as many threads for its
// sockets can come near to it.
//
//   socket_ceiling [--seconds S] [--json] [SOCKETS...]
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/reference/loopback.h"
#include "bench/reference/two_processes.h"

namespace ztcp::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 3;
  bool json = false;
  std::vector<unsigned> sockets;
};

// Touched memory, so that no page is allocated during the measurement.
std::vector<std::byte> buffer() { return std::vector<std::byte>(kBufferBytes, std::byte{1}); }

// Both directions of one socket until `stop`; counts received bytes.
void carry(int socket, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& received) {
  std::vector<std::byte> out = buffer();
  std::vector<std::byte> in = buffer();
  Cursor sending;
  Cursor receiving;
  while (!stop.load(std::memory_order_relaxed)) {
    const ssize_t sent =
        ::send(socket, sending.at(out), sending.piece(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) sending.move(static_cast<std::size_t>(sent));
    const ssize_t got = ::recv(socket, receiving.at(in), receiving.piece(), MSG_DONTWAIT);
    if (got > 0) {
      receiving.move(static_cast<std::size_t>(got));
      received.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
    }
    if (got == 0) return;  // The other process is done.
    if (sent >= 0 || got >= 0) continue;
    if (errno != EAGAIN) return;
    pollfd ready{socket, POLLIN | POLLOUT, 0};
    ::poll(&ready, 1, 10);
  }
}

// GB/s that arrive in each of the two processes while both send.
double measure(unsigned count, double seconds) {
  std::atomic<std::uint64_t> received = 0;
  const auto [ours, theirs] = measure_both<double>(
      count, [&](int socket, const std::atomic<bool>& stop) { carry(socket, stop, received); },
      [&](const Side& side) {
        side.warm_up(received);
        const std::uint64_t before = received;
        const auto begin = Clock::now();
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        const std::uint64_t bytes = received - before;
        const std::chrono::duration<double> took = Clock::now() - begin;
        return static_cast<double>(bytes) / took.count() / 1e9;
      });
  return std::min(ours, theirs);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view one = arguments[i];
    if (one == "--json") {
      options.json = true;
    } else if (one == "--seconds" && i + 1 < count) {
      options.seconds = std::atof(arguments[++i]);
    } else if (const long sockets = std::atol(arguments[i]); sockets > 0 && sockets <= 256) {
      options.sockets.push_back(static_cast<unsigned>(sockets));
    } else {
      fmt::print(stderr, "usage: socket_ceiling [--seconds S] [--json] [SOCKETS...]\n");
      std::exit(2);
    }
  }
  if (options.sockets.empty()) options.sockets = {1, 2, 4, 8};
  return options;
}

int run(int count, char** arguments) {
  const Options options = parse(count, arguments);
  const char* separator = "[";
  for (const unsigned sockets : options.sockets) {
    const double gb_per_s = measure(sockets, options.seconds);
    if (options.json)
      fmt::print("{}{{\"sockets\": {}, \"gb_per_s_each_way\": {:.3f}}}", separator, sockets,
                 gb_per_s);
    else
      fmt::print("{:3} sockets {:7.2f} GB/s each way\n", sockets, gb_per_s);
    std::fflush(stdout);
    separator = ",\n ";
  }
  if (options.json) fmt::print("]\n");
  return 0;
}

}  // namespace
}  // namespace ztcp::bench

int main(int count, char** arguments) { return ztcp::bench::run(count, arguments); }
