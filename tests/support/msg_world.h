// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A sending and a receiving session over MemoryStreams, driven event by event under one seed. Each
// step checks the promises of msg/:
//   * every message arrives once, byte for byte, in its own buffer, and no byte beside the buffer
//     changes: the j-th sent with a tag in the j-th buffer posted with it;
//   * every completion is reported once, and never before its bytes are there;
//   * after its completion a send buffer is not read and a receive buffer not written;
//   * bytes without a posted buffer never exceed the allowance.
// With workers, these copy the received bytes, out of memory that stays lent until they are done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/memory_streams.h"
#include "tests/support/virtual_workers.h"
#include "transport/msg/acceptor.h"
#include "transport/msg/copy_jobs.h"
#include "transport/msg/recv_session.h"
#include "transport/msg/send_session.h"

namespace ztcp::testing_support {

// NCCL's limit of sends, and as many receives, outstanding.
inline constexpr std::size_t kMaxOutstanding = 32;

struct MsgScript {
  // False: over streams like the kernel's, which put most messages in place themselves; the sender
  // then keeps copies of small messages.
  void set_ack_is_delivery(bool is_so) {
    session.ack_is_delivery = is_so;
    streams.is_kernel_like = !is_so;
    session.kept_message_bytes = is_so ? 0 : 32U << 10;
  }

  StreamScript streams;
  msg::SessionSettings session;
  msg::ClusterKey sender_key{};
  msg::ClusterKey receiver_key{};
  std::vector<std::size_t> sizes;          // One for each message.
  std::vector<std::uint32_t> tags;         // One for each message; empty: all equal.
  std::vector<std::size_t> receive_order;  // Order of the messages' buffers; empty: as sent.
  std::size_t group = 1;                   // Buffers posted at once.
  // Limit of posted buffers. As NCCL does, both sides count the outstanding operations only.
  std::size_t post_ahead = kMaxOutstanding;
  unsigned post_chance = 4;  // A post happens at one in so many events; 0: by hand.
  unsigned send_chance = 2;
  unsigned flush_chance = 4;           // 0: only when no other event can happen.
  std::optional<std::size_t> kill_at;  // The flow `kill_pair` dies before this event.
  std::size_t kill_pair = 0;           // Modulo the living pairs.
  unsigned kill_chance = 0;            // Any living pair dies at one in so many events; 0: never.
  // With workers: small limits, so that the tests' messages count as large and are cut often.
  msg::CopySettings copies{
      .workers = 0, .least_message_bytes = 2000, .least_piece_bytes = 1, .stretch_bytes = 1024};
};

class MsgWorld final : public msg::ListenerEvents {
 public:
  explicit MsgWorld(const MsgScript& script);
  ~MsgWorld();

  // Runs until `until` is true. False: no event can happen any more, or a promise is broken.
  template <class Until>
  bool run_until(Until until, std::size_t max_events = 20'000'000) {
    while (!until()) {
      if (!problem_.empty() || events_ >= max_events) return false;
      if (!step()) return until();
    }
    return problem_.empty();
  }
  bool run_all() {
    return run_until([&] { return all_done(); });
  }
  // Closes both sides; true once both have seen the end.
  bool close_all();
  bool step();

  bool all_done() const {
    return sender.done == script_.sizes.size() && receiver.done == script_.sizes.size();
  }
  // The receiver has every message that was reported done to the sender.
  bool has_received_all_sent() const {
    return std::all_of(messages_.begin(), messages_.end(),
                       [](const Message& m) { return !m.sent || m.received; });
  }
  bool has_unposted_sends() const { return next_send_ < script_.sizes.size(); }
  bool has_unposted_receives() const { return next_receive_ < script_.sizes.size(); }
  // Verifies that no buffer changed after its completion; returns the first broken promise.
  std::string problem();

  struct Side final : msg::SendOwner, msg::RecvOwner {
    void on_ready(TimePoint) override { ++ready; }
    void on_done(msg::SendMessage& message) override;
    void on_done(msg::RecvMessage& message) override;
    void on_session_failed(Error e) override {
      ++failed;
      error = e;
    }
    void on_session_closed() override { ++closed; }

    MsgWorld* world = nullptr;
    unsigned ready = 0;
    unsigned failed = 0;
    unsigned closed = 0;
    std::size_t done = 0;
    Error error;
  };

  // As SIGKILL does: from now on only the sending process's kernel acts.
  void end_sender_process();

  // That side's application posts nothing any more.
  void stop_sending() { script_.send_chance = 0; }
  void stop_receiving() { script_.post_chance = 0; }

  void post_send();
  void post_receive();
  // Posts a buffer of another size than the message's.
  void post_receive(std::size_t buffer_bytes);

  void on_session(TimePoint now, std::unique_ptr<msg::RecvSession> session) override;

  TimePoint now{};
  Side sender;
  Side receiver;
  MemoryStreams net;
  VirtualWorkers workers;
  msg::CopyJobs copies;
  msg::Acceptor acceptor;
  std::unique_ptr<msg::SendSession> send_session;
  std::unique_ptr<msg::RecvSession> recv_session;
  std::size_t sends_outstanding() const { return next_send_ - sender.done; }
  std::size_t events() const { return events_; }
  std::uint64_t most_unposted_bytes() const { return most_unposted_bytes_; }

  // Fills the posted buffers with a pattern, to find out whether anybody writes to them.
  void spoil_posted_buffers();
  bool are_posted_buffers_spoilt() const;

  static constexpr msg::Cookie kCookie{std::byte{7}, std::byte{9}};

 private:
  struct Message {
    struct Send final : msg::SendMessage {
      std::size_t number = 0;
    } send;
    struct Recv final : msg::RecvMessage {
      std::size_t number = 0;
    } recv;
    std::vector<std::byte> send_buffer;
    std::vector<std::byte> recv_buffer;  // With a margin.
    bool sent = false;
    bool received = false;
  };

  std::uint32_t tag(std::size_t number) const {
    return script_.tags.empty() ? 0 : script_.tags[number];
  }
  std::size_t next_to_receive() const;
  void kill_one(std::size_t which);
  void complete(bool is_sender, std::size_t number, std::size_t size_bytes);
  void check();
  void broken(std::string what);
  bool advance_time();
  bool copy_some();

  MsgScript script_;
  std::mt19937_64 rng_;
  std::deque<Message> messages_;  // Records must not move.
  bool sender_is_gone_ = false;
  std::size_t next_send_ = 0;
  std::size_t next_receive_ = 0;
  std::size_t events_ = 0;
  TimePoint last_event_{};
  std::uint64_t most_unposted_bytes_ = 0;
  std::string problem_;
};

// Byte `i` of message `number`.
std::byte pattern(std::size_t number, std::size_t i);

}  // namespace ztcp::testing_support
