// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A comm: NCCL holds it as sendComm or recvComm, and the poller drives it. One object with two
// halves, one for NCCL's threads and one for the engine, which share the request table and a few
// atomic words. The backend's table of clients owns it; NCCL has the pointer until close(), and the
// object is destroyed later, when its streams have ended.
//
// SendingComm and ReceivingComm add the session and its direction; their base calls them without
// virtual functions. The poller has the backend that carries the bytes (backend.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "core/address.h"
#include "core/result.h"
#include "transport/comms/comm_settings.h"
#include "transport/comms/connection_page.h"
#include "transport/comms/failure.h"
#include "transport/comms/link_timeout.h"
#include "transport/comms/nic.h"
#include "transport/comms/poller.h"
#include "transport/comms/registrations.h"
#include "transport/comms/request.h"
#include "transport/comms/request_table.h"
#include "transport/msg/recv_session.h"
#include "transport/msg/send_session.h"
#include "transport/msg/session.h"
#include "transport/transport.h"

namespace ztcp::comms {

// Base: SendComm or RecvComm. Posted: its requests, at most kRequests. The class that is derived
// from this one, Posted::Owner, has session(), post_to_session(), give_up_session() and
// cut_off_session(), all called with the baton held.
template <class Base, class Posted, std::size_t kRequests>
class CommOf : public Base, public Client {
 public:
  static constexpr Direction kDirection =
      std::is_same_v<Base, SendComm> ? Direction::kSend : Direction::kReceive;

  // --- NCCL's service thread ---------------------------------------------------------------------
  void close() final;
  Result<MemoryKey*> register_memory(const Region& region) final;
  Status deregister_memory(MemoryKey* key) final;
  std::string describe_peer() const final;

  // --- NCCL's progress thread: a request's test() ------------------------------------------------
  Result<bool> test(Posted& request, std::span<std::size_t> sizes_bytes) {
    if (take_done(request, sizes_bytes)) return true;
    poller_.progress();
    if (take_done(request, sizes_bytes)) return true;
    if (has_failed()) [[unlikely]]
      return tl::unexpected(report());
    return false;
  }

  // --- The holder of the baton -------------------------------------------------------------------
  // Ends the session: orderly when nothing is in flight, else by an abort, after which no posted
  // buffer is touched again.
  void end(TimePoint now);
  // Posted requests fail with `error`, now, and their memory is NCCL's again; the peer is told.
  void fail_now(TimePoint now, Error error);

  void on_doorbell(TimePoint now) final;
  void on_link_lost(TimePoint now) final;
  void on_peer_died(TimePoint now, IpAddress peer, const std::string& why) final;
  void say_goodbye(TimePoint now) final;
  void cut_off() final;
  void refresh_page(TimePoint now) final;

 protected:
  CommOf(Poller& poller, Endpoint remote) : poller_(poller), remote_(remote) {}

  // NCCL's service thread. NCCL holds the comm from here on, and the comm its NIC until close().
  void hand_to_nccl(std::shared_ptr<Nic> nic);

  // NCCL's progress thread. Posts a request that `start` has written; null: no request is free.
  template <class Start>
  Result<Request*> post(Start&& start) {
    if (has_failed()) [[unlikely]]
      return tl::unexpected(report());
    Posted* const request = requests_.take(self());
    if (request == nullptr) {
      poller_.progress();
      return nullptr;
    }
    start(*request);
    requests_.post(*request);
    poller_.ring(index_);
    poller_.kick();
    return request;
  }

  // Any thread.
  bool is_ready_now() const { return ready_.load(std::memory_order_acquire); }
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  // The failure; the first call logs it. Only when has_failed().
  Error report();

  // The holder of the baton, for the events of the session.
  void set_index(std::size_t index) { index_ = index; }
  void open_page(std::uint64_t communicator) {
    constexpr auto kWay = kDirection == Direction::kSend ? stats::Way::kSend : stats::Way::kReceive;
    page_ = ConnectionPage::open(poller_.page(), kWay, remote_, communicator);
  }
  void set_ready() { ready_.store(true, std::memory_order_release); }
  void note_posted(std::uint32_t messages) {
    in_flight_ += messages;
    poller_.note_outstanding(messages);
  }
  void note_done(std::size_t size_bytes, TimePoint taken) {
    if (page_ != nullptr && ConnectionPage::is_counted(size_bytes, messages_done_))
      page_->add_latency(size_bytes, poller_.turn_time() - taken);
    if constexpr (kDirection == Direction::kSend)
      poller_.backend().note_sent_message();
    else
      poller_.backend().note_received_message();
    --in_flight_;
    poller_.note_outstanding(-1);
    ++messages_done_;
    bytes_done_ += size_bytes;
  }
  void note_session_failed(Error error);
  void note_session_closed();

  Poller& poller_;
  const Endpoint remote_;

 private:
  typename Posted::Owner& self() { return static_cast<typename Posted::Owner&>(*this); }
  bool take_done(Posted& request, std::span<std::size_t> sizes_bytes) {
    if (!request.is_done()) return false;
    request.tell_sizes(sizes_bytes);
    requests_.give_back(request);
    return true;
  }
  bool touches(const Registration& memory) const;
  // Like fail_now(), where the peer can't be told: the link is lost, or its process has ended.
  void cut_now(Error error, const std::string& detail = {});
  void note_failed(Error error, const std::string& detail = {});
  void retire();

