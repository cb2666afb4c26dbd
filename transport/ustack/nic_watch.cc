// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_watch.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace ztcp::ustack {
namespace {

struct Row {
  const char* name;
  std::uint64_t (*count)(const NicCounts&);
};

template <auto Member>
constexpr std::uint64_t of_tcp(const NicCounts& counts) {
  return counts.tcp.*Member;
}
template <auto Member>
constexpr std::uint64_t of_acceptor(const NicCounts& counts) {
  return counts.acceptor.*Member;
}
template <auto Member>
constexpr std::uint64_t of_link(const NicCounts& counts) {
  return counts.link.*Member;
}

using Tcp = tcp::Counters;
using Acceptor = msg::AcceptorCounters;
using Link = link::LinkCounters;

constexpr Row kBadMagic{"strays_bad_magic", of_acceptor<&Acceptor::strays_bad_magic>};
constexpr Row kUnknownCookie{"strays_unknown_cookie",
                             of_acceptor<&Acceptor::strays_unknown_cookie>};
constexpr Row kBadKey{"strays_bad_key", of_acceptor<&Acceptor::strays_bad_key>};
constexpr Row kTimedOut{"strays_timed_out", of_acceptor<&Acceptor::strays_timed_out>};
constexpr Row kPushedOut{"strays_pushed_out", of_acceptor<&Acceptor::strays_pushed_out>};
constexpr Row kOtherVersion{"refused_version", of_acceptor<&Acceptor::refused_version>};
constexpr Row kRefusedFull{"refused_full", of_acceptor<&Acceptor::refused_full>};
constexpr Row kSynDropped{"syn_dropped_table_full", of_tcp<&Tcp::syn_dropped_table_full>};
constexpr Row kBadChecksum{"rx_bad_checksum", of_tcp<&Tcp::rx_bad_checksum>};
constexpr Row kMalformed{"rx_malformed", of_tcp<&Tcp::rx_malformed>};
constexpr Row kNotKept{"rx_dropped_no_memory", of_tcp<&Tcp::rx_dropped_no_memory>};
constexpr Row kLinkNoMemory{"link_rx_dropped_no_memory", of_link<&Link::rx_dropped_no_memory>};
constexpr Row kChallenges{"challenge_acks", of_tcp<&Tcp::challenge_acks>};
constexpr Row kMacChanges{"arp_mac_changes", of_tcp<&Tcp::arp_mac_changes>};
constexpr Row kConflicts{"arp_conflicts", of_tcp<&Tcp::arp_conflicts>};
constexpr Row kOwnAddress{"arp_own_address_claimed", of_tcp<&Tcp::arp_own_address_claimed>};

// What a network without faults and strangers has none of, or little.
constexpr std::array kUnusual = {
    kBadMagic,
    kUnknownCookie,
    kBadKey,
    kTimedOut,
    kPushedOut,
    kOtherVersion,
    kRefusedFull,
    Row{"refused_flows", of_acceptor<&Acceptor::refused_flows>},
    Row{"refused_stale", of_acceptor<&Acceptor::refused_stale>},
    kSynDropped,
    kBadChecksum,
    Row{"link_rx_bad_checksum", of_link<&Link::rx_bad_checksum>},
    kMalformed,
    kNotKept,
    kLinkNoMemory,
    kChallenges,
    kMacChanges,
    kConflicts,
    kOwnAddress,
    Row{"arp_bad_sender", of_tcp<&Tcp::arp_bad_sender>},
    Row{"rx_no_connection", of_tcp<&Tcp::rx_no_connection>},
    Row{"rx_not_for_us", of_tcp<&Tcp::rx_not_for_us>},
    Row{"rx_segments_out_of_order", of_tcp<&Tcp::rx_segments_out_of_order>},
    Row{"rx_segments_duplicate", of_tcp<&Tcp::rx_segments_duplicate>},
    Row{"tlp_fired", of_tcp<&Tcp::tlp_fired>},
    Row{"rack_recoveries", of_tcp<&Tcp::rack_recoveries>},
    Row{"spurious_recoveries", of_tcp<&Tcp::spurious_recoveries>},
    Row{"tx_resets", of_tcp<&Tcp::tx_resets>},
    Row{"connections_failed", of_tcp<&Tcp::connections_failed>},
    Row{"arp_unresolved", of_tcp<&Tcp::arp_unresolved>},
    Row{"tx_ring_full", [](const NicCounts& counts) { return counts.ring_full; }},
    Row{"tx_dropped", of_link<&Link::tx_dropped>},
};

constexpr std::array kStrangers = {kBadMagic, kUnknownCookie, kBadKey,
                                   kTimedOut, kPushedOut,     kOtherVersion};
constexpr std::array kNoPlace = {kSynDropped, kRefusedFull};
constexpr std::array kDamaged = {kBadChecksum};
constexpr std::array kSenseless = {kMalformed};
constexpr std::array kNoMemory = {kNotKept, kLinkNoMemory};
constexpr std::array kGuesses = {kChallenges};
constexpr std::array kMacs = {kMacChanges, kConflicts, kOwnAddress};

}  // namespace

