// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The one list of what all ranks of a job must share because NCCL derives something from it on each
// rank by itself. Each listener's handle carries its rank's values (plugin/handle.h), connect()
// compares them with this rank's, and ranks that differ are refused by name.
//
// Compared:
//   tuner, tuner_rule   A collective's channels and protocol. NCCL asks the tuner on each rank, and
//                       ranks that cut a collective differently wait for each other for ever.
//   nics, devices       Channels of send/recv and all-to-all for each peer. NCCL before 2.29.2
//                       counts a GPU's local devices and compares that with no other rank, so that
//                       messages are cut to other sizes at each end. Compared where a rank shows a
//                       NIC more than once: how many NICs a host has NCCL weighs by its topology,
//                       and hosts of 4 NICs for 4 GPUs and of 8 for 8 derive the same.
//   speed_mbps          The same count ends where the devices' speed reaches that of the GPU's PCIe
//                       link. Compared, where NICs are shown more than once, if a link of PCIe
//                       generation 4, 5 or 6 makes other counts of the two.
//   channels_per_peer   NCCL_NCHANNELS_PER_NET_PEER: stands instead of that count, so where both
//                       ranks have the same, devices and speed are not compared.
//   max_receives        maxRecvs: above 1 NCCL shares one connection between channels. If only one
//                       end does, the other waits for connections that never come.
//   max_message_bytes   maxP2pBytes, and the limit of one isend: what one end may send in one piece
//                       the other must be able to receive in one. NCCL to 2.30.7 only reads it.
//
// Not compared, because NCCL itself agrees on what follows from it, or nothing of the peer follows:
//   maxComms            Bounds the channels of this rank's rings, of which NCCL takes the least of
//                       all ranks.
//   ptrSupport, regIsGlobal, forceFlush
//                       NCCL exchanges with each connection whether its ends use GPUDirect RDMA;
//                       registering and flushing are each end's own.
//   railId, planeId, pciPath, guid, port, vProps
//                       Which NICs a rank's rings use; what rings look like NCCL agrees on.
//   latency, netDeviceType, netDeviceVersion, maxMultiRequestSize
//                       Constants of every transport and table here. NCCL's model does use the
//                       latency without comparing it: one that is not constant belongs above.
//   maxCollBytes        CollNet's alone, which this library does not offer.
//
// Read in NCCL 2.24.3 to 2.30.7: ncclTopoGetNchannels and getLocalNetCountByBw (graph/paths.cc,
// topo.cc), the third all-gather of initTransportsRank (init.cc), transport/net.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ztcp::plugin {

// What one isend may carry. test() reports sizes as int, and NCCL's own limit for a registered
// user buffer is the same.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30U;

// One rank's values. Pure data; any thread.
struct Agreement {
  std::uint8_t tuner = 0;              // The TransportKind whose rule it uses; 0: NCCL chooses.
  std::uint8_t tuner_rule = 0;         // ChannelTuner::kRule; 0 without a tuner.
  std::uint8_t max_receives = 1;       // Of the connection's device: 1 to kMaxReceives.
  std::uint8_t channels_per_peer = 0;  // 1 to 64; 0: the variable is not set.
  std::uint16_t nics = 0;              // That this rank shows NCCL, merged ones as one.
  std::uint16_t devices = 0;           // All devices of all NICs.
  std::uint32_t max_message_bytes = std::uint32_t{kMaxMessageBytes};
  std::uint32_t speed_mbps = 0;  // Of all devices together.

  friend bool operator==(const Agreement&, const Agreement&) = default;
};

// The record that travels: the fields in their order, little-endian.
inline constexpr std::size_t kAgreementBytes = 16;
using AgreementBytes = std::span<std::byte, kAgreementBytes>;
using ConstAgreementBytes = std::span<const std::byte, kAgreementBytes>;
void encode(const Agreement& agreement, AgreementBytes out);
// Any bytes are an Agreement: the values are compared and printed, nothing else.
Agreement decode_agreement(ConstAgreementBytes bytes);

// A rank, for messages.
struct RankName {
  std::string host;  // Empty: not known.
};

// Every difference with both values and the setting that removes it, in one sentence for the log;
// empty: the ranks agree.
std::string differences(const Agreement& ours, const RankName& us, const Agreement& theirs,
                        const RankName& them);

}  // namespace ztcp::plugin
