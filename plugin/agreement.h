// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The list of the values that all ranks of a job must share because NCCL derives something from
// them on each rank separately. Each listener's handle carries its rank's values (plugin/handle.h),
// connect() compares them with this rank's, and refuses ranks that differ by name.
//
// Compared:
//   tuner, tuner_rule   The channels and protocol of a collective. NCCL asks the tuner on each
//                       rank, and ranks that cut a collective differently wait for each other for
//                       ever.
//   nics, devices       The channels per peer of send/recv and all-to-all. NCCL before 2.29.2
//                       counts a GPU's local devices and compares that with no other rank, so that
//                       the two ends cut messages to different sizes. Compared only where a rank
//                       shows a NIC more than once: NCCL weighs the number of a host's NICs by its
//                       topology, and hosts of 4 NICs for 4 GPUs and of 8 for 8 derive the same.
//   speed_mbps          The same count stops where the devices' speed reaches that of the GPU's
//                       PCIe link. Compared, where NICs are exposed more than once, if the two
//                       speeds give different counts with a PCIe link of generation 4, 5 or 6.
//   channels_per_peer   NCCL_NCHANNELS_PER_NET_PEER replaces that count, so devices and speed are
//                       not compared where both ranks have the same value.
//   max_receives        maxRecvs: above 1 NCCL shares one connection between channels. If only one
//                       end does, the other waits for connections that never come.
//   max_message_bytes   maxP2pBytes, and the limit of one isend: a receiver must accept the largest
//                       message that the sender may send. NCCL to 2.30.7 only reads it.
//
// Not compared, because NCCL agrees on the result by itself, or because no peer depends on it:
//   maxComms            Bounds the channels of this rank's rings. NCCL takes the least of all
//   ranks. ptrSupport, regIsGlobal, forceFlush
//                       NCCL exchanges for each connection whether its ends use GPUDirect RDMA;
//                       registering and flushing concern one end only.
//   railId, planeId, pciPath, guid, port, vProps
//                       Which NICs a rank's rings use; NCCL's ranks agree on the rings.
//   latency, netDeviceType, netDeviceVersion, maxMultiRequestSize
//                       Constants in every transport and table here. NCCL's model does use the
//                       latency without comparing it: compare it once it is not constant.
//   maxCollBytes        Used by CollNet only, for memory of GPUs, which it does not take here.
//
// Read in NCCL 2.24.3 to 2.30.7: ncclTopoGetNchannels and getLocalNetCountByBw (graph/paths.cc,
// topo.cc), the third all-gather of initTransportsRank (init.cc), transport/net.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ztcp::plugin {

// The largest isend. test() reports sizes as int, and NCCL's own limit for a registered user buffer
// is the same.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30U;

// One rank's values. Pure data; any thread.
struct Agreement {
  std::uint8_t tuner = 0;              // TransportKind of the rule it uses; 0: NCCL chooses.
  std::uint8_t tuner_rule = 0;         // ChannelTuner::kRule; 0 without a tuner.
  std::uint8_t max_receives = 1;       // The connection's device's: 1 to kMaxReceives.
  std::uint8_t channels_per_peer = 0;  // 1 to 64; 0: the variable is not set.
  std::uint16_t nics = 0;              // As exposed to NCCL; a merged device counts as one.
  std::uint16_t devices = 0;           // All devices of all NICs.
  std::uint32_t max_message_bytes = std::uint32_t{kMaxMessageBytes};
  std::uint32_t speed_mbps = 0;  // Sum over all devices.

  friend bool operator==(const Agreement&, const Agreement&) = default;
};

// The encoded form: the fields in their order, little-endian.
inline constexpr std::size_t kAgreementBytes = 16;
using AgreementBytes = std::span<std::byte, kAgreementBytes>;
using ConstAgreementBytes = std::span<const std::byte, kAgreementBytes>;
void encode(const Agreement& agreement, AgreementBytes out);
// Accepts any bytes: the values are compared and printed, nothing else.
Agreement decode_agreement(ConstAgreementBytes bytes);

// Names a rank in messages.
struct RankName {
  std::string host;  // Empty: unknown.
};

// Every difference with both values and the setting that removes it, in one sentence for the log;
// empty: the ranks agree.
std::string differences(const Agreement& ours, const RankName& us, const Agreement& theirs,
                        const RankName& them);

}  // namespace ztcp::plugin
