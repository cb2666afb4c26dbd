// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving comm: what NCCL holds from accept to closeRecv. Made when its peer has shaken
// hands, which may be before anybody accepts it.
#pragma once

#include <memory>
#include <span>

#include "transport/comms/comm.h"
#include "transport/msg/recv_session.h"

namespace ztcp::comms {

class ReceivingComm final : public RecvCommBase, private msg::RecvOwner {
 public:
  // The holder of the baton. On failure the session is reset.
  static Result<ReceivingComm*> adopt(Poller& poller, std::unique_ptr<msg::RecvSession> session);

  // NCCL's service thread.
  RecvCommPtr accepted(std::shared_ptr<Nic> nic) {
    hand_to_nccl(std::move(nic));
    return RecvCommPtr(this);
  }

  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override;
  // Host memory: visible to the GPU when test() says done.
  Result<Request*> post_flush(std::span<const RecvBuffer>) override { return nullptr; }

 private:
  ReceivingComm(Poller& poller, std::unique_ptr<msg::RecvSession> session)
      : RecvCommBase(poller, session->remote()), session_(std::move(session)) {}

  friend RecvCommBase;
  msg::RecvSession& session() const { return *session_; }
  void post_to_session(TimePoint now, RecvRequest& request) {
    if (request.buffers() > 1) poller_.backend().note_group(request.buffers());
    for (RecvRequest::Part& part : request.parts()) session_->post(now, part);
  }
  // The sender need not be told later: its streams end here.
  bool give_up_session(TimePoint) {
    session_->give_up();
    return false;
  }
  void cut_off_session() { session_->abort(); }

  void on_done(msg::RecvMessage& message) override {
    note_done(message.size_bytes());
    RecvRequest::of(message).finish_part(message);
  }
  void on_session_failed(Error error) override { note_session_failed(error); }
  void on_session_closed() override { note_session_closed(); }

  const std::unique_ptr<msg::RecvSession> session_;  // Guarded by the baton.
};

}  // namespace ztcp::comms
