// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A kernel TCP connection as a Stream. What is written waits in a queue of its own until the kernel
// takes it, and is "acknowledged" as that has copied it; bytes come in to where the user wants
// them. Belongs to whoever runs the turns of its host, and makes no call that blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/core/stream.h"
#include "transport/link/fd.h"
#include "transport/msg/record.h"
#include "transport/sockets/bulk_calls.h"
#include "transport/sockets/socket.h"
#include "transport/sockets/tx_queue.h"

namespace ztcp::sockets {

class SocketStream;

// Who runs it.
class StreamHost {
 public:
  // It is connected.
  virtual void on_connected(const link::Fd& fd) = 0;
  // The peer's window has been closed for so long, and its kernel answers.
  virtual void on_shut_window(const link::Fd& fd, Duration lasted) = 0;
  // It has something to send, and the kernel may take it.
  virtual void on_sendable(SocketStream& stream) = 0;
  // It is to be read, whatever epoll says.
  virtual void on_readable(SocketStream& stream) = 0;
  // tell_delivery() is to be called until it says that all is told.
  virtual void on_delivery_asked(SocketStream& stream) = 0;
  // It is done with, and its descriptor about to be closed; destroyed later, for it may be on the
  // stack.
  virtual void on_gone(SocketStream& stream) = 0;
  // Workers, if there are any: see BulkCalls. A call comes back by on_call_done().
  BulkCalls& bulk_calls() const { return bulk_calls_; }

 protected:
  explicit StreamHost(BulkCalls& bulk_calls) : bulk_calls_(bulk_calls) {}
  ~StreamHost() = default;

 private:
  BulkCalls& bulk_calls_;
};

struct StreamCounters {
  std::uint64_t queued_bytes = 0;  // Now, of all streams: the kernel has no room for them yet.
  std::uint64_t sent_bytes = 0;
  std::uint64_t send_calls = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t copied_bytes = 0;   // Of those received: not put in their place by the kernel.
  std::uint64_t worker_calls = 0;   // Of all calls, those that workers did.
  std::uint64_t queue_calls = 0;    // That asked what the peer has not acknowledged.
  std::uint64_t send_refusals = 0;  // No buffer in the kernel.
  std::uint64_t retransmissions = 0;
  std::uint64_t failed = 0;  // In use: a peer that has closed, too, may end the rest by RST.
};

class SocketStream final : public Stream {
 public:
  // What is worth having in the queue: two chunks, so that the kernel finds the next one there.
  static constexpr std::size_t kQueueBytes = 512U << 10;
  // Of a burst before others have their turn; where workers wait for what the turn finds for them,
  // no more than they have to do meanwhile.
  static constexpr std::size_t kBurstBytes = 1U << 20;
  static constexpr std::size_t kBurstBesideWorkersBytes = 128U << 10;
  // For bytes that have no place yet.
  static constexpr std::size_t kScratchBytes = 64U << 10;

  enum class State : std::uint8_t {
    kConnecting,
    kOpen,
    kEnding,  // The user has left; the rest is sent, and the peer's FIN waited for.
    kGone,
  };

  // `events`: null until set_events(), of an accepted one.
  SocketStream(StreamHost& host, StreamCounters& counters, link::Fd fd, State state,
               StreamEvents* events, TimePoint deadline)
      : host_(host),
        counters_(counters),
        fd_(std::move(fd)),
        state_(state),
        events_(events),
        deadline_(deadline) {}
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  void set_events(StreamEvents& events) { events_ = &events; }
  int fd() const { return fd_.get(); }
  State state() const { return state_; }
  bool is_gone() const { return state_ == State::kGone; }
  bool has_to_send() const { return !queue_.empty() || (wants_fin_ && !said_fin_); }
  // Has something that the kernel may take.
  bool wants_to_send() const { return has_to_send() && is_writable_ && !call_.is_out; }
  SentBytes sent() const { return sockets::sent_bytes(fd_); }
  std::uint32_t retransmissions() const { return sockets::retransmissions(fd_); }
  bool leads_to(IpAddress remote) const { return !is_gone() && sockets::leads_to(fd_, remote); }
  void ask_for_answer() const { sockets::ask_for_answer(fd_); }
  Duration silence() const { return sockets::silence(fd_); }
  // To be open, or to have ended, by then.
  TimePoint deadline() const { return deadline_; }

