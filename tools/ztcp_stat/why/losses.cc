// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Losses and timeouts by peer: retransmissions that the peer needed.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

constexpr double kLossShare = 0.0005;
constexpr double kSevereLossShare = 0.01;
constexpr double kFewestSegments = 3;  // Fewer are chance.
constexpr std::uint32_t kSevereTimeouts = 3;

struct Sums {
  const stats::Connection* connection = nullptr;
  double sent_bytes = 0;
  double lost_bytes = 0;
  double lost_segments = 0;
  std::uint64_t timeouts = 0;
  double share() const { return sent_bytes > 0 ? lost_bytes / (sent_bytes + lost_bytes) : 0; }
};

// By peer and device.
using ByPath = std::map<std::pair<std::string, std::uint32_t>, Sums>;

ByPath sum_by_path(const Case& one) {
  ByPath paths;
  for (const stats::Flow& flow : one.now().flows) {
    const stats::Connection* connection = one.window.connection_of(flow);
    if (connection == nullptr) continue;
    const stats::Flow* then = one.window.before(flow);
    const stats::Flow none;
    const stats::Flow& old = then == nullptr ? none : *then;
    const std::uint64_t again = growth(flow.retransmitted_bytes, old.retransmitted_bytes);
    const std::uint64_t needless = growth(flow.needless_bytes, old.needless_bytes);
    const auto lost = static_cast<double>(again - std::min(again, needless));
    Sums& sums = paths[{peer_host(*connection), connection->device}];
    sums.connection = connection;
    sums.sent_bytes += static_cast<double>(growth(flow.sent_bytes, old.sent_bytes));
    sums.lost_bytes += lost;
    sums.lost_segments += lost / std::max<double>(flow.mss_bytes, 536);
    sums.timeouts += growth(flow.timeouts, old.timeouts);
  }
  return paths;
}

// Losses to most of the peers come from this host's side of the network.
std::string spread_text(const ByPath& paths, std::size_t lossy, std::uint32_t device,
                        const std::string& name) {
  const auto all =
      static_cast<std::size_t>(std::count_if(paths.begin(), paths.end(), [&](const auto& path) {
        return path.first.second == device && path.second.sent_bytes > 0;
      }));
  if (all < 3) return "";
  if (lossy * 2 > all)
    return fmt::format(
        "; {} of the {} peers of {} lose: suspect this host's NIC, cable or switch "
        "port",
        lossy, all, name);
  return fmt::format("; {} of the {} peers of {} lose: suspect theirs", lossy, all, name);
}

}  // namespace

void find_losses(const Case& one, Findings& findings) {
  const ByPath paths = sum_by_path(one);
  std::map<std::uint32_t, std::size_t> lossy;  // Peers by device.
  const auto is_lossy = [](const Sums& sums) {
    return sums.lost_segments >= kFewestSegments && sums.share() >= kLossShare;
  };
  for (const auto& [path, sums] : paths) lossy[path.second] += is_lossy(sums) ? 1 : 0;
  for (const auto& [path, sums] : paths) {
    const stats::Device* device = device_of(one.now(), path.second);
    const std::string name = device == nullptr ? "its device" : device->name;
    const std::string subject = "peer " + peer_name(*sums.connection);
    const std::string window = seconds_text(one.window.seconds());
    if (is_lossy(sums))
      findings.push_back(
          {sums.share() >= kSevereLossShare ? Severity::kSevere : Severity::kWarning, Rule::kLosses,
           subject,
           fmt::format("lost {} of the bytes that {} sent in the last {} ({} of {} were sent "
                       "again{}){}",
                       share_text(sums.share()), name, window,
                       bytes_text(static_cast<std::uint64_t>(sums.lost_bytes)),
                       bytes_text(static_cast<std::uint64_t>(sums.sent_bytes)),
                       sums.timeouts == 0 ? "" : fmt::format(", timeouts: {}", sums.timeouts),
                       spread_text(paths, lossy[path.second], path.second, name)),
           "ethtool -S and the switch's port counters, on both ends", sums.share()});
    if (sums.timeouts > 0 && !is_lossy(sums))
      findings.push_back(
          {sums.timeouts >= kSevereTimeouts ? Severity::kSevere : Severity::kWarning,
           Rule::kTimeouts, subject,
           fmt::format("cost {} {} of {} in the last {}: the tail of a burst, or all of it, was "
                       "lost",
                       sums.timeouts,
                       sums.timeouts == 1 ? "retransmission timeout" : "retransmission timeouts",
                       name, window),
           "ethtool -S and the switch's port counters, on both ends",
           static_cast<double>(sums.timeouts)});
  }
}

}  // namespace ztcp::stat
