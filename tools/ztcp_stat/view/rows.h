// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The rows of the view: processes, devices and connections with their rates, the worst first. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/ztcp_stat/look/look.h"
#include "tools/ztcp_stat/look/window.h"

namespace ztcp::stat {

// Identifies a connection across looks: file of its page, Connection::id.
using ConnectionKey = std::pair<std::string, std::uint64_t>;

struct ProcessRow {
  stats::Process process;
  char state = '?';
  std::size_t devices = 0;
  std::size_t connections = 0;
  double send_rate = 0;     // Bytes per second.
  double receive_rate = 0;  // Bytes per second.
  double throttled_share = 0;
  std::uint64_t late_turns = 0;
};

struct DeviceRow {
  std::uint32_t pid = 0;
  stats::Device device;
  std::size_t lanes = 0;
  std::uint32_t connections = 0;
  std::uint32_t queue_depth = 0;
  double send_rate = 0;
  double receive_rate = 0;
  double loss_share = 0;  // Needed retransmissions.
  std::uint64_t timeouts = 0;
  std::uint64_t dropped = 0;  // By the NIC and its pool.
};

struct ConnectionRow {
  ConnectionKey key;
  std::uint32_t pid = 0;
  std::string device;
  stats::Connection connection;
  double rate = 0;
  std::size_t flows = 0;
  std::size_t lost_flows = 0;    // Rails of RDMA that have failed and are not back.
  std::uint64_t rtt_p50_ns = 0;  // The slowest flow has it.
  std::uint64_t rtt_p99_ns = 0;
  std::uint64_t cwnd_bytes = 0;  // Sums.
  std::uint64_t in_flight_bytes = 0;
  double loss_share = 0;
  std::uint64_t timeouts = 0;
  double badness = 0;  // 0: nothing is wrong.
};

struct DamagedRow {
  std::string file;
  std::string error;
};

struct Rows {
  std::vector<ProcessRow> processes;
  std::vector<DeviceRow> devices;
  std::vector<ConnectionRow> connections;
  std::vector<DamagedRow> damaged;
};

enum class Sort : std::uint8_t { kWorst, kRate, kRtt, kLosses, kWait, kPeer };
inline constexpr std::size_t kSorts = 6;
const char* name_of(Sort sort);

// `filter`: only devices and connections with this text in device, peer, host or state; empty: all.
Rows rows_of(const Look* before, const Look& after, Sort sort, const std::string& filter);

// "peer's data": what the oldest message of a connection waits for.
const char* text_of(stats::Waiting waiting);
const char* text_of(stats::Carrier carrier);
const char* text_of(stats::LinkStatus link);

}  // namespace ztcp::stat
