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
#include <span>
#include <string>

#include "transport/verbs/device.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

struct QueuePairSettings {
  std::uint32_t count = 1;
  std::uint32_t receive_depth = 0;
  std::uint8_t traffic_class = 0;
  bool sends_pieces = false;    // Of messages; who receives these sends slots alone.
  bool takes_tellings = false;  // The peer may tell of a piece apart from it.
};

// What comes behind a piece that is told of apart: what else would be the write's immediate and the
// size that came with it.
struct Telling {
  std::uint32_t immediate = 0;
  std::uint32_t size_bytes = 0;
};
// A page: nobody else's memory is kept from forked children for its sake.
struct alignas(4096) TellingPage {
  std::array<Telling, 512> slots{};
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
  // A control message of one slot, and small messages of NCCL's.
  static constexpr std::uint32_t kInlineBytes = 64;

  // In state INIT: they take receives.
  static Made<std::unique_ptr<QueuePairs>> create(const Device& device,
                                                  const QueuePairSettings& settings);

  void tell(RailFacts& facts) const;
  // To RTR, then RTS; of as many queue pairs as the peer has, too.
  Made<void> join(const RailFacts& peer);
  // All work ends with an error, and memory is left alone.
  void abort();

  std::uint32_t count() const { return count_; }
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  std::uint32_t number(std::uint32_t index) const { return pairs_[index]->qp_num; }
  // Of this number; count() when it is none of them.
  std::uint32_t index_of(std::uint32_t number) const;

  bool uses(const ibv_cq* queue) const { return completions_.get() == queue; }

  // How many completions there were; negative: the device can't tell.
  int poll(std::span<ibv_wc> out) {
    return ibv_poll_cq(completions_.get(), static_cast<int>(out.size()), out.data());
  }
  Status post(std::uint32_t queue_pair, std::span<const WorkRequest> requests) override;
  Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override;
  // One has come back, however.
  void took_receive() { --receives_out_; }
  // One that succeeded.
  Telling take_receive(const ibv_wc& completion) {
    took_receive();
    if (tellings_ == nullptr) [[likely]]
      return {be32toh(completion.imm_data), completion.byte_len};
    return take_telling(completion);
  }
  bool is_drained() const { return receives_out_ == 0; }
  // One byte of `from`, for what a read has the device do with what it wrote before.
  Status post_read(std::byte* to, std::uint32_t lkey, const std::byte* from, std::uint32_t rkey,
                   std::uint64_t id);

 private:
  QueuePairs(const Device& device, const QueuePairSettings& settings)
      : device_(device),
        settings_(settings),
        told_apart_above_(settings.sends_pieces ? device.told_apart_above : Device::kNever) {}
  Made<void> create_pair(std::uint32_t index);
  Made<void> create_tellings();
  std::uint32_t send_depth() const;
  bool is_told_apart(const WorkRequest& request) const {
    return request.kind == WorkRequest::Kind::kWriteImmediate &&
           request.size_bytes > told_apart_above_;
  }
  Telling take_telling(const ibv_wc& completion);

  const Device& device_;
  const QueuePairSettings settings_;
  std::uint32_t told_apart_above_;
  std::shared_ptr<OpenDevice> opened_;
  // Where tellings come, in the order of the receives; none: nobody sends any.
  std::unique_ptr<TellingPage[]> tellings_;  // By queue pair.
  RegionHandle tellings_region_;
  CompletionQueueHandle completions_;
  std::array<QueuePairHandle, kMaxQueuePairs> pairs_;
  std::uint32_t count_ = 0;
  std::uint32_t receives_out_ = 0;
  std::array<std::uint32_t, kMaxQueuePairs> posted_{};  // Receives with memory, by queue pair.
  std::array<std::uint32_t, kMaxQueuePairs> taken_{};
  std::uint32_t inline_bytes_ = kInlineBytes;
};

}  // namespace ztcp::verbs
