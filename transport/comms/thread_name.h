// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Names of threads. The kernel keeps 15 bytes, which must tell NIC, lane and worker apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace ztcp::comms {

inline constexpr std::size_t kThreadNameBytes = 15;

// "ztcp-<nic><suffix>"; if that is too long, "z-" and the end of the NIC's name, where names of
// NICs differ. `more` bytes are left free for the caller to append.
inline std::string thread_name(std::string_view nic, std::string_view suffix,
                               std::size_t more = 0) {
  constexpr std::string_view kLong = "ztcp-";
  constexpr std::string_view kShort = "z-";
  const std::size_t room = kThreadNameBytes - more - suffix.size();
  std::string name(nic.size() + kLong.size() <= room ? kLong : kShort);
  name += nic.substr(nic.size() - std::min(nic.size(), room - name.size()));
  return name += suffix;
}

}  // namespace ztcp::comms
