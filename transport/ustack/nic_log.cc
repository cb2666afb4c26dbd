// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "transport/comms/counter_list.h"
#include "transport/comms/stranger_log.h"

namespace ztcp::ustack {
namespace {

struct Words {
  Trouble trouble;
  CountedEvent event;
  const char* advice;
};
constexpr std::array<Words, kTroubles> kWords = {{
    {Trouble::kInvalidHello, comms::kInvalidHello,
     "open messages.listen_port to the job's hosts alone (security group); hosts of the job need "
     "the same ztcp and cluster_key"},
    {Trouble::kTableFull,
     {"rejected", "connections at the connection limit"},
     "raise tcp.max_connections in ztcp.conf if they are the job's; else open "
     "messages.listen_port to the job's hosts alone"},
    {Trouble::kAcceptNoMemory,
     {"rejected", "connections for lack of memory"},
     "raise the memory limit of this process (ulimit -v, the job's cgroup), or let NCCL open fewer "
     "(NCCL_NCHANNELS_PER_NET_PEER=1)"},
    {Trouble::kBadChecksum,
     {"dropped", "frames with a bad checksum"},
     "a cable, a transceiver, a NIC or a switch changes bytes: look at the error counters of "
     "both ends of this link and of the switches"},
    {Trouble::kMalformed,
     {"dropped", "malformed frames"},
     "a host in this network sends broken packets, by a fault or on purpose: capture them at the "
     "switch"},
    {Trouble::kRxNoMemory,
     {"dropped", "frames for lack of memory"},
     "the network loses or reorders more than the receive buffers can hold: look for drops at the "
     "switches, and compare mtu_bytes and the speed of the hosts' links"},
    {Trouble::kChallengeAcks,
     {"sent", "challenge ACKs to segments outside the window"},
     "another host may be forging segments of this NIC's connections: open its network to the "
     "job's hosts alone"},
    {Trouble::kEcnFaults,
     {"ran", "connections without ECN"},
     "something on the path falsifies congestion marks: look at the switches' ECN settings, or set "
     "tcp.ecn = \"off\""},
    {Trouble::kArpConflicts,
     {"received", "ARP or neighbour discovery packets with a new or conflicting MAC address"},
     "two hosts have one address, or a host forges packets: compare the addresses of the hosts' "
     "NICs, "
     "and look up the ports of these MAC addresses at the switch"},
}};

constexpr const char* kPathAdvice =
    "set one MTU on the NICs, switches and tunnels of this network and as mtu_bytes in each "
    "host's ztcp.conf (ztcp_setup --check)";

struct LossWords {
  const char* reason;
  const char* advice;
  const char* where;
};

LossWords words_of(LinkState lost) {
  switch (lost) {
    case LinkState::kReset:
      return {"was reset by its host or its firmware", "start the job again", "NIC reset"};
    case LinkState::kDetached:
      return {"has lost its XDP program: the kernel receives its frames now",
              "leave ztcp's program on the interface while jobs run, and start the job again",
              "XDP program detached"};
    case LinkState::kGone:
    case LinkState::kUp:
    case LinkState::kDown:
      break;
  }
  return {"was taken out of this machine", "put it back, run ztcp_setup and start the job again",
          "NIC taken out"};
}

}  // namespace

std::string warning(const Finding& finding) {
  const Words& words = *std::find_if(kWords.begin(), kWords.end(),
                                     [&](const Words& w) { return w.trouble == finding.trouble; });
  return describe(finding, words.event, words.advice);
}

std::string summary(const NicCounts& counts) {
  std::string text = fmt::format(
      "sent {} frames ({} bytes), received {} frames ({} bytes), retransmitted {} bytes, {} "
      "timeouts",
      counts.link.tx_frames, counts.link.tx_bytes, counts.link.rx_frames, counts.link.rx_bytes,
      counts.tcp.tx_retransmitted_bytes, counts.tcp.rto_fired);
  if (counts.groups.posted != 0)
    text += fmt::format(", {} grouped receives of up to {}", counts.groups.posted,
                        counts.groups.largest);
  return comms::CounterList(std::move(text))
      .add(msg::kStrangerCounters, counts.acceptor.strangers)
      .add(nic_counter::kUnusual, counts)
      .text();
}

std::string NicLog::lost_reason(LinkState state) const {
  return "NIC " + name_ + " (" + link_description_ + ") " + words_of(state).reason;
}

const char* NicLog::lost_advice(LinkState state) { return words_of(state).advice; }

Error NicLog::lost_error(LinkState state) { return {Errc::kNoDevice, 0, words_of(state).where}; }

void NicLog::link_lost(LinkState state) {
  add(log::Level::kWarn, [&] {
    return lost_reason(state) + "; every connection on it has failed: " + lost_advice(state);
  });
}

void NicLog::warn(const Finding& finding) {
  add(log::Level::kWarn, [&] { return warning(finding); });
}

std::string path_text(const tcp::PathMtuChange& change) {
  const std::string host = to_string(change.remote);
  switch (change.cause) {
    case tcp::PathMtuChange::Cause::kProbe:
      return fmt::format("packets of {} bytes reach {} again", change.now_bytes, host);
    case tcp::PathMtuChange::Cause::kRouter:
      return fmt::format(
          "a router on the path to {} forwards packets of {} bytes, not of {}: a connection goes "
          "on "
          "with the smaller; {}",
          host, change.now_bytes, change.before_bytes, kPathAdvice);
    case tcp::PathMtuChange::Cause::kSilence:
      break;
  }
  if (change.now_bytes == 0)
    return fmt::format(
        "packets of {} bytes do not reach {}, small ones do: a new connection fails; {}",
        change.before_bytes, host, kPathAdvice);
  return fmt::format(
      "packets of {} bytes do not reach {}, small ones do: a connection goes on with packets of {} "
      "bytes; {}",
      change.before_bytes, host, change.now_bytes, kPathAdvice);
}

void NicLog::path_mtu(TimePoint now, const tcp::PathMtuChange& change) {
  const bool larger = change.now_bytes > change.before_bytes;
  const auto told = std::find_if(told_paths_.begin(), told_paths_.end(), [&](const ToldPath& path) {
    return path.remote == change.remote;
  });
  if (told != told_paths_.end()) {
    const bool is_news = larger != told->larger || (!larger && change.now_bytes < told->now_bytes);
    if (!is_news && now - told->told < kPathInterval) return;
    *told = {change.remote, change.now_bytes, larger, now};
  } else {
    try {
      told_paths_.push_back({change.remote, change.now_bytes, larger, now});
    } catch (const std::bad_alloc&) {  // The line may then be repeated within the interval.
    }
  }
  add(larger ? log::Level::kInfo : log::Level::kWarn, [&] { return path_text(change); });
}

std::string duplicate_text(IpAddress own, const MacAddress& other) {
  return fmt::format(
      "the host with MAC address {} has address {}, too (duplicate address detection): connections "
      "from this NIC fail; give each NIC an address of its own in its host's ztcp.conf",
      to_string(other), to_string(own));
}

void NicLog::duplicate_address(IpAddress own, const MacAddress& other) {
  add(log::Level::kWarn, [&] { return duplicate_text(own, other); });
}

std::string control_text(const tcp::CongestionControlChange& change) {
  const std::string host = to_string(change.remote);
  const auto rtt_us = std::chrono::duration_cast<std::chrono::microseconds>(change.min_rtt).count();
  if (std::string_view(change.now) == "bbr")
    return fmt::format(
        "congestion control to {}: bbr, since packets are lost without a queue on the way "
        "(shortest round trip {} us): look at the error counters of the switches and of both NICs; "
        "tcp.congestion_control = \"cubic\" keeps CUBIC",
        host, rtt_us);
  return fmt::format(
      "congestion control to {}: {} again, since packets are lost in a queue on the way, or more "
      "of "
      "them than before (shortest round trip {} us): other traffic shares the path",
      host, change.now, rtt_us);
}

bool NicLog::may_tell(std::vector<ToldHost>& told, TimePoint now, IpAddress remote) {
  const auto host = std::find_if(told.begin(), told.end(),
                                 [&](const ToldHost& other) { return other.remote == remote; });
  if (host != told.end()) {
    if (now - host->told < kPathInterval) return false;
    host->told = now;
    return true;
  }
  try {
    told.push_back({remote, now});
  } catch (const std::bad_alloc&) {  // The line may then be repeated within the interval.
  }
  return true;
}

void NicLog::congestion_control(TimePoint now, const tcp::CongestionControlChange& change) {
  if (!may_tell(told_controls_, now, change.remote)) return;
  add(log::Level::kInfo, [&] { return control_text(change); });
}

std::string reroute_text(const tcp::Reroute& reroute) {
  const std::string flow =
      fmt::format("the flow from port {} to {} changed its IPv6 flow label to leave its path",
                  reroute.local_port, to_string(reroute.remote));
  switch (reroute.cause) {
    case tcp::Reroute::Cause::kTimeouts:
      return fmt::format(
          "{}, after {} retransmission timeouts in a row: a switch or a cable on the way has "
          "failed, if that host is up",
          flow, reroute.evidence);
    case tcp::Reroute::Cause::kDuplicates:
      return fmt::format(
          "{}, since that host repeated bytes {} times that were acknowledged: a switch or a cable "
          "on the way to it has failed",
          flow, reroute.evidence);
    case tcp::Reroute::Cause::kMarks:
      break;
  }
  return fmt::format(
      "{}, after {} round trips in a row in which switches marked most of its bytes: that path is "
      "congested",
      flow, reroute.evidence);
}

void NicLog::reroute(TimePoint now, const tcp::Reroute& reroute) {
  if (!may_tell(told_reroutes_, now, reroute.remote.address)) return;
  add(log::Level::kInfo, [&] { return reroute_text(reroute); });
}

std::string router_text(const tcp::RouterChange& change) {
  if (change.now == IpAddress())
    return fmt::format(
        "the router {} serves no longer, and no other advertises itself: new connections to other "
        "networks fail; look at the network's routers, or write gateway = \"...\"",
        to_string(change.before));
  if (change.before == IpAddress())
    return fmt::format("the router {} leads to other networks, by its advertisement",
                       to_string(change.now));
  return fmt::format("the router {} leads to other networks now, in place of {}",
                     to_string(change.now), to_string(change.before));
}

void NicLog::router(TimePoint now, const tcp::RouterChange& change) {
  ToldRouter* at = &told_routers_.front();
  for (ToldRouter& told : told_routers_) {
    if (told.told != TimePoint{} && told.router == change.now) {
      if (now - told.told < kPathInterval) return;
      at = &told;
      break;
    }
    if (told.told < at->told) at = &told;
  }
  *at = {change.now, now};
  const bool is_lost = change.now == IpAddress();
  add(is_lost ? log::Level::kWarn : log::Level::kInfo, [&] { return router_text(change); });
}

std::string address_text(const tcp::AddressChange& change) {
  using Kind = tcp::AddressChange::Kind;
  const std::string own = to_string(change.own);
  const std::string router = to_string(change.router);
  const auto valid_s = std::chrono::duration_cast<std::chrono::seconds>(change.valid).count();
  switch (change.kind) {
    case Kind::kDeprecated:
      return fmt::format(
          "the address {} is deprecated (router {}) and may be used for {} s more: the next job "
          "should take another one; look at the prefixes that the network's routers advertise",
          own, router, valid_s);
    case Kind::kEnded:
      return fmt::format(
          "the lifetime of the address {} is over, and the router {} has not renewed it: open "
          "connections stay, new ones fail; start the job anew, or write address = \"...\"",
          own, router);
    case Kind::kRenewed:
      return fmt::format("the router {} has renewed the address {}, for {} s", router, own,
                         valid_s);
    case Kind::kOtherPrefix:
      return fmt::format(
          "the router {} advertises {}, too: this process keeps {} (only the first prefix of an "
          "advertisement gives an address)",
          router, to_string(change.prefix), own);
  }
  return {};
}

void NicLog::address(TimePoint now, const tcp::AddressChange& change) {
  TimePoint& next = next_address_[static_cast<std::size_t>(change.kind)];
  if (now < next) return;
  next = now + kPathInterval;
  using Kind = tcp::AddressChange::Kind;
  const bool is_bad = change.kind == Kind::kDeprecated || change.kind == Kind::kEnded;
  add(is_bad ? log::Level::kWarn : log::Level::kInfo, [&] { return address_text(change); });
}

void NicLog::nobody_left(TimePoint now, const NicCounts& counts) {
  if (now < next_nobody_left_) return;
  next_nobody_left_ = now + kNobodyLeftInterval;
  add(log::Level::kInfo, [&] { return "no connection is left; so far it " + summary(counts); });
}

template <class MakeLine>
void NicLog::add(log::Level level, MakeLine&& make_line) {
  deferred_log_.add(level, [&] { return name_ + ": " + make_line(); });
}

}  // namespace ztcp::ustack
