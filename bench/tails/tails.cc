// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures the slowest of many collectives and finds the cause: two ranks on this machine with the
// threads that NCCL has, and no GPU. Beside the percentiles it names the thread that did not run:
// the proxy was woken late, the proxy or the main thread lost its CPU in the middle of a
// collective, or neither, so that the transport's own threads caused the delay; and it prints the
// scheduler's counts for each thread.
//
//   tails --plugin build/plugin/libnccl-net.so --sizes 32768,2097152 --iters 1500
//
// ZTCP_ variables choose the transport and go to both ranks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/tails/rank.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/plugin_log.h"

namespace ztcp::bench {
namespace {

struct Options {
  std::string plugin = "libnccl-net.so";
  std::vector<std::size_t> sizes = {32U << 10, 256U << 10, 2U << 20};
  int iterations = 1500;
  RankOptions rank;
  bool spins = false;
};

double percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

// A collective is slow if it takes three times the median and half a millisecond more. Its cause is
// the thread that did not run for at least half of the excess time.
std::string causes(const Measured& measured, double median_us) {
  constexpr double kSlowFactor = 3;
  constexpr double kSlowByUs = 500;
  int slow = 0;
  int woken_late = 0;
  int proxy = 0;
  int main = 0;
  for (std::size_t i = 0; i < measured.took_us.size(); ++i) {
    const double late_us = measured.took_us[i] - median_us;
    if (late_us < kSlowByUs || measured.took_us[i] < kSlowFactor * median_us) continue;
    ++slow;
    if (measured.proxy_woken_us[i] > late_us / 2)
      ++woken_late;
    else if (measured.proxy_gap_us[i] > late_us / 2)
      ++proxy;
    else if (measured.main_gap_us[i] > late_us / 2)
      ++main;
  }
  return fmt::format(
      "{} slow: proxy woken late {}, proxy lost its CPU {}, main lost its CPU {}, other threads or "
      "the peer {}",
      slow, woken_late, proxy, main, slow - woken_late - proxy - main);
}

void report(int rank, std::size_t bytes, const Measured& measured) {
  const auto& took = measured.took_us;
  const double median = percentile(took, 0.5);
  std::string text = fmt::format(
      "rank {} {:>9} B  min {:.0f} p50 {:.0f} p99 {:.0f} p99.9 {:.0f} max {:.0f} us; {}\n", rank,
      bytes, percentile(took, 0), median, percentile(took, 0.99), percentile(took, 0.999),
      percentile(took, 1), causes(measured, median));
  text += threads_text(measured.before, measured.after);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int run_rank(int rank, int peer, const Options& options) {
  try {
    const auto net = perf::load_plugin(options.plugin, 0);
    if (net->init(perf::make_logger(rank, perf::LogLevel::kWarn)) != ncclSuccess)
      perf::fail("init failed");
    Rank one(*net, peer, options.rank);
    for (const std::size_t bytes : options.sizes) {
      const Measured measured = one.measure(bytes, options.iterations);
      report(rank, bytes, measured);
    }
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "rank %d: %s\n", rank, exception.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

int run(const Options& options) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return EXIT_FAILURE;
  setenv("LOCAL_WORLD_SIZE", "2", /*replace=*/0);
  pid_t children[2];
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    ::close(sockets[1 - rank]);
    setenv("ZTCP_LOCAL_RANK", std::to_string(rank).c_str(), /*replace=*/1);
    std::exit(run_rank(rank, sockets[rank], options));
  }
  for (const int socket : sockets) ::close(socket);
  int result = EXIT_SUCCESS;
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) result = EXIT_FAILURE;
  }
  return result;
}

}  // namespace
}  // namespace ztcp::bench

int main(int argc, char** argv) {
  ztcp::bench::Options options;
  CLI::App app{"Tails of collectives between two ranks of this machine, and their causes"};
  app.add_option("--plugin", options.plugin, "the libnccl-net.so to load");
  app.add_option("--sizes", options.sizes, "bytes of a collective")->delimiter(',');
  app.add_option("--iters", options.iterations, "measured collectives of a size");
  app.add_option("--channels", options.rank.channels, "connections in each direction");
  app.add_flag("--spin", options.spins, "the main thread spins without yielding");
  CLI11_PARSE(app, argc, argv);
  options.rank.channels = std::max<std::size_t>(options.rank.channels, 1);
  if (options.spins) options.rank.wait = ztcp::bench::MainWait::kSpins;
  options.rank.largest_bytes = *std::max_element(options.sizes.begin(), options.sizes.end());
  return ztcp::bench::run(options);
}