  // Used by NCCL's service thread.
  std::shared_ptr<Nic> nic_;
  Registrations registrations_;

  // Used by NCCL's progress thread; the engine takes from the table's ring.
  std::size_t index_ = 0;  // In the doorbell.
  RequestTable<Posted, kRequests> requests_;

  // Guarded by the baton.
  std::uint32_t in_flight_ = 0;
  std::uint64_t messages_done_ = 0;
  std::uint64_t bytes_done_ = 0;
  bool session_over_ = false;  // Failed, closed or aborted: it takes no more posts.
  bool is_telling_ = false;    // Aborted; the session lives until its peer was told.
  bool closing_ = false;
  bool leaving_ = false;  // The process ends.
  bool retired_ = false;
  std::unique_ptr<ConnectionPage> page_;  // Null: the page is off.

  // Read at each post and test, so on another cache line than words written for each message.
  alignas(64) std::atomic<bool> ready_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> reported_{false};
  Failure failure_;  // Written before failed_ is set.
};

// NCCL_NET_MAX_REQUESTS, and as many sends as buffers can be posted for them.
inline constexpr std::size_t kMaxRequests = 32;
using SendCommBase = CommOf<SendComm, SendRequest, kMaxRequests * kMaxReceives>;
using RecvCommBase = CommOf<RecvComm, RecvRequest, kMaxRequests>;
extern template class CommOf<SendComm, SendRequest, kMaxRequests * kMaxReceives>;
extern template class CommOf<RecvComm, RecvRequest, kMaxRequests>;

// NCCL's sendComm, from connect to closeSend. Its session belongs to the backend.
class SendingComm final : public SendCommBase, private msg::SendOwner {
 public:
  // NCCL's service thread. Begins to connect; is_ready() tells the end.
  static Result<SendCommPtr> connect(const std::shared_ptr<Nic>& nic, Endpoint remote,
                                     const msg::Cookie& cookie, const CommSettings& settings = {});
  ~SendingComm() override;

  Result<bool> is_ready() override;
  Result<Request*> post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) override;

 private:
  using SendCommBase::CommOf;
  static Result<SendingComm*> begin(Poller& poller, Endpoint remote, const msg::Cookie& cookie,
                                    const CommSettings& settings);

  // Called by SendCommBase.
  friend SendCommBase;
  msg::SendSession& session() const { return *session_; }
  void post_to_session(TimePoint now, SendRequest& request) { session_->post(now, request); }
  // True: the receiver is told later, and then note_session_closed() is called.
  bool give_up_session(TimePoint now) { return session_->give_up(now); }
  void cut_off_session() { session_->cut_off(); }

  void on_ready(TimePoint) override { set_ready(); }
  void on_done(msg::SendMessage& message) override {
    SendRequest& request = SendRequest::of(message);
    note_done(message.size_bytes(), request.taken());
    request.finish();
  }
  void on_session_failed(Error error) override { note_session_failed(error); }
  void on_session_closed() override { note_session_closed(); }

  LinkTimeout link_timeout_;             // Used by NCCL's service thread.
  msg::SendSession* session_ = nullptr;  // Guarded by the baton.
};

// NCCL's recvComm, from accept to closeRecv. Made at the end of the handshake, which may be before
// NCCL accepts it.
class ReceivingComm final : public RecvCommBase, private msg::RecvOwner {
 public:
  // The holder of the baton. On failure the session is reset.
  static Result<ReceivingComm*> adopt(Poller& poller, std::unique_ptr<msg::RecvSession> session,
                                      std::uint64_t communicator = 0);

  // NCCL's service thread.
  RecvCommPtr accepted(std::shared_ptr<Nic> nic) {
    hand_to_nccl(std::move(nic));
    return RecvCommPtr(this);
  }

  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override;
  // No flush is needed for host memory: it is visible to the GPU once test() returns true.
  Result<Request*> post_flush(std::span<const RecvBuffer>) override { return nullptr; }

 private:
  ReceivingComm(Poller& poller, std::unique_ptr<msg::RecvSession> session)
      : RecvCommBase(poller, session->remote()), session_(std::move(session)) {}

  // Called by RecvCommBase.
  friend RecvCommBase;
  msg::RecvSession& session() const { return *session_; }
  void post_to_session(TimePoint now, RecvRequest& request) {
    if (request.buffers() > 1) poller_.backend().note_group(request.buffers());
    for (RecvRequest::Part& part : request.parts()) session_->post(now, part);
  }
  // False: the sender was told at once, over its streams, which end here.
  bool give_up_session(TimePoint) {
    session_->give_up();
    return false;
  }
  void cut_off_session() { session_->abort(); }

  void on_done(msg::RecvMessage& message) override {
    RecvRequest& request = RecvRequest::of(message);
    note_done(message.size_bytes(), request.taken());
    request.finish_part(message);
  }
  void on_session_failed(Error error) override { note_session_failed(error); }
  void on_session_closed() override { note_session_closed(); }

  const std::unique_ptr<msg::RecvSession> session_;  // Guarded by the baton.
};

}  // namespace ztcp::comms
