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

  friend SendCommBase;
  msg::SendSession& session() const { return *session_; }
  void post_to_session(TimePoint now, SendRequest& request) { session_->post(now, request); }
  // True: the receiver is still to be told; note_session_closed() follows.
  bool give_up_session(TimePoint now) { return session_->give_up(now); }
  void cut_off_session() { session_->cut_off(); }

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
