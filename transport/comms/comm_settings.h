// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The settings of a communicator's connections, by what the application gives NCCL.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/transport.h"

namespace ztcp::comms {

struct CommSettings {
  std::uint64_t communicator = 0;      // NCCL's number; 0: not told.
  std::optional<std::uint8_t> dscp{};  // Absent: the NIC's.
  bool peer_shares_nic = false;        // See DialSettings.
};

// The DSCP is the upper six bits of a traffic class, which is the byte of the IP header; the lower
// two are TCP's, for ECN. Absent where there is no class (-1), or one that no packet can have.
std::optional<std::uint8_t> dscp_of(int traffic_class);

// Turns traffic classes into DSCPs. One for each transport, used under its mutex.
class TrafficClasses {
 public:
  // Logs each new class with the name of the NIC.
  CommSettings settings_for(const CommOptions& options, const std::string& nic,
                            std::uint16_t dscp_of_nic);

 private:
  std::optional<std::uint8_t> dscp_for(int traffic_class, const std::string& nic,
                                       std::uint16_t dscp_of_nic);

  std::bitset<64> told_;
  bool has_refused_ = false;
};

}  // namespace ztcp::comms
