// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/schema.h"
#include "tools/common/atomic_file.h"
#include "tools/common/quantity.h"
#include "tools/ztcp_perf/environment.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/secret.h"

namespace ztcp::perf {

void place_rank(Options& o, const std::string& rendezvous, const std::string& secret_file) {
  const Lookup environment = process_environment();
  std::string first_host;
  if (!rendezvous.empty()) {
    const Rendezvous given = parse_rendezvous(rendezvous);
    o.rendezvous_host = given.host;
    o.rendezvous_port = given.port;
  }
  if (!o.rank) {
    const auto place = place_in(environment);
    if (!place) return;
    o.rank = place->rank;
    o.ranks = place->ranks;
    o.local_rank = place->local_rank;
    first_host = place->first_host;
  }
  if (const auto local = number_in(environment, "ZTCP_LOCAL_RANK")) o.local_rank = *local;
  if (o.rendezvous_host.empty())
    o.rendezvous_host = environment("MASTER_ADDR").value_or(first_host);
  if (o.rendezvous_port == 0) o.rendezvous_port = rendezvous_port(environment);
  if (o.rendezvous_host.empty())
    fail("rank {} does not know where rank 0 is: give --rendezvous HOST:PORT (or MASTER_ADDR)",
         *o.rank);
  if (*o.rank >= o.ranks) fail("--rank {} with --ranks {}: ranks count from 0", *o.rank, o.ranks);
  o.secret = find_secret(secret_file, environment);
  unsetenv("ZTCP_PERF_SECRET_FD");  // Its descriptor is closed.
  o.listen_fd = number_in(environment, "ZTCP_PERF_LISTEN_FD").value_or(-1);
  if (const auto command = environment("ZTCP_PERF_LAUNCHED")) {
    o.launched = true;
    o.command = *command;
  }
}

namespace {

// Local ranks are one process each.
constexpr int kMaxLocalRanks = 1024;
constexpr int kMaxRanks = 65536;
constexpr double kLargestFactor = 1e6;
constexpr double kLongestSeconds = 1e7;

void check_values(const Options& o) {
  if (o.ranks < 2) fail("--ranks {}: at least 2 are needed to send anything", o.ranks);
  if (!o.rank && o.ranks > kMaxLocalRanks)
    fail("--ranks {}: at most {} are started on one machine; give --rank and --rendezvous for more",
         o.ranks, kMaxLocalRanks);
  if (o.ranks > kMaxRanks) fail("--ranks {}: at most {}", o.ranks, kMaxRanks);
  if (o.max_bytes < o.min_bytes) fail("--max is smaller than --min");
  if (!(o.factor > 1 && o.factor <= kLargestFactor))
    fail("--factor {}: must be greater than 1, and at most {}", o.factor, kLargestFactor);
  for (const auto& [option, seconds] : {std::pair{"--stall-timeout", o.stall_timeout_s},
                                        std::pair{"--connect-timeout", o.connect_timeout_s},
                                        std::pair{"--time-budget", o.time_budget_s}})
    if (!(seconds <= kLongestSeconds))
      fail("{} {}: must be seconds, at most {}", option, seconds, kLongestSeconds);
  if (o.iters < 1 || o.warmup < 0 || o.check_iters < 1)
    fail("--iters and --check-iters must be at least 1, --warmup at least 0");
}

// Parses a size option, such as "64M".
std::function<void(const std::string&)> bytes_into(std::uint64_t& value, const char* option) {
  return [&value, option](const std::string& text) {
    const auto bytes = tools::parse_bytes(text);
    if (!bytes || *bytes == 0)
      throw CLI::ValidationError(option, fmt::format("'{}' is not a size (8, 64K, 1G)", text));
    value = *bytes;
  };
}

// Parses an option with a fixed set of words.
template <class T>
std::function<void(const std::string&)> word_into(
    T& value, const char* option, std::vector<std::pair<std::string_view, T>> words) {
  return [&value, option, words = std::move(words)](const std::string& text) {
    const auto word = std::ranges::find(words, text, &std::pair<std::string_view, T>::first);
    if (word != words.end()) {
      value = word->second;
      return;
    }
    std::vector<std::string_view> known;
    for (const auto& [name, meaning] : words) known.push_back(name);
    const std::string_view meant = config::nearest(text, known);
    throw CLI::ValidationError(
        option, fmt::format("'{}' is not one of {}{}", text, fmt::join(known, ", "),
                            meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant)));
  };
}

}  // namespace

const char* name_of(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kAllGather:
      return "all_gather";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kAllToAll:
      return "all_to_all";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kSendRecv:
      return "sendrecv";
    case Op::kPing:
      return "ping";
    case Op::kCollNet:
      return "collnet";
    case Op::kCollNetAllGather:
      return "collnet_all_gather";
    case Op::kCollNetReduceScatter:
      return "collnet_reduce_scatter";
  }
  return "?";
}

Rendezvous parse_rendezvous(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  unsigned port = 0;
  const char* end = text.data() + text.size();
  if (colon == std::string::npos || colon == 0 ||
      std::from_chars(text.data() + colon + 1, end, port).ptr != end || port == 0 || port > 65535)
    fail("--rendezvous {}: expected HOST:PORT", text);
  std::string host = text.substr(0, colon);
  // An IPv6 address in brackets.
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, static_cast<std::uint16_t>(port)};
}

std::string json_failure(const std::string& path, const Error& error) {
  return fmt::format("--json {}: {}", path,
                     error.code == Errc::kRefused ? error.where : std::strerror(error.sys_errno));
}

void check_json_path(const std::string& path) {
  if (path.empty() || path == "-") return;
  if (const Status can = tools::can_write_report(path); !can)
    fail("{}", json_failure(path, can.error()));
}

