// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why/case.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp::stat {

std::string process_name(const stats::Process& process) {
  std::string detail;
  if (process.rank >= 0) detail = fmt::format("rank {}", process.rank);
  if (process.rank >= 0 && process.ranks > 0) detail += fmt::format(" of {}", process.ranks);
  if (!process.command.empty()) detail += (detail.empty() ? "" : ", ") + process.command;
  return fmt::format("process {}{}", process.pid, detail.empty() ? "" : " (" + detail + ")");
}

std::string device_name(const Case& one, const stats::Device& device) {
  return fmt::format("{} of process {}", device.name, one.now().process.pid);
}

std::string without_port(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (endpoint.starts_with('[')) {
    const auto end = endpoint.find(']');
    return endpoint.substr(1, end == std::string::npos ? end : end - 1);
  }
  // An IPv6 address without a port has several colons.
  if (colon == std::string::npos || endpoint.find(':') != colon) return endpoint;
  return endpoint.substr(0, colon);
}

std::string peer_host(const stats::Connection& connection) {
  if (!connection.peer_host.empty()) return connection.peer_host;
  return connection.peer.empty() ? "an unknown host" : without_port(connection.peer);
}

std::string peer_name(const stats::Connection& connection) {
  const std::string address = without_port(connection.peer);
  if (connection.peer_host.empty() || address.empty() || address == connection.peer_host)
    return peer_host(connection);
  return fmt::format("{} ({})", connection.peer_host, address);
}

const stats::Device* device_of(const stats::Snapshot& snapshot, std::uint32_t index) {
  const auto found =
      std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                   [&](const stats::Device& device) { return device.index == index; });
  return found == snapshot.devices.end() ? nullptr : &*found;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace ztcp::stat
