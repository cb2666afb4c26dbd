// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of RDMA connections that have failed and are not back.
#include <map>
#include <set>

#include <fmt/format.h>

#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {

bool is_lost_rail(const stats::Flow& flow) { return flow.failures > flow.recoveries; }

void find_lost_rails(const Case& one, Findings& findings) {
  struct Rail {
    std::set<std::string> peers;
    std::set<std::string> all_peers;
    const stats::Connection* connection = nullptr;
    std::string remote;
  };
  std::map<std::pair<std::uint32_t, std::string>, Rail> rails;
  for (const stats::Flow& flow : one.now().flows) {
    const stats::Connection* connection = one.window.connection_of(flow);
    if (connection == nullptr) continue;
    Rail& rail = rails[{connection->device, flow.local}];
    rail.all_peers.insert(peer_host(*connection));
    if (!is_lost_rail(flow)) continue;
    rail.peers.insert(peer_host(*connection));
    rail.connection = connection;
    rail.remote = flow.remote;
  }
  for (const auto& [key, rail] : rails) {
    if (rail.peers.empty()) continue;
    const stats::Device* device = device_of(one.now(), key.first);
    const bool is_ours = rail.peers.size() > 1 && rail.peers.size() == rail.all_peers.size();
    findings.push_back(
        {Severity::kWarning, Rule::kUnreachable,
         device == nullptr ? process_name(one.now().process) : device_name(one, *device),
         rail.peers.size() == 1
             ? fmt::format("has lost the rail over {} to {} at peer {}; its messages go over other "
                           "rails",
                           key.second, rail.remote, peer_name(*rail.connection))
             : fmt::format("has lost the rail over {} to {} of {} peers{}; their messages go over "
                           "other rails",
                           key.second, rail.peers.size(), rail.all_peers.size(),
                           is_ours ? ": suspect this host's NIC, cable or switch port" : ""),
         "rdma link  # on both hosts", static_cast<double>(rail.peers.size())});
  }
}

}  // namespace ztcp::stat
