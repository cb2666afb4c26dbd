// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/options.h"

#include <cstdlib>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "tools/common/quantity.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::job {
namespace {

constexpr double kLongestSeconds = 3600;
constexpr std::uint64_t kDefaultBytes = std::uint64_t{32} << 20U;
constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10U;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;

constexpr const char* kExamples = R"(
Start it as the job is started, with the same variables, on the same hosts:
  torchrun ... --no-python ztcp_perf check-job
  mpirun -np 16 -H gpu1:8,gpu2:8 -x NCCL_NET_PLUGIN -x ZTCP_TRANSPORT ztcp_perf check-job \
      --rendezvous gpu1:29777
  srun -N 2 -n 16 ztcp_perf check-job
By hand, on each host:
  ztcp_perf check-job --ranks 2 --rank 0 --rendezvous gpu1:29777     (1 on the other host)
Without a launcher two ranks start on this host, which tries the set-up alone.

Exit status: 0 NCCL of all ranks will use ztcp, 1 it will not or a rank failed, 2 usage,
3 another rank failed, 130 interrupted.
)";

void check_values(const JobOptions& o) {
  if (o.run.ranks < 2) fail("--ranks {}: at least 2 are needed to send anything", o.run.ranks);
  for (const auto& [option, seconds] : {std::pair{"--seconds", o.limits.seconds},
                                        std::pair{"--connect-timeout", o.run.connect_timeout_s},
                                        std::pair{"--stall-timeout", o.run.stall_timeout_s}})
    if (!(seconds <= kLongestSeconds))
      fail("{} {}: must be seconds, at most {}", option, seconds, kLongestSeconds);
  if (o.run.max_bytes < kLeastBytes || o.run.max_bytes > kMostBytes)
    fail("--size {}: must be from 64K to 1G", o.run.max_bytes);
}

}  // namespace

JobOptions parse_job_options(int argc, char** argv) {
  JobOptions o;
  o.run.op = Op::kAllReduce;
  o.run.max_bytes = kDefaultBytes;
  o.run.stall_timeout_s = 20;
  o.run.log = LogLevel::kNone;
  std::string rendezvous;
  std::string secret_file;
  std::string size;
  std::string log = "none";
  int rank = -1;
  CLI::App app(
      "Tells, under a job's own launcher, which transport each host takes and why, what NCCL will "
      "use, and whether ztcp is faster than plain kernel sockets. Needs neither GPUs nor NCCL.",
      "ztcp_perf check-job");
  app.footer(kExamples);
  app.add_option("--plugin", o.run.plugin,
                 "Check as if NCCL_NET_PLUGIN were this path; default: what NCCL would load");
  app.add_option("--config", o.run.config, "ztcp.conf for the plugin (ZTCP_CONFIG)");
  app.add_option("--abi", o.run.abi, "Use ncclNetPlugin_vN; default: the newest one in the plugin")
      ->check(CLI::Range(6, 12));
  app.add_option("--seconds", o.limits.seconds, "Time for the measurement, default 6")
      ->check(CLI::PositiveNumber);
  app.add_option("--turns", o.limits.turns, "Measurements of each network, in turns, default 5")
      ->check(CLI::Range(1, 1000));
  app.add_option("--size", size, "Size of the all-reduce, default 32M; a slow network reduces it");
  app.add_option("--connect-timeout", o.run.connect_timeout_s,
                 "Seconds for ranks to find each other and to connect, default 30")
      ->check(CLI::PositiveNumber);
  app.add_option("--stall-timeout", o.run.stall_timeout_s,
                 "Fail when nothing moves for this many seconds, default 20")
      ->check(CLI::PositiveNumber);
  app.add_option("--json", o.run.json, "Write the result as JSON to FILE, or - for stdout");
  app.add_option("--log", log, "Level of the plugin's messages on stderr, default none")
      ->check(CLI::IsMember({"none", "warn", "info"}));
  app.add_option("--ranks", o.run.ranks, "Total number of ranks; default: the launcher's, else 2");
  app.add_option("--rank", rank, "Run as this rank; default: the launcher's")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rendezvous", rendezvous, "HOST:PORT of rank 0's listener");
  app.add_option("--secret-file", secret_file,
                 "File with a text that all ranks share; keeps other programs out");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? kExitOk : kExitUsage);
  }
  if (!size.empty()) {
    const auto bytes = tools::parse_bytes(size);
    if (!bytes) fail("--size {}: not a size (64K, 32M, 1G)", size);
    o.run.max_bytes = *bytes;
  }
  if (log != "none") o.run.log = log == "warn" ? LogLevel::kWarn : LogLevel::kInfo;
  o.run.iters = o.limits.turns;  // All ranks must agree on it.
  if (rank >= 0) o.run.rank = rank;
  place_rank(o.run, rendezvous, secret_file);
  check_values(o);
  if (o.run.rank.value_or(0) == 0) check_json_path(o.run.json);
  return o;
}

}  // namespace ztcp::perf::job
