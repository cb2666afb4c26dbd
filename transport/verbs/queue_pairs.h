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
  std::uint8_t service_level = 0;    // Where the device has none of its own.
  bool sends_pieces = false;         // Of messages; who receives these sends slots alone.
  bool takes_notifications = false;  // The peer may tell of a piece apart from it.
  bool reads = false;                // For flushes.
  bool answers_reads = false;        // Likewise; else the peer may write alone.
};

// A completion queue or queue pair that the library tells of, which may be no more: a queue pair
// made since at the same place has another number.
struct FailedPart {
  const void* at = nullptr;
  std::uint32_t number = 0;  // Of a queue pair.
};

// Why the library refused, for the log: "ibv_create_qp: Cannot allocate memory; raise ...".
struct Refusal {
  Error error;
  std::string text;
};
template <class T>
using Made = tl::expected<T, Refusal>;

class QueuePairs final : public WorkQueues {
 public:
  // What completions of receives have as their id, and those of writes that nobody asks about: a
  // message behind tells of them.
  static constexpr std::uint64_t kReceiveId = ~std::uint64_t{0};
  static constexpr std::uint64_t kWriteId = kReceiveId - 1;
  // Of the one work beside those of a session (peer_probe.h).
  static constexpr std::uint64_t kProbeId = kReceiveId - 2;
  // A control message of one slot, and small messages of NCCL's.
  static constexpr std::uint32_t kInlineBytes = 64;

  ~QueuePairs();
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;

  // In state INIT: they take receives. `address` is the port's by now.
  static Made<std::unique_ptr<QueuePairs>> create(const Device& device, const PortAddress& address,
                                                  const QueuePairSettings& settings);

  void tell(RailFacts& facts) const;
  // To RTR, then RTS; of as many queue pairs as the peer has, too.
  Made<void> join(const RailFacts& peer);
  // Those of iWARP are not joined by then: it begins so, and has come about when cm_connection()
  // says.
  void connect(std::shared_ptr<ConnectionManager> manager, const RailFacts& peer, bool initiates,
               const Nonce& nonce);
  const CmConnection* cm_connection() const { return cm_connection_.get(); }
  // What joins them; null: nothing has to.
  const std::shared_ptr<ConnectionManager>& manager() const { return manager_; }
  // All work ends with an error, and memory is left alone.
  void abort();

  std::uint32_t count() const { return count_; }
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  std::uint32_t number(std::uint32_t index) const { return parts_.pairs[index]->qp_num; }
  // Of this number; count() when it is none of them.
  std::uint32_t index_of(std::uint32_t number) const;

  // Whether it is one of them.
  bool uses(const FailedPart& part) const;

  // How many completions there were; negative: the device can't tell.
  int poll(std::span<ibv_wc> out) {
    return ibv_poll_cq(parts_.completions.get(), static_cast<int>(out.size()), out.data());
  }
  Status post(std::uint32_t queue_pair, const WorkRequest& request) override;
  Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override;
  // One has come back, however.
  void took_receive() { --receives_out_; }
  // One that succeeded.
  Notification take_receive(const ibv_wc& completion) {
    took_receive();
    if (parts_.notifications == nullptr) [[likely]]
      return {be32toh(completion.imm_data), completion.byte_len};
    return take_notification(completion);
  }
  bool is_drained() const { return receives_out_ == 0; }
  // One byte of `from`, for what a read has the device do with what it wrote before.
  Status post_read(const std::byte* from, std::uint32_t rkey, std::uint64_t id);

 private:
  QueuePairs(const Device& device, const PortAddress& address, const QueuePairSettings& settings)
      : device_(device),
        address_(address),
        settings_(settings),
        notified_separately_above_(settings.sends_pieces ? device.notified_separately_above
                                                         : Device::kNever) {}
  Made<void> create_pair(std::uint32_t index);
  ibv_ah_attr path_to(const RailFacts& peer) const;
  Made<void> take_ece(const RailFacts& peer);
  Made<void> create_notifications();
  Made<void> create_read();
  Made<RegionHandle> own_region(void* at, std::size_t size, int access, const char* call) const;
  std::uint32_t send_depth() const;
  // iWARP has no write with an immediate: it tells of all apart.
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
  // What joins them, where they can't be joined by what the ends tell each other.
  std::shared_ptr<ConnectionManager> manager_;
  std::shared_ptr<CmConnection> cm_connection_;
  std::uint32_t count_ = 0;
  std::uint32_t receives_out_ = 0;
  std::array<std::uint32_t, kMaxQueuePairs> posted_{};  // Receives with memory, by queue pair.
  std::array<std::uint32_t, kMaxQueuePairs> taken_{};
  std::uint32_t inline_bytes_ = kInlineBytes;
  std::optional<ibv_ece> ece_;  // What a receiver's device has agreed to.
};

}  // namespace ztcp::verbs
