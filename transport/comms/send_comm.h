// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending comm: what NCCL holds from connect to closeSend. Its session belongs to the backend.
#pragma once

#include <memory>
#include <span>

#include "transport/comms/comm.h"
#include "transport/comms/link_patience.h"
#include "transport/msg/send_session.h"

namespace ztcp::comms {

class SendingComm final : public SendCommBase, private msg::SendOwner {
 public:
  // NCCL's service thread: begins to connect.
  static Result<SendCommPtr> connect(const std::shared_ptr<Nic>& nic, Endpoint remote,
                                     const msg::Cookie& cookie);
  ~SendingComm() override;

  Result<bool> is_ready() override;
  Result<Request*> post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) override;

 private:
  using SendCommBase::CommOf;
  static Result<SendingComm*> begin(Poller& poller, Endpoint remote, const msg::Cookie& cookie);

  void post_to_session(TimePoint now, SendRequest& request) override {
    session_->post(now, request);
  }
  void close_session() override { session_->close(); }
  void abort_session() override { session_->abort(); }
  bool give_up_session(TimePoint now) override { return session_->give_up(now); }
  void cut_off_session() override { session_->cut_off(); }
  void leave_session(TimePoint now) override { session_->leave(now); }
  bool session_needs_peer() const override { return session_->needs_peer(); }
  const msg::FailureDetail& session_failure() const override { return session_->failure_detail(); }
  StreamHealth session_health() const override { return session_->health(); }

  void on_ready(TimePoint) override { set_ready(); }
  void on_done(msg::SendMessage& message) override {
    note_done(message.size_bytes());
    SendRequest::of(message).finish();
  }
  void on_session_failed(Error error) override { note_session_failed(error); }
  void on_session_closed() override { note_session_closed(); }

  LinkPatience link_patience_;           // NCCL's service thread's.
  msg::SendSession* session_ = nullptr;  // Guarded by the baton.
};

}  // namespace ztcp::comms
