// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's recvComm over queue pairs. It progresses inside of post_recv() and test(), and no thread
// is needed for a message.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/verbs/comm_end.h"
#include "transport/verbs/flusher.h"
#include "transport/verbs/message_timer.h"
#include "transport/verbs/session/recv_session.h"

namespace ztcp::verbs {

class QueuePairRecv final : public RecvComm {
 public:
  // The connection is ready.
  static Result<RecvCommPtr> open(std::shared_ptr<ControlThread> control_thread,
                                  const std::shared_ptr<Connection>& connection);

  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override;
  Result<Request*> post_flush(std::span<const RecvBuffer> buffers) override;
  void close() override;
  // The first registration of GPU memory also makes the queue pairs of flushes.
  Result<MemoryKey*> register_memory(const Region& region) override;
  Status deregister_memory(MemoryKey* key) override { return end_.deregister_memory(key); }
  std::string describe_peer() const override { return end_.describe_peer(); }

 private:
  struct Received final : Request {
    Result<bool> test(std::span<std::size_t> sizes_bytes) override {
      return comm->test(*this, sizes_bytes);
    }
    std::size_t pieces(std::span<PieceFacts, kMaxPieces> out) const override {
      return comm->pieces(*this, out);
    }
    void begin(std::size_t buffers) {
      buffers_ = static_cast<std::uint8_t>(buffers);
      is_held = true;
    }
    QueuePairRecv* comm = nullptr;
    std::uint16_t number = 0;
    bool is_held = false;  // Until NCCL is told that it is complete.
    MessageTimer::Begun begun;
  };
  struct Flushed final : Request {
    Flushed() { buffers_ = 0; }
    Result<bool> test(std::span<std::size_t>) override { return comm->test(*this); }
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    QueuePairRecv* comm = nullptr;
    std::array<std::uint64_t, kMaxRails> ids{};  // By rail.
  };

  QueuePairRecv(std::shared_ptr<ControlThread> control_thread,
                const std::shared_ptr<Connection>& connection);
  Result<bool> test(Received& received, std::span<std::size_t> sizes_bytes);
  Result<bool> test(Flushed& flushed);
  std::size_t pieces(const Received& received, std::span<PieceFacts, kMaxPieces> out);
  Status progress();
  Status prepare_flushes();
  bool may_flush(const RailState& rail_state) const;
  Status make_flusher(std::size_t rail);
  RecvSession& session() const { return end_.connection().traffic().receiver(); }

  CommEnd end_;
  MessageTimer timer_;
  std::array<Received, kPosts> requests_;
  std::array<Flushed, kPosts> flushes_;
  std::uint64_t next_flush_ = 0;
  std::vector<std::optional<Flusher>> flushers_;  // By rail, where there is GPU memory.
  std::mutex flushers_mutex_;                     // Held while flushers are made.
  bool has_prepared_flushes_ = false;
};

}  // namespace ztcp::verbs
