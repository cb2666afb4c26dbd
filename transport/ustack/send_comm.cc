// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/send_comm.h"

namespace ztcp::ustack {

template <>
Result<bool> TableRequest<UstackSendComm>::test(std::span<std::size_t> sizes_bytes) {
  return comm_.test(static_cast<SendRequest&>(*this), sizes_bytes);
}

Result<SendCommPtr> UstackSendComm::connect(const std::shared_ptr<Nic>& nic, Endpoint remote,
                                            const msg::Cookie& cookie) {
  Poller& poller = nic->choose_queue();
  UstackSendComm* comm = nullptr;
  ZTCP_CHECK(poller.with_engine([&](Engine& engine, TimePoint) -> Status {
    if (engine.is_full()) return fail(Errc::kFull, "connect");
    std::unique_ptr<UstackSendComm> owned(new UstackSendComm(poller, engine, remote));
    comm = owned.get();
    // First: whoever is attached has a session, also when memory ends in between.
    comm->session_ = &engine.connect(remote, cookie, *comm);
    comm->set_index(ZTCP_TRY(poller.clients().attach(std::move(owned))));
    return {};
  }));
  poller.note_dialled(1);
  comm->link_patience_ = nic->link_patience;
  comm->hand_to_nccl(nic);
  return SendCommPtr(comm);
}

UstackSendComm::~UstackSendComm() {
  if (session_ != nullptr) engine_.destroy(*session_);
}

Result<bool> UstackSendComm::is_ready() {
  if (in_forked_child()) return fail(Errc::kForked, "connect");
  if (!is_ready_now() && !has_failed()) poller_.progress();
  if (has_failed()) return tl::unexpected(report());
  if (is_ready_now()) return true;
  if (poller_.link_state() != link::LinkState::kUp &&
      std::chrono::steady_clock::now() - begun_ >= link_patience_) {
    poller_.with_engine([&](Engine&, TimePoint now) {
      fail_now(now, Error{Errc::kNoRoute, 0, "the link never came up"});
    });
    return tl::unexpected(report());
  }
  return false;
}

Result<Request*> UstackSendComm::post_send(std::span<const std::byte> bytes, int tag,
                                           MemoryKey* key) {
  return post([&](SendRequest& request) { request.start(bytes, tag, link_key(key)); });
}

}  // namespace ztcp::ustack
