// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ZTCP_* variables, read once. Misspelt ones are reported: a variable that silently does
// nothing costs an afternoon.
#pragma once

#include <cstdint>
#include <string>

#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::config {

// ZTCP_TRANSPORT: which of the NICs a process uses, whatever the config has beside them.
enum class TransportRequest : std::uint8_t { kConfigs, kUstack, kSockets, kVerbs, kUnknown };

struct Environment {
  std::string config_path = kDefaultPath;  // ZTCP_CONFIG
  std::string log_file;                    // ZTCP_LOG; empty: none.
  OnError on_error = OnError::kFail;       // ZTCP_ON_ERROR
  TransportRequest transport = TransportRequest::kConfigs;
  std::string transport_text;  // As it was written.
  int local_rank = -1;         // ZTCP_LOCAL_RANK; -1: unset.
  // Why NCCL's channels are not ours to choose: ZTCP_TUNER=off, or a variable of NCCL's that says
  // who or how many; empty: they are.
  std::string untuned_by;
  std::string tuner_fault;  // Why ZTCP_TUNER can't be honoured; empty: it can.
  // NCCL_NCHANNELS_PER_NET_PEER, from 1 to 64 as NCCL takes it; 0: not set.
  std::uint8_t channels_per_peer = 0;
  // NCCL_NET names ztcp: NCCL ends a job rather than use another network. NCCL puts what its own
  // files say (/etc/nccl.conf) into the environment before it loads us.
  bool ztcp_is_demanded = false;
  // NCCL_NET_OPTIONAL_RECV_COMPLETION, by which NCCL 2.24 and later leave out what tells a receive
  // that nobody polls from others.
  bool receives_are_told_apart = true;
  Problems problems;  // Unknown variables and values out of range.
};

// `variables` is an environ-like array: "NAME=value" strings, then nullptr.
Environment read_environment(const char* const* variables);
// That of this process.
Environment read_environment();

}  // namespace ztcp::config
