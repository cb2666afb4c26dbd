// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All counters of a NIC, and their names in the log. A counter that stays zero in a network without
// faults needs a row here to appear in the summary line (nic_log.h).
#pragma once

#include <array>
#include <cstdint>

#include "transport/comms/clients/group_counts.h"
#include "transport/link/link.h"
#include "transport/msg/acceptor.h"
#include "transport/tcp/stack.h"

namespace ztcp::ustack {

// A snapshot of the counters.
struct NicCounts {
  tcp::Counters tcp;
  msg::AcceptorCounters acceptor;
  link::LinkCounters link;
  std::uint64_t ring_full = 0;  // Turns that ended at a full transmit ring.
  comms::GroupCounts groups;
};

struct NicCounter {
  const char* name;
  std::uint64_t (*count)(const NicCounts&);
};

namespace nic_counter {

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

// Counters that cause a warning when they grow fast (nic_watch.h).
inline constexpr NicCounter kBadMagic{"strays_bad_magic", of_acceptor<&Acceptor::strays_bad_magic>};
inline constexpr NicCounter kUnknownCookie{"strays_unknown_cookie",
                                           of_acceptor<&Acceptor::strays_unknown_cookie>};
inline constexpr NicCounter kBadKey{"strays_bad_key", of_acceptor<&Acceptor::strays_bad_key>};
inline constexpr NicCounter kTimedOut{"strays_timed_out", of_acceptor<&Acceptor::strays_timed_out>};
inline constexpr NicCounter kPushedOut{"strays_pushed_out",
                                       of_acceptor<&Acceptor::strays_pushed_out>};
inline constexpr NicCounter kOtherVersion{"refused_version",
                                          of_acceptor<&Acceptor::refused_version>};
inline constexpr NicCounter kRefusedFull{"refused_full", of_acceptor<&Acceptor::refused_full>};
inline constexpr NicCounter kRefusedNoMemory{"refused_no_memory",
                                             of_acceptor<&Acceptor::refused_no_memory>};
inline constexpr NicCounter kSynDropped{"syn_full", of_tcp<&Tcp::syn_dropped_table_full>};
inline constexpr NicCounter kBadChecksum{"rx_bad_checksum", of_tcp<&Tcp::rx_bad_checksum>};
inline constexpr NicCounter kMalformed{"rx_malformed", of_tcp<&Tcp::rx_malformed>};
inline constexpr NicCounter kRxNoMemory{"rx_no_memory", of_tcp<&Tcp::rx_dropped_no_memory>};
inline constexpr NicCounter kLinkNoMemory{"link_no_memory", of_link<&Link::rx_dropped_no_memory>};
inline constexpr NicCounter kChallengeAcks{"challenge_acks", of_tcp<&Tcp::challenge_acks>};
inline constexpr NicCounter kMacChanges{"arp_mac_changes", of_tcp<&Tcp::arp_mac_changes>};
inline constexpr NicCounter kConflicts{"arp_conflicts", of_tcp<&Tcp::arp_conflicts>};
inline constexpr NicCounter kOwnAddress{"arp_own", of_tcp<&Tcp::arp_own_address_claimed>};

// Counters that stay at or near zero in a network without faults and attacks.
inline constexpr std::array kUnusual = {
    kBadMagic,
    kUnknownCookie,
    kBadKey,
    kTimedOut,
    kPushedOut,
    kOtherVersion,
    kRefusedFull,
    NicCounter{"refused_flows", of_acceptor<&Acceptor::refused_flows>},
    NicCounter{"refused_stale", of_acceptor<&Acceptor::refused_stale>},
    kRefusedNoMemory,
    NicCounter{"handed_over", of_tcp<&Tcp::rx_handed_over>},
    NicCounter{"mail_full", of_link<&Link::rx_mailbox_full>},
    NicCounter{"not_held", of_tcp<&Tcp::rx_dropped_of_others>},
    kSynDropped,
    kBadChecksum,
    NicCounter{"link_bad_sum", of_link<&Link::rx_bad_checksum>},
    kMalformed,
    kRxNoMemory,
    kLinkNoMemory,
    kChallengeAcks,
    kMacChanges,
    kConflicts,
    kOwnAddress,
    NicCounter{"arp_bad_sender", of_tcp<&Tcp::arp_bad_sender>},
    NicCounter{"rx_no_connection", of_tcp<&Tcp::rx_no_connection>},
    NicCounter{"rx_not_for_us", of_tcp<&Tcp::rx_not_for_us>},
    NicCounter{"rx_out_of_order", of_tcp<&Tcp::rx_out_of_order>},
    NicCounter{"rx_duplicate", of_tcp<&Tcp::rx_duplicate>},
    NicCounter{"rx_paws", of_tcp<&Tcp::rx_paws>},
    NicCounter{"dsacked", of_tcp<&Tcp::dsacked_segments>},
    NicCounter{"reordered", of_tcp<&Tcp::reordered_segments>},
    NicCounter{"tlp_fired", of_tcp<&Tcp::tlp_fired>},
    NicCounter{"rack_recoveries", of_tcp<&Tcp::rack_recoveries>},
    NicCounter{"spurious_recoveries", of_tcp<&Tcp::spurious_recoveries>},
    NicCounter{"path_mtu_cuts", of_tcp<&Tcp::path_mtu_cuts>},
    NicCounter{"path_mtu_raises", of_tcp<&Tcp::path_mtu_raises>},
    NicCounter{"tx_resets", of_tcp<&Tcp::tx_resets>},
    NicCounter{"connections_failed", of_tcp<&Tcp::connections_failed>},
    NicCounter{"arp_unresolved", of_tcp<&Tcp::arp_unresolved>},
    NicCounter{"tx_ring_full", [](const NicCounts& counts) { return counts.ring_full; }},
    NicCounter{"tx_dropped", of_link<&Link::tx_dropped>},
    NicCounter{"nic_rx_missed", [](const NicCounts& counts) { return counts.link.nic.rx_missed; }},
    NicCounter{"nic_rx_no_buffers",
               [](const NicCounts& counts) { return counts.link.nic.rx_no_buffers; }},
    NicCounter{"nic_rx_errors", [](const NicCounts& counts) { return counts.link.nic.rx_errors; }},
    NicCounter{"nic_tx_errors", [](const NicCounts& counts) { return counts.link.nic.tx_errors; }},
};

}  // namespace nic_counter
}  // namespace ztcp::ustack
