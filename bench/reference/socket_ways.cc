// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares ways of passing bytes to kernel TCP on this machine: plain calls, MSG_ZEROCOPY,
// io_uring, io_uring's SEND_ZC, and SO_BUSY_POLL. Bulk as in socket_ceiling (two processes, N
// sockets over loopback, each with a thread on either side, both directions at once, 512 KiB at a
// time, buffers of 64 MiB), and 8 bytes back and forth over one connection, with threads that poll
// or sleep. All ways run in turns for several rounds, and medians count; a first round compares
// every byte. A way that the kernel refuses is named. Over loopback the kernel copies zero-copy
// sends after all, as the count beside them shows, and busy polling has no NIC to poll: for these
// only the overhead is measured.
//
//   socket_ways [--rounds N] [--seconds S] [--json] [SOCKETS...]
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/reference/carriers.h"
#include "bench/reference/ping.h"
#include "bench/reference/two_processes.h"

namespace ztcp::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int rounds = 3;
  double seconds = 0.8;
  bool json = false;
  std::vector<unsigned> sockets;
};

// One side's counts during the measurement; wrong bytes count from the start.
struct Measured {
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong_bytes = 0;
  std::uint64_t completions = 0;
  std::uint64_t copied = 0;
  double gb_per_s() const { return static_cast<double>(bytes) / seconds / 1e9; }
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Measured read(const Tally& tally) {
  Measured now;
  now.cpu_seconds = cpu_seconds();
  now.bytes = tally.received_bytes;
  now.wrong_bytes = tally.wrong_bytes;
  now.completions = tally.completions;
  now.copied = tally.copied;
  return now;
}

Measured measure_side(const Side& side, const Tally& tally, double seconds) {
  side.warm_up(tally.received_bytes);
  const Measured before = read(tally);
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  Measured after = read(tally);
  after.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  after.bytes -= before.bytes;
  after.cpu_seconds -= before.cpu_seconds;
  after.completions -= before.completions;
  after.copied -= before.copied;
  return after;
}

struct Bulk {
  double gb_per_s_each_way = 0;
  double cpu_seconds_per_gib = 0;  // Both processes, for each GiB that arrived at either.
  std::uint64_t completions = 0;
  std::uint64_t copied = 0;
  std::uint64_t wrong_bytes = 0;
};

Bulk measure(Way way, unsigned count, double seconds, bool checks) {
  Tally tally;
  const auto [ours, theirs] = measure_both<Measured>(
      count,
      [&tally, way, checks](int socket, const std::atomic<bool>& stop) {
        prepare(way, socket);
        carry(way, socket, stop, checks, tally);
      },
      [&](const Side& side) { return measure_side(side, tally, seconds); });
  constexpr double kGib = 1U << 30;
  return {.gb_per_s_each_way = std::min(ours.gb_per_s(), theirs.gb_per_s()),
          .cpu_seconds_per_gib = (ours.cpu_seconds + theirs.cpu_seconds) /
                                 (static_cast<double>(ours.bytes + theirs.bytes) / kGib),
          .completions = ours.completions + theirs.completions,
          .copied = ours.copied + theirs.copied,
          .wrong_bytes = ours.wrong_bytes + theirs.wrong_bytes};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// One way's values, one for each round.
struct Rounds {
  struct OfSockets {
    std::vector<double> gb_per_s;
    std::vector<double> cpu;
    std::uint64_t completions = 0;
    std::uint64_t copied = 0;
  };
  std::map<unsigned, OfSockets> bulk;
  std::vector<double> awake_us;
  std::vector<double> asleep_us;
};

void run_round(Way way, const Options& options, Rounds& rounds) {
  for (const unsigned sockets : options.sockets) {
    const Bulk bulk = measure(way, sockets, options.seconds, /*checks=*/false);
    Rounds::OfSockets& of = rounds.bulk[sockets];
    of.gb_per_s.push_back(bulk.gb_per_s_each_way);
    of.cpu.push_back(bulk.cpu_seconds_per_gib);
    of.completions += bulk.completions;
    of.copied += bulk.copied;
  }
  const double seconds = options.seconds / 4;
  rounds.awake_us.push_back(ping_us(way, Waiting::kAwake, seconds));
  rounds.asleep_us.push_back(ping_us(way, Waiting::kAsleep, seconds));
}

void print_table(Way way, const Rounds& rounds) {
  for (const auto& [sockets, of] : rounds.bulk) {
    fmt::print("{:<13}{:3} sockets {:7.2f} GB/s each way {:7.3f} CPU s/GiB", name(way), sockets,
               median(of.gb_per_s), median(of.cpu));
    if (of.completions != 0)
      fmt::print(", {} of {} zero copies were copied", of.copied, of.completions);
    fmt::print("\n");
  }
  fmt::print("{:<13}8 B ping {:7.2f} us awake {:7.2f} us asleep\n", name(way),
             median(rounds.awake_us), median(rounds.asleep_us));
}

std::string json_of(Way way, const Rounds& rounds) {
  std::string text = fmt::format("{{\"way\": \"{}\", \"bulk\": [", name(way));
  const char* separator = "";
  for (const auto& [sockets, of] : rounds.bulk) {
    text += fmt::format(
        "{}{{\"sockets\": {}, \"gb_per_s_each_way\": {:.3f}, \"cpu_s_per_gib\": {:.4f}, "
        "\"zero_copies\": {}, \"copied_after_all\": {}}}",
        separator, sockets, median(of.gb_per_s), median(of.cpu), of.completions, of.copied);
    separator = ", ";
  }
  return text + fmt::format("], \"ping_us_awake\": {:.3f}, \"ping_us_asleep\": {:.3f}}}",
                            median(rounds.awake_us), median(rounds.asleep_us));
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view one = arguments[i];
    if (one == "--json") {
      options.json = true;
    } else if (one == "--seconds" && i + 1 < count) {
      options.seconds = std::atof(arguments[++i]);
    } else if (one == "--rounds" && i + 1 < count) {
      options.rounds = std::max(1, std::atoi(arguments[++i]));
    } else if (const long sockets = std::atol(arguments[i]); sockets > 0 && sockets <= 64) {
      options.sockets.push_back(static_cast<unsigned>(sockets));
    } else {
      fmt::print(stderr, "usage: socket_ways [--rounds N] [--seconds S] [--json] [SOCKETS...]\n");
      std::exit(2);
    }
  }
  if (options.sockets.empty()) options.sockets = {1, 4, 8};
  return options;
}

int run(const Options& options) {
  std::vector<Way> ways;
  std::string refused;
  for (const Way way : kWays) {
    const char* const why = why_not(way);
    if (why == nullptr) {
      ways.push_back(way);
      continue;
    }
    if (!options.json) fmt::print("{:<13}not available: {}\n", name(way), why);
    refused += fmt::format("{}{{\"way\": \"{}\", \"not_available\": \"{}\"}}",
                           refused.empty() ? "" : ",\n ", name(way), why);
  }
  for (const Way way : ways) {
    const Bulk bulk = measure(way, options.sockets.front(), options.seconds / 4, /*checks=*/true);
    if (bulk.wrong_bytes == 0) continue;
    fmt::print(stderr, "{}: {} bytes arrived wrong\n", name(way), bulk.wrong_bytes);
    return 1;
  }
  std::map<Way, Rounds> measured;
  for (int round = 0; round < options.rounds; ++round)
    for (const Way way : ways) run_round(way, options, measured[way]);
  std::string rows = refused;
  for (const auto& [way, rounds] : measured) {
    if (!options.json) print_table(way, rounds);
    rows += (rows.empty() ? "" : ",\n ") + json_of(way, rounds);
  }
  if (options.json) fmt::print("[{}]\n", rows);
  return 0;
}

}  // namespace
}  // namespace ztcp::bench

int main(int count, char** arguments) {
  return ztcp::bench::run(ztcp::bench::parse(count, arguments));
}
