// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The switch's command line: its ports and their impairments. Does not depend on DPDK.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tools/ztcp_switch/fabric_switch.h"

namespace ztcp::fabric {

struct PortOptions {
  enum class Kind : std::uint8_t { kMemif, kTap };

  Kind kind = Kind::kMemif;
  std::string target;  // The memif socket's path or the tap's name.
  std::uint32_t memif_id = 0;
  std::uint16_t mtu_bytes = 1500;
  PortSettings settings;
};

struct SwitchOptions {
  std::string config;
  std::vector<PortOptions> ports;
  SwitchSettings fabric;
  Duration stats_interval{};  // 0: only at SIGUSR1 and at the end.
  std::string json;
  std::optional<int> ready_fd;
  bool exit_with_parent = false;
  bool quiet = false;
  Duration spin = std::chrono::microseconds(50);
  Duration max_sleep = std::chrono::milliseconds(1);
};

// Each error is a text for the operator.

// Sets one "key=value" of an impairment in `to`.
Result<void, std::string> set_impairment(link::Impairment& to, std::string_view key,
                                         std::string_view value);
// Parses "memif:PATH[,key=value...]", "tap:NAME[,...]". Keys of impairments apply to frames that
// leave the switch; with "in." before them, to frames that enter. Both start from `defaults`.
Result<PortOptions, std::string> parse_port(std::string_view text, const PortSettings& defaults);
// Parses "nic:NAME[,...]": the same keys for the port of a NIC in the config.
Result<void, std::string> adjust_port(std::string_view text, std::vector<PortOptions>& ports);

// Parses the command line and the config it names. Ends the process for --help and usage errors.
SwitchOptions parse_options(int argc, char** argv);

}  // namespace ztcp::fabric