  // --- The user's --------------------------------------------------------------------------------
  std::size_t room() const override;
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override;
  void finish() override;
  void close() override;
  void abort() override;
  void ask_delivery() override;
  void settle_place() override {
    if (call_.is_out && call_.kind == BulkCall::Kind::kReceive) host_.bulk_calls().wait_for(call_);
  }
  StreamHealth health() const override { return is_gone() ? health_at_end_ : sockets::health(fd_); }
  StreamStall stall(TimePoint) const override {
    return is_gone() ? StreamStall{} : sockets::stall(fd_);
  }
  void tolerate_shut_window(Duration lasted) override {
    if (!is_gone()) host_.on_shut_window(fd_, lasted);
  }

  // --- The host's --------------------------------------------------------------------------------
  // What epoll says, edge by edge.
  void on_ready(TimePoint now, std::uint32_t epoll_events);
  bool is_readable() const { return is_readable_ && !is_gone() && !call_.is_out; }
  // Every turn reads it. So what comes is looked at in one turn and taken from the kernel in the
  // next: that acknowledges it, for which nobody should wait who waits for the bytes.
  void set_direct(bool is_direct) { is_direct_ = is_direct; }
  // Something may have come that epoll was not asked for.
  void expect() { is_readable_ |= state_ != State::kConnecting && !has_ended_; }
  // Until there is no more for now, or others should have their turn. True when bytes came.
  bool receive(TimePoint now, std::span<std::byte> scratch);
  // The same for what is to be sent. True when bytes left.
  bool send(TimePoint now);
  // Tells the user how much the peer's TCP has acknowledged. True: of all that was written.
  bool tell_delivery(TimePoint now);
  // The worker's call has come back.
  void on_call_done(TimePoint now);
  // A worker has a call of it: it is not to be destroyed.
  bool has_call_out() const { return call_.is_out; }
  // The deadline has passed.
  void give_up(TimePoint now);

  // The host's: what had been sent when it looked for losses last.
  SentBytes sent_before;
  TimePoint looked_at = TimePoint::min();

  bool in_ready_list = false;
  bool in_send_list = false;
  bool in_delivery_list = false;

 private:
  void open(TimePoint now);
  bool receive_once(TimePoint now, std::span<std::byte> scratch, std::size_t& taken);
  bool take_seen(TimePoint now, std::span<std::byte> scratch);
  bool on_no_bytes(TimePoint now, ssize_t got);
  std::size_t burst_bytes() const {
    return host_.bulk_calls().has_workers() ? kBurstBesideWorkersBytes : kBurstBytes;
  }
  bool is_worth_placing(const Place& next) const;
  bool is_to_be_placed(const Place& next) const;
  bool give_receive(const Place& next);
  bool give_send();
  void on_received(TimePoint now);
  void on_sent(TimePoint now);
  void take_sent(TimePoint now, std::size_t bytes);
  void on_send_error(TimePoint now, int sys_errno);
  void say_fin(TimePoint now);
  void on_end(TimePoint now);
  void end_if_over(TimePoint now);
  void fail(TimePoint now, int sys_errno, const char* where);
  void fail(TimePoint now, Error error);
  void go(bool with_reset);

  StreamHost& host_;
  StreamCounters& counters_;
  link::Fd fd_;
  State state_;
  StreamEvents* events_;
  TimePoint deadline_;
  TxQueue queue_;
  std::uint64_t taken_bytes_ = 0;  // By the kernel.
  bool is_readable_ = false;
  bool is_writable_ = true;
  bool expects_place_ = false;  // The next message's bytes: its header is read alone.
  std::uint32_t reads_until_probe_ = 0;
  bool is_direct_ = false;
  bool reads_little_ = false;   // As it did last.
  std::size_t seen_bytes_ = 0;  // Were looked at, and are still the kernel's.
  bool may_end_ = false;        // A FIN or an error lies behind the bytes: read until it comes.
  bool has_ended_ = false;      // The peer's direction.
  int send_errno_ = 0;          // Nothing can be sent: what has come is read, then it fails.
  bool wants_fin_ = false;
  bool said_fin_ = false;
  StreamHealth health_at_end_;
  // At most one, either way: while it is out nothing else is done with the socket, whose lock it
  // holds.
  BulkCall call_;
  std::size_t call_bytes_ = 0;  // What it is for: of a send all, of a receive those with a place.
  std::array<std::byte, msg::kChunkRecordBytes> behind_;
};

}  // namespace ztcp::sockets
