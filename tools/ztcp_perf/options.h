// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line, completed from a launcher's variables (environment.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace ztcp::perf {

enum class Op : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendRecv,
  kPing,
  kCollNet,
  kCollNetAllGather,
  kCollNetReduceScatter,
};
// All ranks' parts go to all.
constexpr bool is_gather(Op op) { return op == Op::kAllGather || op == Op::kCollNetAllGather; }
// Each rank gets a part of the sum.
constexpr bool is_scatter(Op op) {
  return op == Op::kReduceScatter || op == Op::kCollNetReduceScatter;
}
constexpr bool is_sum(Op op) {
  return op == Op::kAllReduce || op == Op::kCollNet || is_scatter(op);
}
// By the plugin's CollNet.
constexpr bool is_collnet(Op op) {
  return op == Op::kCollNet || op == Op::kCollNetAllGather || op == Op::kCollNetReduceScatter;
}
enum class LogLevel : std::uint8_t { kNone, kWarn, kInfo };
inline constexpr const char* kPluginName = "libnccl-net.so";

struct Options {
  std::string plugin;  // A path; without a slash the loader searches for it.
  std::string config;  // Exported as ZTCP_CONFIG when not empty.
  int abi = 0;         // 0: the newest the plugin has.
  Op op = Op::kAllReduce;
  std::uint64_t min_bytes = 8;
  std::uint64_t max_bytes = 64ULL << 20U;
  double factor = 8;
  int iters = 20;
  int warmup = 5;
  int tags = 1;  // Messages, with a tag each, per step.
  bool check = false;
  int check_iters = 1;
  double tolerance = 0;       // Share of a sum by which it may be wrong.
  std::optional<int> device;  // Otherwise local rank modulo the number of devices.
  std::string json;           // File, or "-" for stdout instead of the table.
  double time_budget_s = 0;   // 0: none.
  double stall_timeout_s = 60;
  double connect_timeout_s = 30;
  LogLevel log = LogLevel::kWarn;

  int ranks = 2;
  // This process's place; absent: start all ranks here.
  std::optional<int> rank;
  std::optional<int> local_rank;  // Absent: its position among the ranks of one machine.
  std::string rendezvous_host;
  std::uint16_t rendezvous_port = 0;
  std::string secret;     // Shared by all ranks; empty: none (secret.h).
  int listen_fd = -1;     // Rank 0's listening socket, if the launcher made it.
  bool launched = false;  // Started by our own launcher, which handles Ctrl-C.
  std::string command;    // As typed, for the report.

  // The settings that all ranks must agree on, as text.
  std::string plan() const;
  // The sizes to run, smallest first.
  std::vector<std::uint64_t> sizes() const;
};

const char* name_of(Op op);

// "node1:29777" or "[fd00::1]:29777". Throws Failure for another text.
struct Rendezvous {
  std::string host;
  std::uint16_t port = 0;
};
Rendezvous parse_rendezvous(const std::string& text);
// The plugin that is used without --plugin.
std::string default_plugin();

// "--json FILE: why", for the failure to write that file.
std::string json_failure(const std::string& path, const Error& error);
// Throws Failure if no report could be written to `path`, so that no long run loses its results.
// "" and "-" pass.
void check_json_path(const std::string& path);

// Sets this process's place among the ranks: from --rank, `rendezvous` (HOST:PORT) and
// `secret_file`, of which each may be empty, completed from a launcher's variables. Leaves
// Options::rank absent where there is neither: the caller starts all ranks here.
void place_rank(Options& options, const std::string& rendezvous, const std::string& secret_file);

// Ends the process for --help and for usage errors (with kExitUsage).
Options parse_options(int argc, char** argv);

}  // namespace ztcp::perf
