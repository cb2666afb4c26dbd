// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The queue pairs of one connection and the one completion queue that they share. Made and joined
// by the control thread, then used by one thread of NCCL's.
#pragma once

#include <array>
#include <cstdint>
#include <endian.h>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/verbs/connection_manager.h"
#include "transport/verbs/device.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/parts.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

struct QueuePairSettings {
  std::uint32_t count = 1;
  std::uint32_t receive_depth = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;    // If the device has none of its own.
  bool sends_pieces = false;         // Pieces of messages; a receiver sends slots alone.
  bool takes_notifications = false;  // The peer may notify of a piece separately.
  bool reads = false;                // For flushes.
  bool answers_reads = false;        // For flushes; else the peer may only write.
};

// A completion queue or queue pair named by an event. It may be destroyed already: a queue pair
// made since at the same address has another number.
struct FailedPart {
  const void* at = nullptr;
  std::uint32_t number = 0;  // A queue pair's.
};

class QueuePairs final : public WorkQueues {
 public:
  // The ids of receives, and of writes without a completion of their own: the message behind them
  // confirms them.
  static constexpr std::uint64_t kReceiveId = ~std::uint64_t{0};
  static constexpr std::uint64_t kWriteId = kReceiveId - 1;
  // The id of probes, the only work outside of a session (peer_probe.h).
  static constexpr std::uint64_t kProbeId = kReceiveId - 2;
  // Enough for a row of one slot, and for small messages of NCCL's.
  static constexpr std::uint32_t kInlineBytes = 64;

  ~QueuePairs();
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;

  // In state INIT, where they take receives. `address` is the port's current one.
  static Result<std::unique_ptr<QueuePairs>, ReasonedError> create(
      const Device& device, const PortAddress& address, const QueuePairSettings& settings);

  void tell(RailFacts& facts) const;
  // To RTR, then RTS; of as many queue pairs as both ends have.
  Result<void, ReasonedError> join(const RailFacts& peer);
  // Begins to join queue pairs of iWARP, after join(); cm_connection() tells when that is done.
  void connect(std::shared_ptr<ConnectionManager> manager, const RailFacts& peer, bool initiates,
               const Nonce& nonce);
  const CmConnection* cm_connection() const { return cm_connection_.get(); }
  // Joins them; null: not needed.
  const std::shared_ptr<ConnectionManager>& manager() const { return manager_; }
  // All work ends with an error, and memory is no longer accessed.
  void abort();

  std::uint32_t count() const { return count_; }
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  std::uint32_t number(std::uint32_t index) const { return parts_.pairs[index]->qp_num; }
  // The queue pair with this number; count(): none.
  std::uint32_t index_of(std::uint32_t number) const;

  // Whether the part is one of these.
  bool uses(const FailedPart& part) const;

  // Returns the number of completions; negative: the device has failed.
  int poll(std::span<ibv_wc> out) {
    return ibv_poll_cq(parts_.completions.get(), static_cast<int>(out.size()), out.data());
  }
  Status post(std::uint32_t queue_pair, const WorkRequest& request) override;
  Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override;
  // A receive completed, successfully or not.
  void took_receive() { --receives_out_; }
  // A receive that succeeded.
  Notification take_receive(const ibv_wc& completion) {
    took_receive();
    if (parts_.notifications == nullptr) [[likely]]
      return {be32toh(completion.imm_data), completion.byte_len};
    return take_notification(completion);
  }
  bool is_drained() const { return receives_out_ == 0; }
  // Reads one byte of `from`: the device completes its earlier writes first.
  Status post_read(const std::byte* from, std::uint32_t rkey, std::uint64_t id);

 private:
  QueuePairs(const Device& device, const PortAddress& address, const QueuePairSettings& settings)
      : device_(device),
        address_(address),
        settings_(settings),
        notified_separately_above_(settings.sends_pieces ? device.notified_separately_above
                                                         : Device::kNever) {}
  Result<void, ReasonedError> create_pair(std::uint32_t index);
  ibv_ah_attr path_to(const RailFacts& peer) const;
  Result<void, ReasonedError> take_ece(const RailFacts& peer);
  Result<void, ReasonedError> create_notifications();
  Result<void, ReasonedError> create_read();
  Result<RegionHandle, ReasonedError> own_region(void* at, std::size_t size, int access,
                                                 const char* call) const;
  std::uint32_t send_depth() const;
  // iWARP has no write with an immediate: every piece is notified separately.
  bool is_notified_separately(const WorkRequest& request) const {
    return request.kind == WorkRequest::Kind::kWriteImmediate &&
           (device_.is_iwarp || request.size_bytes > notified_separately_above_);
  }
  bool notifies_separately() const {
    return settings_.sends_pieces &&
           (device_.is_iwarp || notified_separately_above_ != Device::kNever);
  }
  Status post_with_notification(std::uint32_t queue_pair, const WorkRequest& request);
  Status send(std::uint32_t queue_pair, ibv_send_wr& first);
  Notification take_notification(const ibv_wc& completion);

  const Device& device_;
  const PortAddress address_;
  const QueuePairSettings settings_;
  std::uint32_t notified_separately_above_;
  QueuePairParts parts_;
  // Joins them, if the exchange does not suffice (iWARP).
  std::shared_ptr<ConnectionManager> manager_;
  std::shared_ptr<CmConnection> cm_connection_;
  std::uint32_t count_ = 0;
  std::uint32_t receives_out_ = 0;
  std::array<std::uint32_t, kMaxQueuePairs> posted_{};  // Receives with memory, by queue pair.
  std::array<std::uint32_t, kMaxQueuePairs> taken_{};
  std::uint32_t inline_bytes_ = kInlineBytes;
  std::optional<ibv_ece> ece_;  // The choice of a receiver's device.
};

}  // namespace ztcp::verbs
