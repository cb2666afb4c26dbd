// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The engine's half of a comm: a session, the slots posted on it and how it ended. Owned by its
// Poller from attach() on; NCCL's half (comm.h) keeps a pointer until it calls close().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/core/address.h"
#include "transport/core/result.h"
#include "transport/msg/recv_session.h"
#include "transport/msg/send_session.h"
#include "transport/ustack/engine/engine.h"
#include "transport/ustack/poller.h"
#include "transport/ustack/slots.h"

namespace ztcp::ustack {

enum class Direction : std::uint8_t { kSend, kReceive };

// What the failure line says besides the error, as it was when the session failed.
struct FailureSnapshot {
  std::uint64_t messages_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t retransmitted_bytes = 0;  // Of the whole NIC.
  std::uint64_t rto_fired = 0;
  link::LinkState link = link::LinkState::kUp;
  std::string detail;  // What the message layer knows besides the Error.
};

class CommState final : public PollerClient, public msg::SendOwner, public msg::RecvOwner {
 public:
  // Both with the baton held. The session of a sender is started here; a receiver's is adopted.
  static Result<CommState*> connect(Poller& poller, Engine& engine, Endpoint remote,
                                    const msg::Cookie& cookie);
  // On failure the session is reset.
  static Result<CommState*> adopt(Poller& poller, Engine& engine,
                                  std::unique_ptr<msg::RecvSession> session);
  ~CommState() override;

  // --- NCCL's progress thread --------------------------------------------------------------------
  Result<Request*> post(std::byte* data, std::size_t size_bytes, std::uint32_t memory_key);
  Result<bool> test(Slot& slot, std::size_t* size_bytes);

  // --- Any thread --------------------------------------------------------------------------------
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The failure, logged at its first report. Only when failed().
  Error report();
  bool touches(const void* address, std::size_t size_bytes) const {
    return !failed() && slots_.any_posted_in(address, size_bytes);
  }
  Direction direction() const { return direction_; }
  Endpoint remote() const { return remote_; }

  // --- The holder of the baton -------------------------------------------------------------------
  // Ends the session: in peace when nothing is in flight, else with RST, after which no posted
  // buffer is touched again. NCCL's half must not use this object any more.
  void close(TimePoint now);
  // RST now; what is posted fails with `error`.
  void fail_now(TimePoint now, Error error, std::string detail = {});

  void on_doorbell(TimePoint now) override;
  void on_link_lost(TimePoint now) override;
  void on_peer_died(TimePoint now, Ipv4Address peer, const std::string& why) override;
  void say_goodbye(TimePoint now) override;
  void cut_off(TimePoint now) override;
  void on_ready(TimePoint now) override;
  void on_done(msg::SendMessage& message) override;
  void on_done(msg::RecvMessage& message) override;
  void on_session_failed(Error error) override;
  void on_session_closed() override;

 private:
  CommState(Poller& poller, Engine& engine, Direction direction, Endpoint remote);
  void complete(std::uint32_t slot, std::size_t size_bytes);
  void retire();
  void abort_session();
  void note_failed(Error error, std::string detail = {});

  Poller& poller_;
  Engine& engine_;
  const Direction direction_;
  const Endpoint remote_;
  std::size_t index_ = 0;
  SlotTable slots_;
  // Of the one direction there is, by slot.
  const std::unique_ptr<LentSend[]> sends_;
  const std::unique_ptr<LentRecv[]> receives_;

  // Guarded by the baton.
  msg::SendSession* sender_ = nullptr;
  std::unique_ptr<msg::RecvSession> receiver_;
  std::uint32_t in_flight_ = 0;
  std::uint64_t messages_done_ = 0;
  std::uint64_t bytes_done_ = 0;
  bool session_over_ = false;  // Failed, closed or aborted: no event follows.
  bool closing_ = false;
  bool leaving_ = false;  // The process ends.
  bool retired_ = false;

  // Read at each post and test; what the engine writes for each message must not lie beside it.
  alignas(64) std::atomic<bool> ready_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> reported_{false};
  Error error_;  // These two are written before failed_.
  FailureSnapshot snapshot_;
};

}  // namespace ztcp::ustack