std::string default_plugin() {
  std::array<char, 4096> self;
  const ssize_t size = readlink("/proc/self/exe", self.data(), self.size());
  const std::string path(self.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const std::string beside = path.substr(0, path.rfind('/') + 1) + kPluginName;
  return !path.empty() && access(beside.c_str(), R_OK) == 0 ? beside : kPluginName;
}

std::string Options::plan() const {
  return fmt::format(
      "{} ranks={} min={} max={} factor={} iters={} warmup={} tags={} check={}x{} tolerance={} "
      "budget={}",
      name_of(op), ranks, min_bytes, max_bytes, factor, iters, warmup, tags, check, check_iters,
      tolerance, time_budget_s);
}

std::vector<std::uint64_t> Options::sizes() const {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = min_bytes; size <= max_bytes;) {
    sizes.push_back(size);
    const double next = std::round(static_cast<double>(size) * factor);
    if (next > static_cast<double>(max_bytes)) break;
    size = std::max(size + 1,
                    static_cast<std::uint64_t>(next));  // A small factor may round to the same.
  }
  return sizes;
}

Options parse_options(int argc, char** argv) {
  Options o;
  o.command = fmt::format("{}", fmt::join(argv, argv + argc, " "));
  CLI::App app(
      "Measures any NCCL network plugin without NCCL: loads it and drives it the way NCCL's proxy "
      "does. `ztcp_perf probe --help`: measures every pair of hosts and names the bad one. "
      "`ztcp_perf check-job --help`: tells what a job's NCCL will use, and whether it is faster.");
  app.set_version_flag("--version", "ztcp_perf " ZTCP_VERSION);
  std::string rendezvous;
  std::string secret_file;
  int rank = -1;
  int device = -1;
  CLI::Option* iters = nullptr;

  app.add_option(
      "--plugin", o.plugin,
      "The plugin: path of a libnccl-net.so; default: the one beside ztcp_perf, else that "
      "of the library path");
  app.add_option("--config", o.config, "ztcp.conf for the plugin (ZTCP_CONFIG)");
  app.add_option("--abi", o.abi, "Use ncclNetPlugin_vN; default: the newest one in the plugin")
      ->check(CLI::Range(6, 12));
  std::vector<std::pair<std::string_view, Op>> ops;
  std::vector<std::string_view> op_names;
  for (const Op op :
       {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kAllToAll, Op::kBroadcast,
        Op::kSendRecv, Op::kPing, Op::kCollNet, Op::kCollNetAllGather, Op::kCollNetReduceScatter}) {
    ops.emplace_back(name_of(op), op);
    op_names.emplace_back(name_of(op));
  }
  app.add_option_function<std::string>(
         "--op", word_into(o.op, "--op", std::move(ops)),
         "Operation to measure; collnet: all-reduce by the plugin's CollNet")
      ->type_name(fmt::format("{{{}}}", fmt::join(op_names, ",")));
  app.add_option_function<std::string>("--min", bytes_into(o.min_bytes, "--min"),
                                       "Smallest size, default 8");
  app.add_option_function<std::string>("--max", bytes_into(o.max_bytes, "--max"),
                                       "Largest size, default 64M");
  app.add_option("--factor", o.factor, "Ratio of successive sizes, default 8");
  iters = app.add_option("--iters", o.iters,
                         "Timed iterations, default 20 (ping: 1000); p99.9 needs 1000");
  app.add_option("--warmup", o.warmup, "Untimed iterations before them, default 5");
  app.add_option("--tags", o.tags,
                 "Cut every step into this many messages, each with its own tag, received as "
                 "one group, default 1")
      ->check(CLI::Range(1, 8));
  app.add_flag("--check", o.check, "Verify every element");
  app.add_option("--check-iters", o.check_iters,
                 "Further iterations on fresh data, each verified, default 1");
  app.add_option("--tolerance", o.tolerance,
                 "Share of a sum by which it may be wrong, for a plugin that rounds, default 0")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--device", device, "Use this device; default: local rank modulo devices")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--json", o.json, "Write the results as JSON to FILE, or - for stdout");
  app.add_option("--time-budget", o.time_budget_s,
                 "Seconds for all sizes together; slow sizes get fewer iterations")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--stall-timeout", o.stall_timeout_s,
                 "Fail when nothing moves for this many seconds, default 60")
      ->check(CLI::PositiveNumber);
  app.add_option("--connect-timeout", o.connect_timeout_s,
                 "Seconds for ranks to find each other and to connect, default 30")
      ->check(CLI::PositiveNumber);
  const auto log_into =
      word_into(o.log, "--log",
                {{"none", LogLevel::kNone}, {"warn", LogLevel::kWarn}, {"info", LogLevel::kInfo}});
  app.add_option_function<std::string>("--log", log_into,
                                       "Level of the plugin's messages on stderr, default warn")
      ->type_name("{none,warn,info}");
  app.add_option("--ranks", o.ranks, "Total number of ranks, default 2");
  app.add_option("--rank", rank, "Run as this rank; default: start all ranks on this machine")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rendezvous", rendezvous, "HOST:PORT of rank 0's listener");
  app.add_option(
      "--secret-file", secret_file,
      "File with a text that all ranks share; keeps other programs out of the rendezvous");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? kExitOk : kExitUsage);
  }
  if (o.plugin.empty()) o.plugin = default_plugin();
  if (rank >= 0) o.rank = rank;
  if (device >= 0) o.device = device;
  if (o.op == Op::kPing && iters->count() == 0) o.iters = 1000;
  place_rank(o, rendezvous, secret_file);
  check_values(o);
  if (o.rank.value_or(0) == 0) check_json_path(o.json);
  return o;
}

}  // namespace ztcp::perf
