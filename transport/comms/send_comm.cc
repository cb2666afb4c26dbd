// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/send_comm.h"

#include <chrono>

namespace ztcp::comms {

template <>
Result<bool> TableRequest<SendingComm>::test(std::span<std::size_t> sizes_bytes) {
  return comm_.test(static_cast<SendRequest&>(*this), sizes_bytes);
}

Result<SendCommPtr> SendingComm::connect(const std::shared_ptr<Nic>& nic, Endpoint remote,
                                         const msg::Cookie& cookie) {
  Result<SendingComm*> comm = fail(Errc::kFull, "connect");
  for (Poller* const poller : nic->by_dialled(remote.address)) {
    comm = begin(*poller, remote, cookie);
    if (comm || comm.error().code != Errc::kFull) break;
  }
  if (!comm) return tl::unexpected(comm.error());
  (*comm)->poller_.note_dialled(1);
  (*comm)->link_patience_.set_limit(nic->link_patience);
  (*comm)->hand_to_nccl(nic);
  return SendCommPtr(*comm);
}

Result<SendingComm*> SendingComm::begin(Poller& poller, Endpoint remote,
                                        const msg::Cookie& cookie) {
  Backend& backend = poller.backend();
  return poller.with_backend([&](TimePoint) -> Result<SendingComm*> {
    if (backend.sessions().is_full()) return fail(Errc::kFull, "connect");
    std::unique_ptr<SendingComm> owned(new SendingComm(poller, remote));
    SendingComm* const comm = owned.get();
    // First: whoever is attached has a session, also when memory ends in between.
    comm->session_ = &backend.sessions().connect(remote, cookie, *comm);
    comm->set_index(ZTCP_TRY(backend.clients().attach(std::move(owned))));
    return comm;
  });
}

SendingComm::~SendingComm() {
  if (session_ != nullptr) poller_.backend().sessions().destroy(*session_);
}

Result<bool> SendingComm::is_ready() {
  if (!is_ready_now() && !has_failed()) poller_.progress();
  if (has_failed()) return tl::unexpected(report());
  if (is_ready_now()) return true;
  const bool is_up = poller_.backend().state() == link::LinkState::kUp;
  if (link_patience_.is_over(std::chrono::steady_clock::now(), is_up)) {
    poller_.with_backend([&](TimePoint now) {
      fail_now(now, Error{Errc::kNoRoute, 0, "the link never came up"});
    });
    // Not where the process ends: what is waited for then does not end any more.
    if (has_failed()) return tl::unexpected(report());
  }
  return false;
}

Result<Request*> SendingComm::post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) {
  return post([&](SendRequest& request) { request.start(bytes, tag, link_key(key)); });
}

}  // namespace ztcp::comms
