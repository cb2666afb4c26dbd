// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/comm.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/process_mark.h"

namespace ztcp::comms {

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::hand_to_nccl(std::shared_ptr<Nic> nic) {
  nic_ = std::move(nic);
  nic_->end_log.opened();
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::close() {
  // The comm belongs to the parent process: a forked child leaves its copy of the NIC alone.
  if (in_forked_child()) return;
  // The turn after end() may destroy this object, and this may be the NIC's last reference.
  const std::shared_ptr<Nic> nic = std::move(nic_);
  const auto memory = registrations_.remove_all();
  Poller& poller = poller_;
  if constexpr (kDirection == Direction::kSend) poller.note_dialled(-1);
  Backend& backend = poller.backend();
  poller.with_backend([&](TimePoint now) { end(now); });
  for (const auto& one : memory) backend.unmap_memory(one->link_key);
  nic->end_log.closed();
}

template <class Base, class Posted, std::size_t kRequests>
Result<MemoryKey*> CommOf<Base, Posted, kRequests>::register_memory(const Region& region) {
  return registrations_.add(poller_.backend(), region);
}

template <class Base, class Posted, std::size_t kRequests>
Status CommOf<Base, Posted, kRequests>::deregister_memory(MemoryKey* key) {
  const auto memory = registrations_.remove(key);
  if (memory == nullptr) return fail(Errc::kInvalidArgument, "deregister_memory");
  // A posted receive may never be matched, so only sends are worth a wait.
  constexpr bool kSends = kDirection == Direction::kSend;
  const IpAddress peer = remote_.address;
  const auto begun = std::chrono::steady_clock::now();
  const auto deadline = begun + (kSends ? nic_->memory_timeout.for_peer(peer) : Duration::zero());
  Yielder yielder;
  while (touches(*memory)) {
    if (const auto at = std::chrono::steady_clock::now(); at >= deadline) {
      // Before the notes below, which allocate and may throw.
      poller_.with_backend([&](TimePoint now) {
        fail_now(now, Error{Errc::kAborted, 0, "deregister_memory"});
      });
      if (kSends) nic_->memory_timeout.ran_out(peer, at - begun);
      nic_->end_log.cut(fmt::format(
          "the job was aborted with messages under way {} {}: NCCL took their memory back",
          kSends ? "to" : "from", to_string(remote_)));
      break;
    }
    poller_.progress();
    yielder.yield();
  }
  poller_.backend().unmap_memory(memory->link_key);
  return {};
}

template <class Base, class Posted, std::size_t kRequests>
bool CommOf<Base, Posted, kRequests>::touches(const Registration& memory) const {
  return !has_failed() && requests_.any([&](const Posted& request) {
    return request.touches(memory.address, memory.size_bytes);
  });
}

template <class Base, class Posted, std::size_t kRequests>
std::string CommOf<Base, Posted, kRequests>::describe_peer() const {
  return to_string(remote_) + " on " + poller_.name();
}

template <class Base, class Posted, std::size_t kRequests>
Error CommOf<Base, Posted, kRequests>::report() {
  const Error& error = failure_.error;
  if (!reported_.exchange(true))
    nic_->end_log.failed(remote_.address, error.code,
                         failure_line(failure_, kDirection, remote_, poller_.backend()));
  return error;
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::on_doorbell(TimePoint now) {
  requests_.drain([&](Posted& request) {
    if (session_over_) return;  // The request stays posted; test() reports the failure.
    note_posted(static_cast<std::uint32_t>(request.buffers()));
    request.set_taken(now);
    self().post_to_session(now, request);
  });
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::on_link_lost(TimePoint) {
  cut_now(poller_.backend().lost_error());
  if (closing_) retire();
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::on_peer_died(TimePoint, IpAddress peer,
                                                   const std::string& why) {
  if (remote_.address != peer) return;
  // A peer that closed cleanly may end: the messages it sent can still be received.
  if (!self().session().needs_peer()) return;
  cut_now(Error{Errc::kPeerClosed, 0, "watch"}, why);
  if (closing_) retire();
}

// NCCL's threads may still be inside calls: their requests never complete, but that is not reported
// as a failure. A session that is closing already is left to finish.
template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::say_goodbye(TimePoint now) {
  if (session_over_ || closing_) return;
  session_over_ = leaving_ = true;
  poller_.backend().abandon_payload();
  self().session().leave(now);
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::cut_off() {
  if (leaving_ || closing_) self().cut_off_session();
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::refresh_page(TimePoint now) {
  if (page_ == nullptr) return;
  page_->begin_round();
  ConnectionPage::Values values{.state = has_failed()     ? "failed"
                                         : closing_       ? "closing"
                                         : is_ready_now() ? "open"
                                                          : "connecting",
                                .bytes = bytes_done_,
                                .messages = messages_done_,
                                .in_flight = in_flight_};
  if (!session_over_) {
    self().session().for_each_stream(
        [&](std::size_t index, const Stream& stream) { page_->note_stream(now, index, stream); });
    page_->note_host(self().session().peer_host());
    values.awaited = self().session().awaited();
    if constexpr (kDirection == Direction::kSend) {
      values.trouble = self().session().trouble();
      page_->note_credit(now, self().session().credit_wait());
    }
    // A session also keeps copies of messages that are done for NCCL.
    if (kDirection == Direction::kSend && in_flight_ == 0 && is_ready_now())
      values.awaited = msg::Awaited::kNothing;
    requests_.any([&](const Posted& request) {
      const TimePoint taken = request.taken();
      if (taken != TimePoint{} && (values.oldest == TimePoint{} || taken < values.oldest))
        values.oldest = taken;
      return false;
    });
  }
  page_->refresh(now, values, poller_.backend().deferred_log());
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::note_session_failed(Error error) {
  if (leaving_) return;
  if (!std::exchange(is_telling_, false)) note_failed(error);
  if (closing_) retire();
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::note_session_closed() {
  if (leaving_) return;
  const bool has_told = std::exchange(is_telling_, false);
  if (closing_) {
    session_over_ = true;
    retire();
  } else if (!has_told) {
    note_failed(Error{Errc::kPeerClosed, 0, "session"});  // Reported only if NCCL posts again.
  }
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::note_failed(Error error, const std::string& detail) {
  session_over_ = true;
  // Once failed_ is set NCCL may free posted memory, so nothing queued may refer to it.
  poller_.backend().abandon_payload();
  poller_.note_outstanding(-static_cast<std::ptrdiff_t>(in_flight_));
  failure_ = {.error = error,
              .messages_done = messages_done_,
              .bytes_done = bytes_done_,
              .in_flight = in_flight_,
              .at = poller_.backend_time(),
              .health = self().session().health(),
              .link = poller_.backend().state(),
              .session = self().session().failure_detail(),
              .detail = detail};
  in_flight_ = 0;
  failed_.store(true, std::memory_order_release);
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::fail_now(TimePoint now, Error error) {
  if (session_over_) return;
  is_telling_ = self().give_up_session(now);
  note_failed(error);
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::cut_now(Error error, const std::string& detail) {
  if (session_over_) return;
  self().session().abort();
  note_failed(error, detail);
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::end(TimePoint now) {
  if (leaving_) return;  // Its goodbye may be in flight; the end of the process frees the rest.
  closing_ = true;
  on_doorbell(now);
  refresh_page(now);  // Waits since the last refresh would be lost with the session.
  if (page_ != nullptr) page_->note_closed();
  const bool is_abort = in_flight_ != 0 || !is_ready_now();
  if (!session_over_ && !is_abort) return self().session().close();
  fail_now(now, Error{Errc::kAborted, 0, "close"});
  if (!is_telling_) retire();
}

template <class Base, class Posted, std::size_t kRequests>
void CommOf<Base, Posted, kRequests>::retire() {
  if (retired_) return;
  retired_ = true;
  if (page_ != nullptr) page_->end(poller_.turn_time(), poller_.backend().deferred_log());
  poller_.backend().clients().retire(index_);
}

template class CommOf<SendComm, SendRequest, kMaxRequests * kMaxReceives>;
template class CommOf<RecvComm, RecvRequest, kMaxRequests>;

// --- Sending -------------------------------------------------------------------------------------

template <>
Result<bool> TableRequest<SendingComm>::test(std::span<std::size_t> sizes_bytes) {
  return comm_.test(static_cast<SendRequest&>(*this), sizes_bytes);
}

Result<SendCommPtr> SendingComm::connect(const std::shared_ptr<Nic>& nic, Endpoint remote,
                                         const msg::Cookie& cookie, const CommSettings& settings) {
  Result<SendingComm*> comm = fail(Errc::kFull, "connect");
  for (Poller* const poller : nic->by_dialled(remote.address)) {
    comm = begin(*poller, remote, cookie, settings);
    if (comm || comm.error().code != Errc::kFull) break;
  }
  if (!comm) return tl::unexpected(comm.error());
  (*comm)->poller_.note_dialled(1);
  (*comm)->link_timeout_.set_limit(nic->link_timeout);
  (*comm)->hand_to_nccl(nic);
  return SendCommPtr(*comm);
}

Result<SendingComm*> SendingComm::begin(Poller& poller, Endpoint remote, const msg::Cookie& cookie,
                                        const CommSettings& settings) {
  Backend& backend = poller.backend();
  return poller.with_backend([&](TimePoint) -> Result<SendingComm*> {
    if (backend.sessions().is_full()) return fail(Errc::kFull, "connect");
    std::unique_ptr<SendingComm> owned(new SendingComm(poller, remote));
    SendingComm* const comm = owned.get();
    // Before attach(): every attached comm has a session, even where an allocation fails between.
    comm->session_ = &backend.sessions().connect(
        remote, cookie, *comm,
        {.dscp = settings.dscp, .peer_shares_nic = settings.peer_shares_nic});
    comm->set_index(ZTCP_TRY(backend.clients().attach(std::move(owned))));
    comm->open_page(settings.communicator);
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
  const bool is_up = poller_.backend().state() == LinkState::kUp;
  if (link_timeout_.is_over(std::chrono::steady_clock::now(), is_up)) {
    poller_.with_backend([&](TimePoint now) {
      fail_now(now, Error{Errc::kNoRoute, 0, "the link never came up"});
    });
    // False while the process ends (say_goodbye()): then fail_now() does nothing.
    if (has_failed()) return tl::unexpected(report());
  }
  return false;
}

Result<Request*> SendingComm::post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) {
  return post([&](SendRequest& request) { request.start(bytes, tag, link_key(key)); });
}

// --- Receiving -----------------------------------------------------------------------------------

template <>
Result<bool> TableRequest<ReceivingComm>::test(std::span<std::size_t> sizes_bytes) {
  return comm_.test(static_cast<RecvRequest&>(*this), sizes_bytes);
}

Result<ReceivingComm*> ReceivingComm::adopt(Poller& poller,
                                            std::unique_ptr<msg::RecvSession> session,
                                            std::uint64_t communicator) {
  std::unique_ptr<ReceivingComm> owned(new ReceivingComm(poller, std::move(session)));
  ReceivingComm* const comm = owned.get();
  const auto index = poller.backend().clients().attach(std::move(owned));
  if (!index) return tl::unexpected(index.error());
  comm->set_index(*index);
  comm->session_->set_owner(*comm);
  comm->set_ready();
  comm->open_page(communicator);
  return comm;
}

Result<Request*> ReceivingComm::post_recv(std::span<const RecvBuffer> buffers) {
  return post([&](RecvRequest& request) { request.start(buffers); });
}

}  // namespace ztcp::comms
