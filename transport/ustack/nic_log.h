// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The log lines of a NIC: its removal or reset, warnings about frequent errors (nic_watch.h), path
// MTU changes, and its counters when the last connection is closed.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "transport/comms/deferred_log.h"
#include "transport/link/link.h"
#include "transport/tcp/statistics.h"
#include "transport/ustack/engine/nic_counts.h"
#include "transport/ustack/engine/nic_watch.h"

namespace ztcp::ustack {

// "sent 12 frames (3456 bytes), received ...; 1 rejected_keys, 2 malformed_frames"
std::string summary(const NicCounts& counts);
// "rejected 37 connections without a valid hello in 3 s (30 rejected_bad_magic, ...): <advice>"
std::string warning(const Finding& finding);
// "packets of 9000 bytes do not reach 10.0.0.2, small ones do: a connection goes on with ..."
std::string path_text(const tcp::PathMtuChange& change);
// "congestion control to 10.0.0.2: bbr, since packets are lost without a queue on the way ..."
std::string control_text(const tcp::CongestionControlChange& change);
// "the flow from port 40000 to fd00::2:7471 changed its IPv6 flow label to leave its path, ..."
std::string reroute_text(const tcp::Reroute& reroute);
// "the router fe80::2 leads to other networks now, in place of fe80::1"
std::string router_text(const tcp::RouterChange& change);
// "the lifetime of the address fd00::1 is over, and the router fe80::2 has not renewed it: ..."
std::string address_text(const tcp::AddressChange& change);
// "address fd00::1 belongs to the host with MAC address ..., too: ..."
std::string duplicate_text(IpAddress own, const MacAddress& other);

class NicLog {
 public:
  // Least time between two lines "no connection is left": some jobs open and close connections in a
  // loop.
  static constexpr Duration kNobodyLeftInterval = std::chrono::minutes(1);
  static constexpr Duration kPathInterval = std::chrono::minutes(1);

  // Lines go into `deferred_log`, to be written without the baton.
  NicLog(std::string name, std::string link_description, comms::DeferredLog& deferred_log)
      : name_(std::move(name)),
        link_description_(std::move(link_description)),
        deferred_log_(deferred_log) {}

  // --- Any thread: texts for a lost link ---------------------------------------------------------
  // "NIC ztcp0 (0000:3b:00.0 net_virtio) was taken out of this machine"
  std::string lost_reason(LinkState state) const;
  static const char* lost_advice(LinkState state);
  static Error lost_error(LinkState state);

  // --- With the baton held: add a line -----------------------------------------------------------
  void link_lost(LinkState state);
  void warn(const Finding& finding);
  // Once a minute for each host unless the MTU shrinks again: all connections to it see the change.
  void path_mtu(TimePoint now, const tcp::PathMtuChange& change);
  void duplicate_address(IpAddress own, const MacAddress& other);
  // Once a minute for each host.
  void congestion_control(TimePoint now, const tcp::CongestionControlChange& change);
  // Once a minute for each host.
  void reroute(TimePoint now, const tcp::Reroute& reroute);
  // Once a minute for each kind of change.
  void address(TimePoint now, const tcp::AddressChange& change);
  // Once a minute for each of the first routers.
  void router(TimePoint now, const tcp::RouterChange& change);
  void nobody_left(TimePoint now, const NicCounts& counts);

 private:
  template <class MakeLine>
  void add(log::Level level, MakeLine&& make_line);

  const std::string name_;
  const std::string link_description_;
  comms::DeferredLog& deferred_log_;
  TimePoint next_nobody_left_{};
  struct ToldPath {
    IpAddress remote;
    std::uint32_t now_bytes = 0;
    bool larger = false;
    TimePoint told{};
  };
  std::vector<ToldPath> told_paths_;  // One for each host with a logged change.
  struct ToldHost {
    IpAddress remote;
    TimePoint told{};
  };
  // The same. True: the line is to be written.
  static bool may_tell(std::vector<ToldHost>& told, TimePoint now, IpAddress remote);
  std::vector<ToldHost> told_controls_;
  std::vector<ToldHost> told_reroutes_;
  struct ToldRouter {
    IpAddress router;
    TimePoint told{};
  };
  std::array<TimePoint, 4> next_address_{};   // By the kind of change.
  std::array<ToldRouter, 8> told_routers_{};  // By address; the oldest is replaced.
};

}  // namespace ztcp::ustack
