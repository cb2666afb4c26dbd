// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/path_log.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp::comms {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

bool PathLog::may_say(TimePoint now, Kind kind, IpAddress remote) {
  Said& said = of(kind);
  if (now < said.next) return false;
  said = {.next = now + kOncePer, .remote = remote, .is_open = true};
  return true;
}

void PathLog::on_trouble(TimePoint now, Endpoint remote, msg::PeerTrouble trouble,
                         Duration lasted) {
  const bool is_silent = trouble == msg::PeerTrouble::kSilent;
  // The device's own link is down, which was logged.
  if (is_silent && link_down_since_ != TimePoint{}) return;
  if (!may_say(now, is_silent ? Kind::kSilent : Kind::kStandsStill, remote.address)) return;
  deferred_log_.add(log::Level::kWarn, [&] {
    const std::string peer = to_string(remote.address);
    if (is_silent)
      return fmt::format(
          "{}: {} has not answered for {:.1f} s; messages to it wait: see whether that host is up "
          "(ping {}), and whether a switch or a cable on the way has failed",
          device_, peer, seconds(lasted), peer);
    return fmt::format(
        "{}: the process at {} has taken nothing for {:.1f} s, though its host's kernel answers; "
        "messages to it wait: see there whether it is stopped (state T of ps -o stat,pid,args: a "
        "debugger, scontrol suspend, docker pause) or kept from its CPUs",
        device_, peer, seconds(lasted));
  });
}

void PathLog::on_trouble_over(TimePoint, Endpoint remote, msg::PeerTrouble trouble,
                              Duration lasted) {
  const bool is_silent = trouble == msg::PeerTrouble::kSilent;
  Said& said = of(is_silent ? Kind::kSilent : Kind::kStandsStill);
  if (!said.is_open || said.remote != remote.address) return;
  said.is_open = false;
  deferred_log_.add(log::Level::kInfo, [&] {
    return fmt::format("{}: {} {} again, after {:.1f} s", device_, to_string(remote.address),
                       is_silent ? "answers" : "takes messages", seconds(lasted));
  });
}

void PathLog::on_redialled(TimePoint now, Endpoint remote, const msg::Redial& redial) {
  ++flows_redialled_;
  if (redial.has_left_bad_path()) ++flows_moved_;
  if (!may_say(now, redial.has_left_bad_path() ? Kind::kMoved : Kind::kRedialled, remote.address))
    return;
  if (redial.has_left_bad_path())
    return deferred_log_.add(log::Level::kInfo, [&] {
      return fmt::format(
          "{}: the flow from port {} to {} left its path, after {} retransmission timeouts and "
          "with {} % of its bytes marked by switches, while other flows to that host had good "
          "paths; it goes on from port {} ({} such moves so far)",
          device_, redial.lost_port, to_string(remote), redial.timeouts, redial.marked_percent,
          redial.port, flows_moved_);
    });
  deferred_log_.add(log::Level::kInfo, [&] {
    return fmt::format(
        "{}: a flow to {} was lost and has been dialled again, {:.1f} s after it stopped, from "
        "port {} instead of {} ({} flows_redialled so far)",
        device_, to_string(remote), seconds(redial.lasted), redial.port, redial.lost_port,
        flows_redialled_);
  });
}

void PathLog::on_small_segments(TimePoint now, Endpoint remote, std::uint32_t segment_bytes) {
  if (!may_say(now, Kind::kSmall, remote.address)) return;
  deferred_log_.add(log::Level::kWarn, [&] {
    return fmt::format(
        "{}: large packets to {} do not arrive, small ones do: {} has an MTU of {} bytes, and a "
        "smaller one on the path drops packets silently (ping -M do -s {} {} shows it); going on "
        "with segments of {} bytes, which costs speed. Set the path's MTU on both hosts (ip link "
        "set dev {} mtu 1500), let ICMP \"fragmentation needed\" through, or sysctl -w "
        "net.ipv4.tcp_mtu_probing=1",
        device_, to_string(remote.address), interface_, mtu_bytes_,
        mtu_bytes_ - std::min(mtu_bytes_, 28U), to_string(remote.address), segment_bytes,
        interface_);
  });
}

void PathLog::loss(TimePoint now, IpAddress remote, std::uint64_t repeated_bytes,
                   std::uint64_t sent_bytes, Duration span) {
  if (!may_say(now, Kind::kLoss, remote)) return;
  deferred_log_.add(log::Level::kWarn, [&] {
    return fmt::format(
        "{}: {:.2f} % of the bytes sent in {:.0f} s were sent again ({} of {}, most to {}): the "
        "network between loses packets; look at the error and drop counters of the switches and "
        "of both NICs (ip -s link, ethtool -S)",
        device_, 100.0 * static_cast<double>(repeated_bytes) / static_cast<double>(sent_bytes),
        seconds(span), repeated_bytes, sent_bytes, to_string(remote));
  });
}

void PathLog::link_down(TimePoint now, const std::string& why) {
  link_down_since_ = now;
  if (!may_say(now, Kind::kLink, {})) return;
  deferred_log_.add(log::Level::kWarn, [&] { return device_ + ": " + why; });
}

void PathLog::link_up(TimePoint now, const std::string& what) {
  const Duration lasted = now - std::exchange(link_down_since_, TimePoint{});
  Said& said = of(Kind::kLink);
  if (!std::exchange(said.is_open, false)) return;
  deferred_log_.add(log::Level::kInfo, [&] {
    return fmt::format("{}: {}, after {:.1f} s", device_, what, seconds(lasted));
  });
}

}  // namespace ztcp::comms
