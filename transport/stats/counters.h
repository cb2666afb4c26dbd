// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Every counter that a lane reports, of all transports: one table with names, units and meanings.
// The statistics page stores them by index, log summaries, ztcp_stat and the metrics of Prometheus
// take their names from here. A transport leaves counters at zero that it does not have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ztcp::stats {

enum class Unit : std::uint8_t { kCount, kBytes, kNanoseconds };

struct CounterText {
  const char* name;  // "rx_dropped_no_memory": lower case, no unit.
  Unit unit;
  const char* meaning;  // One sentence for an operator.
};

// clang-format off
#define ZTCP_COUNTERS(ROW) \
  ROW(kSentBytes, "sent_bytes", kBytes, "Payload sent for the first time.") \
  ROW(kReceivedBytes, "received_bytes", kBytes, "Payload received in order.") \
  ROW(kSentMessages, "sent_messages", kCount, "Messages that the peer holds.") \
  ROW(kReceivedMessages, "received_messages", kCount, "Messages received.") \
  ROW(kRetransmittedBytes, "retransmitted_bytes", kBytes, "Payload sent again.") \
  ROW(kRetransmittedSegments, "retransmitted_segments", kCount, "Segments sent again.") \
  ROW(kTimeoutRetransmissions, "retransmission_timeouts", kCount, "Retransmission timeouts (RFC 6298).") \
  ROW(kFastRecoveries, "fast_recoveries", kCount, "Recoveries from losses without a timeout (RFC 8985).") \
  ROW(kTailProbes, "tail_loss_probes", kCount, "Probes for the loss of the last segments (RFC 8985).") \
  ROW(kSpuriousRecoveries, "spurious_recoveries", kCount, "Recoveries that turned out needless.") \
  ROW(kNeedlessSegments, "needless_segments", kCount, "Retransmitted segments that the peer had already (RFC 2883).") \
  ROW(kReorderedSegments, "reordered_segments", kCount, "Segments delivered after later ones.") \
  ROW(kCeSegments, "ce_segments", kCount, "Segments received with a congestion mark (ECN).") \
  ROW(kEcnEchoes, "ecn_echoes", kCount, "Acknowledgements that report congestion marks (ECN) on sent data.") \
  ROW(kEcnReductions, "ecn_reductions", kCount, "Congestion windows reduced for congestion marks (ECN).") \
  ROW(kEcnFaults, "ecn_faults", kCount, "Connections that went on without ECN because something on the path falsifies marks.") \
  ROW(kControlChanges, "congestion_control_changes", kCount, "Connections that chose another congestion control.") \
  ROW(kReroutes, "reroutes", kCount, "Paths left because they were broken or congested, by another flow label or port (userspace TCP).") \
  ROW(kOutOfOrderSegments, "out_of_order_segments", kCount, "Segments received ahead of a hole.") \
  ROW(kDuplicateSegments, "duplicate_segments", kCount, "Segments received again.") \
  ROW(kBadChecksums, "bad_checksums", kCount, "Frames received with a wrong checksum.") \
  ROW(kMalformedFrames, "malformed_frames", kCount, "Frames that break their protocol.") \
  ROW(kRxFrames, "rx_frames", kCount, "Frames received.") \
  ROW(kTxFrames, "tx_frames", kCount, "Frames sent.") \
  ROW(kRxNoMemory, "rx_no_memory", kCount, "Frames dropped because the memory for them was used up.") \
  ROW(kNicRxMissed, "nic_rx_missed", kCount, "Frames that the NIC dropped because its receive ring was full.") \
  ROW(kNicRxNoBuffers, "nic_rx_no_buffers", kCount, "Times that the NIC's driver got no buffer for its receive ring.") \
  ROW(kNicRxErrors, "nic_rx_errors", kCount, "Damaged frames that the NIC dropped.") \
  ROW(kNicTxErrors, "nic_tx_errors", kCount, "Frames that the NIC could not send.") \
  ROW(kTxRingFull, "tx_ring_full", kCount, "Bursts that waited for room in the send ring.") \
  ROW(kTxDropped, "tx_dropped", kCount, "Frames dropped because the link was down.") \
  ROW(kResetsSent, "resets_sent", kCount, "Connections reset by this side.") \
  ROW(kConnectionsOpened, "connections_opened", kCount, "Connections opened by this side.") \
  ROW(kConnectionsAccepted, "connections_accepted", kCount, "Connections accepted.") \
  ROW(kConnectionsFailed, "connections_failed", kCount, "Connections that failed.") \
  ROW(kStrangers, "rejected_strangers", kCount, "Connections rejected for want of a valid hello.") \
  ROW(kWrongCookies, "rejected_cookies", kCount, "Connections rejected for a wrong cookie.") \
  ROW(kWrongKeys, "rejected_keys", kCount, "Connections rejected for a wrong cluster key.") \
  ROW(kRefusedFull, "refused_full", kCount, "Connections refused at the connection limit.") \
  ROW(kRedials, "redials", kCount, "Flows dialled again after they broke.") \
  ROW(kPathMtuCuts, "path_mtu_cuts", kCount, "Connections that went on with smaller packets.") \
  ROW(kArpUnresolved, "arp_unresolved", kCount, "Connects that failed without an ARP reply.") \
  ROW(kLateTurns, "late_turns", kCount, "Turns that ran late although work was due.") \
  ROW(kLateTurnTime, "late_turn_time", kNanoseconds, "Sum of these delays.") \
  ROW(kSystemCalls, "system_calls", kCount, "System calls that moved data.") \
  ROW(kWorkerCalls, "worker_calls", kCount, "Calls or copies given to workers.") \
  ROW(kCopiedBytes, "copied_bytes", kBytes, "Received bytes copied once more than necessary.") \
  ROW(kSendBufferFull, "send_buffer_full", kCount, "Sends that the kernel's buffer did not take.") \
  ROW(kZeroWindows, "zero_windows", kCount, "Times that a peer's TCP closed its window (userspace TCP).") \
  ROW(kZeroWindowTime, "zero_window_time", kNanoseconds, "Time for which bytes waited for room in the peer's TCP window, summed over flows.") \
  ROW(kCreditStalls, "credit_stalls", kCount, "Times that a connection's messages began to wait for a receive of the peer.") \
  ROW(kCreditStallTime, "credit_stall_time", kNanoseconds, "Time of these waits, summed over connections.") \
  ROW(kSlowMessages, "slow_messages", kCount, "Messages reported as slow.") \
  ROW(kStalledMessages, "stalled_messages", kCount, "Messages reported as stalled.") \
  ROW(kCompletions, "completions", kCount, "Work requests that an RDMA NIC completed, also those that failed.") \
  ROW(kNoAnswers, "completions_without_answer", kCount, "Work that failed because the peer's NIC did not answer (RETRY_EXC, RESP_TIMEOUT).") \
  ROW(kNotReady, "completions_receiver_not_ready", kCount, "Work that failed because the peer had no receive posted (RNR_RETRY_EXC).") \
  ROW(kFlushedWork, "completions_flushed", kCount, "Work that was given up with its queue pair (WR_FLUSH).") \
  ROW(kRefusedAccess, "completions_access_error", kCount, "Work that failed because a NIC may not access the memory (PROT, ACCESS).") \
  ROW(kOtherWorkErrors, "completions_other_error", kCount, "Work that failed in another way.") \
  ROW(kLostRails, "lost_rails", kCount, "Rails of connections that failed.") \
  ROW(kGpuFlushes, "gpu_flushes", kCount, "Flushes of writes into GPU memory.")
// clang-format on

enum class Counter : std::uint8_t {
#define ZTCP_ROW(id, name, unit, meaning) id,
  ZTCP_COUNTERS(ZTCP_ROW)
#undef ZTCP_ROW
      kNumber
};
inline constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::kNumber);

inline constexpr std::array<CounterText, kCounters> kCounterTexts = {{
#define ZTCP_ROW(id, name, unit, meaning) {name, Unit::unit, meaning},
    ZTCP_COUNTERS(ZTCP_ROW)
#undef ZTCP_ROW
}};

// Values by Counter.
class CounterValues {
 public:
  std::uint64_t& operator[](Counter counter) { return values_[static_cast<std::size_t>(counter)]; }
  std::uint64_t operator[](Counter counter) const {
    return values_[static_cast<std::size_t>(counter)];
  }
  const std::array<std::uint64_t, kCounters>& all() const { return values_; }

 private:
  std::array<std::uint64_t, kCounters> values_{};
};

}  // namespace ztcp::stats
