// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All counters of a NIC: one list for its summary line (nic_log.h) and for the statistics page.
#pragma once

#include <array>
#include <cstdint>

#include "transport/comms/clients/group_counts.h"
#include "transport/link/link.h"
#include "transport/msg/acceptor.h"
#include "transport/stats/counter_row.h"
#include "transport/tcp/stack.h"

namespace ztcp::ustack {

// A snapshot of the counters.
struct NicCounts {
  tcp::Counters tcp;
  msg::AcceptorCounters acceptor;
  link::LinkCounters link;
  std::uint64_t ring_full = 0;  // Turns that ended at a full transmit ring.
  std::uint64_t redials = 0;
  std::uint64_t moves = 0;  // Among them: flows that left a bad path.
  comms::GroupCounts groups;
};

using NicCounter = stats::CounterRow<NicCounts>;

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
using stats::Counter;

// Counters that cause a warning when they grow fast (nic_watch.h), besides those of strangers.
inline constexpr NicCounter kRefusedFull{"refused_at_limit", Counter::kRefusedFull,
                                         of_acceptor<&Acceptor::refused_full>};
inline constexpr NicCounter kRefusedNoMemory{"refused_no_memory", Counter::kRefusedFull,
                                             of_acceptor<&Acceptor::refused_no_memory>};
inline constexpr NicCounter kSynDropped{"syn_full", of_tcp<&Tcp::syn_dropped_table_full>};
inline constexpr NicCounter kBadChecksum{"tcp_bad_checksums", Counter::kBadChecksums,
                                         of_tcp<&Tcp::rx_bad_checksum>};
inline constexpr NicCounter kMalformed{Counter::kMalformedFrames, of_tcp<&Tcp::rx_malformed>};
inline constexpr NicCounter kTcpNoMemory{"tcp_no_memory", Counter::kRxNoMemory,
                                         of_tcp<&Tcp::rx_dropped_no_memory>};
inline constexpr NicCounter kLinkNoMemory{"link_no_memory", Counter::kRxNoMemory,
                                          of_link<&Link::rx_dropped_no_memory>};
inline constexpr NicCounter kChallengeAcks{"challenge_acks", of_tcp<&Tcp::challenge_acks>};
inline constexpr NicCounter kEcnFaults{Counter::kEcnFaults, of_tcp<&Tcp::ecn_faults>};
inline constexpr NicCounter kMacChanges{"arp_mac_changes", of_tcp<&Tcp::arp_mac_changes>};
inline constexpr NicCounter kConflicts{"arp_conflicts", of_tcp<&Tcp::arp_conflicts>};
inline constexpr NicCounter kOwnAddress{"arp_own", of_tcp<&Tcp::arp_own_address_claimed>};

// Counters that stay at or near zero in a network without faults and attacks. The summary line
// names them.
inline constexpr std::array kUnusual = {
    kRefusedFull,
    NicCounter{"refused_flows", of_acceptor<&Acceptor::refused_flows>},
    NicCounter{"refused_stale", of_acceptor<&Acceptor::refused_stale>},
    kRefusedNoMemory,
    NicCounter{"handed_over", of_tcp<&Tcp::rx_handed_over>},
    NicCounter{"mail_full", of_link<&Link::rx_mailbox_full>},
    NicCounter{"not_held", of_tcp<&Tcp::rx_dropped_of_others>},
    kSynDropped,
    kBadChecksum,
    NicCounter{"link_bad_checksums", Counter::kBadChecksums, of_link<&Link::rx_bad_checksum>},
    kMalformed,
    kTcpNoMemory,
    kLinkNoMemory,
    kChallengeAcks,
    kEcnFaults,
    kMacChanges,
    kConflicts,
    kOwnAddress,
    NicCounter{"arp_bad_sender", of_tcp<&Tcp::arp_bad_sender>},
    NicCounter{"rx_no_connection", of_tcp<&Tcp::rx_no_connection>},
    NicCounter{"rx_not_for_us", of_tcp<&Tcp::rx_not_for_us>},
    NicCounter{Counter::kOutOfOrderSegments, of_tcp<&Tcp::rx_out_of_order>},
    NicCounter{Counter::kDuplicateSegments, of_tcp<&Tcp::rx_duplicate>},
    NicCounter{"rx_paws", of_tcp<&Tcp::rx_paws>},
    NicCounter{Counter::kNeedlessSegments, of_tcp<&Tcp::dsacked_segments>},
    NicCounter{Counter::kReorderedSegments, of_tcp<&Tcp::reordered_segments>},
    NicCounter{Counter::kTailProbes, of_tcp<&Tcp::tlp_fired>},
    NicCounter{Counter::kFastRecoveries, of_tcp<&Tcp::rack_recoveries>},
    NicCounter{Counter::kSpuriousRecoveries, of_tcp<&Tcp::spurious_recoveries>},
    NicCounter{Counter::kReroutes,
               [](const NicCounts& counts) { return counts.tcp.reroutes + counts.moves; }},
    NicCounter{Counter::kPathMtuCuts, of_tcp<&Tcp::path_mtu_cuts>},
    NicCounter{"path_mtu_raises", of_tcp<&Tcp::path_mtu_raises>},
    NicCounter{Counter::kResetsSent, of_tcp<&Tcp::tx_resets>},
    NicCounter{Counter::kConnectionsFailed, of_tcp<&Tcp::connections_failed>},
    NicCounter{Counter::kArpUnresolved, of_tcp<&Tcp::arp_unresolved>},
    NicCounter{Counter::kTxRingFull, [](const NicCounts& counts) { return counts.ring_full; }},
    NicCounter{Counter::kTxDropped, of_link<&Link::tx_dropped>},
    NicCounter{Counter::kNicRxMissed,
               [](const NicCounts& counts) { return counts.link.nic.rx_missed; }},
    NicCounter{Counter::kNicRxNoBuffers,
               [](const NicCounts& counts) { return counts.link.nic.rx_no_buffers; }},
    NicCounter{Counter::kNicRxErrors,
               [](const NicCounts& counts) { return counts.link.nic.rx_errors; }},
    NicCounter{Counter::kNicTxErrors,
               [](const NicCounts& counts) { return counts.link.nic.tx_errors; }},
    NicCounter{Counter::kRedials, [](const NicCounts& counts) { return counts.redials; }},
};

// The others of the statistics page.
inline constexpr std::array kUsual = {
    NicCounter{Counter::kSentBytes, of_tcp<&Tcp::tx_bytes>},
    NicCounter{Counter::kReceivedBytes, of_tcp<&Tcp::rx_bytes>},
    NicCounter{Counter::kRetransmittedBytes, of_tcp<&Tcp::tx_retransmitted_bytes>},
    NicCounter{Counter::kTimeoutRetransmissions, of_tcp<&Tcp::rto_fired>},
    NicCounter{Counter::kRxFrames, of_link<&Link::rx_frames>},
    NicCounter{Counter::kTxFrames, of_link<&Link::tx_frames>},
    NicCounter{Counter::kCeSegments, of_tcp<&Tcp::rx_ce_segments>},
    NicCounter{Counter::kEcnEchoes, of_tcp<&Tcp::ecn_echoes>},
    NicCounter{Counter::kEcnReductions, of_tcp<&Tcp::ecn_reductions>},
    NicCounter{Counter::kControlChanges, of_tcp<&Tcp::control_changes>},
    NicCounter{Counter::kConnectionsOpened, of_tcp<&Tcp::connections_opened>},
    NicCounter{Counter::kConnectionsAccepted, of_tcp<&Tcp::connections_accepted>},
    NicCounter{Counter::kCopiedBytes, of_link<&Link::tx_copied_bytes>},
};

}  // namespace nic_counter
}  // namespace ztcp::ustack