struct NicWatch::Kind {
  std::uint64_t threshold;
  const char* what;  // "12 <what> in 60 s (names and counts): <advice>"
  const char* advice;
  std::span<const Row> rows;
};

const std::array<NicWatch::Kind, NicWatch::kKinds>& NicWatch::kinds() {
  static constexpr std::array<Kind, kKinds> kTable = {{
      {10, "connections by strangers were turned away",
       "open messages.listen_port to the job's hosts alone (security group); hosts of the job need "
       "the same ztcp and cluster_key",
       kStrangers},
      {10, "connections found no place",
       "raise tcp.max_connections in ztcp.conf if they are the job's; else close "
       "messages.listen_port to everybody but the job's hosts",
       kNoPlace},
      {10, "frames arrived damaged",
       "a cable, a transceiver, a NIC or a switch changes bytes: look at the error counters of "
       "both ends of this link and of the switches",
       kDamaged},
      {10, "frames made no sense",
       "somebody in this network sends broken packets, by a fault or on purpose: capture them at "
       "the switch",
       kSenseless},
      {1000, "frames were dropped for want of memory",
       "the network loses or reorders more than there is memory to wait with: look for drops at "
       "the switches, and compare mtu_bytes and the speed of the hosts' links",
       kNoMemory},
      {100, "segments fitted no connection's window",
       "somebody guesses at connections of this NIC: keep its network closed to others than the "
       "job's hosts",
       kGuesses},
      {3, "times a neighbour's MAC address changed or was claimed by another host",
       "two hosts have one address, or somebody forges ARP: compare the addresses of the hosts' "
       "NICs, and see at the switch who answers for them",
       kMacs},
  }};
  return kTable;
}

std::vector<std::string> NicWatch::look(TimePoint now, const NicCounts& counts) {
  std::vector<std::string> said;
  for (std::size_t i = 0; i < kKinds; ++i) {
    const Kind& kind = kinds()[i];
    Seen& seen = seen_[i];
    if (seen.since == TimePoint{}) seen.since = now;
    std::uint64_t total = 0;
    for (const Row& row : kind.rows) total += row.count(counts) - row.count(seen.counts);
    const bool many = total >= kind.threshold;
    if (many && (seen.warned == TimePoint::min() || now - seen.warned >= kInterval)) {
      std::string parts;
      for (const Row& row : kind.rows) {
        const std::uint64_t count = row.count(counts) - row.count(seen.counts);
        if (count != 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, row.name);
      }
      const auto span = std::chrono::duration_cast<std::chrono::seconds>(now - seen.since);
      said.push_back(fmt::format("{} {} in {} s ({}): {}", total, kind.what,
                                 std::max<std::int64_t>(span.count(), 1), parts, kind.advice));
      seen = {.since = now, .warned = now, .counts = counts};
    } else if (!many && now - seen.since >= kInterval) {
      seen.since = now;
      seen.counts = counts;
    }
  }
  return said;
}

std::string summary(const NicCounts& counts) {
  std::string text = fmt::format(
      "sent {} frames ({} bytes), received {} frames ({} bytes), retransmitted {} bytes, {} "
      "timeouts",
      counts.link.tx_frames, counts.link.tx_bytes, counts.link.rx_frames, counts.link.rx_bytes,
      counts.tcp.tx_retransmitted_bytes, counts.tcp.rto_fired);
  const std::size_t usual = text.size();
  for (const Row& row : kUnusual) {
    if (const std::uint64_t count = row.count(counts); count != 0)
      text += fmt::format("{} {} {}", text.size() == usual ? ";" : ",", count, row.name);
  }
  return text;
}

}  // namespace ztcp::ustack
