// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Facts about one rank, which it tells rank 0. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace ztcp::perf::job {

struct RankFacts {
  std::string host;
  // Ranks of one machine and one network namespace share it: NCCL joins them by memory.
  std::string machine;
  std::string version;    // That of ztcp_perf.
  std::string variables;  // NCCL's, as in NcclChoice.
  std::string library;    // The file that was loaded, with its path.
  std::string digest;     // Begin of its SHA-256.
  std::string table;      // "ncclNetPlugin_v12"
  // Why NCCL of this rank will not use ztcp; empty: it will. `mend` may be part of it.
  std::string problem;
  std::string mend;
  bool has_started = false;  // The plugin's init has succeeded.
  std::string transport;     // "kernel sockets"; several: "kernel sockets and RDMA verbs".
  std::string reason;        // For the transport: "ZTCP_TRANSPORT=sockets; NCCL_SOCKET_IFNAME=eth0"
  std::vector<std::string> nics;
  std::vector<std::string> lines;  // The plugin's line for each NIC, then its warnings.
  int cpus = 0;                    // Those that the process may use.
  std::string plain_address;       // Where the compared kernel sockets listen.
  std::string plain_reason;
};

nlohmann::json to_json(const RankFacts& facts);
// Throws Failure if `text` is malformed.
RankFacts facts_of(std::string_view text);

// The transports and NICs that the plugin's lines name, and their reason; `demanded` is
// ZTCP_TRANSPORT, or empty, `config` the path of the config, or empty where there is none.
void read_lines(RankFacts& facts, const std::string& demanded, const std::string& config);

// Ranks by host, in the order of their first ranks.
std::vector<std::vector<int>> ranks_by_host(const std::vector<RankFacts>& ranks);
// "rank 3", "ranks 0-3, 6"
std::string rank_list(const std::vector<int>& ranks);

}  // namespace ztcp::perf::job
