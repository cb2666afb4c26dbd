// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ZTCP_* variables, read once. Misspelt ones are reported: a variable that silently does
// nothing costs an afternoon.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::config {

enum class OnError : std::uint8_t { kFail, kFallback };  // ZTCP_ON_ERROR
// ZTCP_TRANSPORT: the kind of NICs that a process uses out of those in the config.
enum class TransportRequest : std::uint8_t { kConfigs, kUstack, kSockets, kVerbs, kUnknown };

struct Environment {
  std::string config_path = kDefaultPath;  // ZTCP_CONFIG
  std::string log_file;                    // ZTCP_LOG; empty: none.
  OnError on_error = OnError::kFail;       // ZTCP_ON_ERROR
  TransportRequest transport = TransportRequest::kConfigs;
  std::string transport_text;       // As written.
  int local_rank = -1;              // ZTCP_LOCAL_RANK; -1: unset.
  bool has_statistics_page = true;  // ZTCP_STATISTICS
  // Why this library does not choose NCCL's channels: ZTCP_TUNER=off, or one of NCCL's variables
  // that sets the tuner or the number; empty: it does.
  std::string untuned_by;
  std::string tuner_fault;                  // Why ZTCP_TUNER cannot be honoured; empty: it can.
  std::optional<bool> collnet;              // ZTCP_COLLNET
  std::optional<CollnetWire> collnet_wire;  // ZTCP_COLLNET_WIRE
  std::string collnet_fault;  // Why one of these two cannot be honoured; empty: they can.
  // NCCL_NCHANNELS_PER_NET_PEER, from 1 to 64 as NCCL takes it; 0: not set.
  std::uint8_t channels_per_peer = 0;
  // NCCL_NET names ztcp: NCCL ends a job rather than use another network. NCCL puts the settings of
  // its own files (/etc/nccl.conf) into the environment before it loads the plugin.
  bool ztcp_is_demanded = false;
  // NCCL_NET_OPTIONAL_RECV_COMPLETION. If 0, NCCL 2.24 and later give no hint whether the GPU polls
  // a receive's buffer.
  bool receives_are_told_apart = true;
  Problems problems;  // Unknown variables and values out of range.
};

// `variables` is an environ-like array: "NAME=value" strings, then nullptr.
Environment read_environment(const char* const* variables);
// Reads this process's environment.
Environment read_environment();
// ZTCP_CONFIG, or kDefaultPath.
std::string config_path();

}  // namespace ztcp::config
