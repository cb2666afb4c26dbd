// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Packets that are smaller than the device's MTU allows: an MTU of 1500 on one host or hop.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

// IPv6 and TCP with timestamps and SACK blocks: 40 + 20 + 40.
constexpr std::uint32_t kMostHeaderBytes = 100;
constexpr std::uint32_t kSmallestMtu = 1000;  // Smaller devices are tests.
// No network carries larger packets. Over loopback the receiver's window limits segments, too.
constexpr std::uint32_t kLargestMtu = 16384;

bool has_comparable_mtu(const stats::Device& device) {
  return device.mtu_bytes >= kSmallestMtu && device.mtu_bytes <= kLargestMtu;
}

bool is_small(const stats::Flow& flow, const stats::Device& device) {
  return flow.mss_bytes > 0 && flow.sent_bytes > 0 && has_comparable_mtu(device) &&
         device.carrier != stats::Carrier::kRdma &&
         flow.mss_bytes + kMostHeaderBytes < device.mtu_bytes;
}

void find_small_mss(const Case& one, Findings& findings) {
  struct Small {
    const stats::Connection* connection;
    const stats::Device* device;
    std::uint32_t mss;
  };
  std::map<std::pair<std::string, std::uint32_t>, Small> small;
  for (const stats::Flow& flow : one.now().flows) {
    const stats::Connection* connection = one.window.connection_of(flow);
    if (connection == nullptr) continue;
    const stats::Device* device = device_of(one.now(), connection->device);
    if (device == nullptr || !is_small(flow, *device)) continue;
    const auto [entry, is_new] = small.try_emplace({peer_host(*connection), connection->device},
                                                   Small{connection, device, flow.mss_bytes});
    if (!is_new) entry->second.mss = std::min(entry->second.mss, flow.mss_bytes);
  }
  for (const auto& [path, peer] : small)
    findings.push_back(
        {Severity::kWarning, Rule::kMtu, "peer " + peer_name(*peer.connection),
         fmt::format(
             "gets segments of {} bytes although {} has an MTU of {}: the MTU of that host, "
             "or of a hop to it, is smaller",
             peer.mss, peer.device->name, peer.device->mtu_bytes),
         fmt::format("ping -M do -s {} {}", peer.device->mtu_bytes - 28,
                     without_port(peer.connection->peer)),
         static_cast<double>(peer.device->mtu_bytes) / peer.mss});
}

void find_path_mtu_cuts(const Case& one, Findings& findings) {
  for (const stats::Device& device : one.now().devices) {
    std::uint64_t cuts = 0;
    for (const stats::Lane& lane : one.now().lanes)
      if (lane.device == device.index) cuts += lane.counters[stats::Counter::kPathMtuCuts];
    if (cuts == 0) continue;
    findings.push_back(
        {Severity::kWarning, Rule::kMtu, device_name(one, device),
         fmt::format("has {} that went on with smaller packets: full ones of {} bytes do not reach "
                     "the peer; the log names it",
                     cuts == 1 ? "a connection" : fmt::format("{} connections", cuts),
                     device.mtu_bytes),
         "ztcp_setup --check  # on both hosts", static_cast<double>(cuts)});
  }
}

void find_unequal_mtus(const Case& one, Findings& findings) {
  const stats::Device* largest = nullptr;
  for (const stats::Device& device : one.now().devices)
    if (has_comparable_mtu(device) && (largest == nullptr || device.mtu_bytes > largest->mtu_bytes))
      largest = &device;
  if (largest == nullptr) return;
  for (const stats::Device& device : one.now().devices)
    if (device.carrier == largest->carrier && has_comparable_mtu(device) &&
        device.mtu_bytes < largest->mtu_bytes)
      findings.push_back({Severity::kNote, Rule::kMtu, device_name(one, device),
                          fmt::format("has an MTU of {}, {} has {}", device.mtu_bytes,
                                      largest->name, largest->mtu_bytes),
                          fmt::format("ip link show {}", device.nic), 0});
}

}  // namespace

void find_small_packets(const Case& one, Findings& findings) {
  find_small_mss(one, findings);
  find_path_mtu_cuts(one, findings);
  find_unequal_mtus(one, findings);
}

}  // namespace ztcp::stat
