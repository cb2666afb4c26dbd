// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A kernel TCP connection as a Stream. Written bytes wait in the stream's queue until the kernel
// takes them, and count as acknowledged once the kernel has copied them. Received bytes go to the
// places that the user gives. Used by the thread that runs its host's turns; no call blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/address.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/result.h"
#include "core/stream.h"
#include "transport/msg/record.h"
#include "transport/sockets/bulk_calls.h"
#include "transport/sockets/kernel/packet_class.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/sockets/tx_queue.h"

namespace ztcp::sockets {

class SocketStream;

// The owner of streams, which runs them: a lane.
class StreamHost {
 public:
  // The stream is connected.
  virtual void on_connected(const Fd& fd) = 0;
  // The peer's window has been closed for so long, though its kernel answers.
  virtual void on_shut_window(const Fd& fd, Duration lasted) = 0;
  // The stream has something to send, and the kernel may take it.
  virtual void on_sendable(SocketStream& stream) = 0;
  // The stream must be read, even without an event of epoll.
  virtual void on_readable(SocketStream& stream) = 0;
  // The host calls the stream's tell_delivery() until that returns true.
  virtual void on_delivery_asked(SocketStream& stream) = 0;
  // The stream has ended, and its descriptor is about to be closed. The host destroys it later,
  // because a call of the stream may be on the stack.
  virtual void on_gone(SocketStream& stream) = 0;
  // Calls for workers, if there are any. A finished call comes back by on_call_done().
  BulkCalls& bulk_calls() const { return bulk_calls_; }

 protected:
  explicit StreamHost(BulkCalls& bulk_calls) : bulk_calls_(bulk_calls) {}
  ~StreamHost() = default;

 private:
  BulkCalls& bulk_calls_;
};

struct StreamCounters {
  std::uint64_t queued_bytes = 0;  // In all streams' queues now, not yet taken by the kernel.
  std::uint64_t sent_bytes = 0;
  std::uint64_t send_calls = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t copied_bytes = 0;   // Received bytes that the kernel did not put in their place.
  std::uint64_t worker_calls = 0;   // Calls given to workers.
  std::uint64_t queue_calls = 0;    // Calls that ask for the unacknowledged bytes (SIOCOUTQ).
  std::uint64_t send_refusals = 0;  // Sends without a buffer in the kernel.
  std::uint64_t retransmissions = 0;
  std::uint64_t failed = 0;  // Streams in use. After close() a reset by the peer is normal.
};

class SocketStream final : public Stream {
 public:
  // The queue holds two chunks, so that the next one is there when the kernel has room.
  static constexpr std::size_t kQueueBytes = 512U << 10;
  // A stream moves at most so many bytes before other streams get their turn; fewer beside workers,
  // which would otherwise finish their calls and wait for the lane.
  static constexpr std::size_t kBurstBytes = 1U << 20;
  static constexpr std::size_t kBurstBesideWorkersBytes = 128U << 10;
  // The host's buffer for bytes without a place.
  static constexpr std::size_t kScratchBytes = 64U << 10;

  enum class State : std::uint8_t {
    kConnecting,
    kOpen,
    kEnding,  // The user has closed it: sends the rest, then waits for the peer's FIN.
    kGone,
  };

  // `events`: null for an accepted stream, until set_events().
  SocketStream(StreamHost& host, StreamCounters& counters, Fd fd, State state, StreamEvents* events,
               TimePoint deadline)
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
  // Has bytes or a FIN that the kernel may take now.
  bool wants_to_send() const { return has_to_send() && is_writable_ && !call_.is_out; }
  SentBytes sent() const { return sockets::sent_bytes(fd_); }
  std::uint32_t retransmissions() const { return sockets::retransmissions(fd_); }
  bool leads_to(IpAddress remote) const { return !is_gone() && sockets::leads_to(fd_, remote); }
  void ask_for_answer() const { sockets::ask_for_answer(fd_); }
  Duration silence() const { return sockets::silence(fd_); }
  // Until then a connecting stream must be open, and an ending one have ended.
  TimePoint deadline() const { return deadline_; }

