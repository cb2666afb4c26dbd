// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's sendComm over queue pairs. It progresses inside of post_send() and test(), and no thread
// is needed for a message.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "transport/verbs/comm_end.h"
#include "transport/verbs/message_timer.h"
#include "transport/verbs/session/send_session.h"

namespace ztcp::verbs {

class QueuePairSend final : public SendComm {
 public:
  QueuePairSend(std::shared_ptr<ControlThread> control_thread,
                std::shared_ptr<Connection> connection);

  Result<bool> is_ready() override;
  Result<Request*> post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) override;
  void close() override;
  Result<MemoryKey*> register_memory(const Region& region) override {
    return end_.register_memory(region);
  }
  Status deregister_memory(MemoryKey* key) override { return end_.deregister_memory(key); }
  std::string describe_peer() const override { return end_.describe_peer(); }

 private:
  struct Sent final : Request {
    Result<bool> test(std::span<std::size_t> sizes_bytes) override {
      return comm->test(*this, sizes_bytes);
    }
    std::size_t pieces(std::span<PieceFacts, kMaxPieces> out) const override {
      return comm->pieces(*this, out);
    }
    std::uint32_t finished_pieces() const override { return comm->finished_pieces(*this); }
    QueuePairSend* comm = nullptr;
    std::uint16_t number = 0;
    std::size_t size_bytes = 0;
    MessageTimer::Begun begun;
  };

  Result<bool> test(Sent& sent, std::span<std::size_t> sizes_bytes);
  std::size_t pieces(const Sent& sent, std::span<PieceFacts, kMaxPieces> out);
  std::uint32_t finished_pieces(const Sent& sent);
  Status progress(bool waits_for_peer);
  std::string why(const Error& error) const;
  SendSession& session() const { return end_.connection().traffic().sender(); }

  CommEnd end_;
  MessageTimer timer_;
  bool is_ready_ = false;
  std::array<Sent, SendSession::kMessages> requests_;
  std::array<std::uint16_t, SendSession::kMessages> free_{};  // The last given back is on top.
  std::size_t free_count_ = SendSession::kMessages;
};

}  // namespace ztcp::verbs