  // --- Called by the user ------------------------------------------------------------------------
  std::size_t room() const override;
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override;
  void finish() override;
  void close() override;
  void abort() override;
  void ask_delivery() override;
  void set_dscp(std::uint8_t dscp) override {
    if (!is_gone()) set_class(fd_, dscp);
  }
  void settle_place() override {
    if (call_.is_out && call_.kind == BulkCall::Kind::kReceive) host_.bulk_calls().wait_for(call_);
  }
  StreamHealth health() const override { return is_gone() ? health_at_end_ : sockets::health(fd_); }
  StreamStall stall(TimePoint) const override {
    return is_gone() ? StreamStall{} : sockets::stall(fd_);
  }
  StreamStatistics stream_statistics(TimePoint) const override {
    return is_gone() ? StreamStatistics{} : sockets::statistics(fd_);
  }
  void tolerate_shut_window(Duration lasted) override {
    if (!is_gone()) host_.on_shut_window(fd_, lasted);
  }

  // --- Called by the host ------------------------------------------------------------------------
  // Events of epoll, edge-triggered.
  void on_ready(TimePoint now, std::uint32_t epoll_events);
  bool is_readable() const { return is_readable_ && !is_gone() && !call_.is_out; }
  // The host reads this stream in every turn. A little data is then peeked at in one turn and
  // removed from the kernel in the next, because the removal sends an acknowledgement, for which
  // the user should not wait.
  void set_direct(bool is_direct) { is_direct_ = is_direct; }
  // Data may have arrived without an event, since epoll does not watch a direct stream for it.
  void expect() { is_readable_ |= state_ != State::kConnecting && !has_ended_; }
  // Receives until there is no more for now or a burst is complete. True: bytes were received.
  bool receive(TimePoint now, std::span<std::byte> scratch);
  // The same for sending. True: bytes were sent.
  bool send(TimePoint now);
  // Tells the user how much the peer's TCP has acknowledged. True: all that was written.
  bool tell_delivery(TimePoint now);
  // A worker has finished this stream's call.
  void on_call_done(TimePoint now);
  // A worker has a call of this stream, which must not be destroyed.
  bool has_call_out() const { return call_.is_out; }
  // The deadline has passed.
  void give_up(TimePoint now);

  // For the host: the state at its last check for losses.
  SentBytes sent_before;
  TimePoint checked_at = TimePoint::min();

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
  Fd fd_;
  State state_;
  StreamEvents* events_;
  TimePoint deadline_;
  TxQueue queue_;
  std::uint64_t taken_bytes_ = 0;  // Taken by the kernel.
  bool is_readable_ = false;
  bool is_writable_ = true;
  bool expects_place_ = false;  // Reads the next header alone: its message may have a place.
  std::uint32_t reads_until_probe_ = 0;
  bool is_direct_ = false;
  bool reads_little_ = false;   // The last read returned at most kLittle bytes.
  std::size_t seen_bytes_ = 0;  // Peeked at and passed on, but still in the kernel.
  bool may_end_ = false;        // A FIN or an error follows the bytes: read until it is found.
  bool has_ended_ = false;      // The peer's direction has ended.
  int send_errno_ = 0;          // A send failed: the stream fails once received bytes are read.
  bool wants_fin_ = false;
  bool said_fin_ = false;
  StreamHealth health_at_end_;
  // At most one call in either direction. While a worker has it the lane leaves the socket alone,
  // because the worker's call holds the socket's lock.
  BulkCall call_;
  std::size_t call_bytes_ = 0;  // Requested bytes: all of a send, those with a place of a receive.
  std::array<std::byte, msg::kChunkRecordBytes> behind_;
};

}  // namespace ztcp::sockets
