// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The software NIC of a process: a thread that sends the requests posted to the queue pairs and
// carries out, in this process's memory, those of other processes' queue pairs. NICs find each
// other in a folder, as nic.0, nic.1 ..., and a queue pair's number names its NIC. Each has a Unix
// stream to each NIC, itself included, for its own packets; answers come back on the same stream.
//
// It is as reliable as RC queue pairs are: packets are numbered and acknowledged, and go out again
// from the first unacknowledged one, after the queue pair's timeout and as often as it says; a peer
// that does not answer is IBV_WC_RETRY_EXC_ERR. Between queue pairs there is no order: their turns
// are drawn.
//
// One lock for all but atomics; memory moves under it, so that none is deregistered meanwhile.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "tests/support/verbs/soft_nic/counters.h"
#include "tests/support/verbs/soft_nic/memory.h"
#include "tests/support/verbs/soft_nic/objects.h"
#include "tests/support/verbs/soft_nic/settings.h"
#include "tests/support/verbs/soft_nic/stream.h"

namespace ztcp::soft_nic {

class Nic {
 public:
  // The process's NIC; never destroyed.
  static Nic& get();

  const Settings& settings() const { return settings_; }
  Counters& counters() { return counters_; }
  std::mutex& mutex() { return mutex_; }

  // --- Under the lock ----------------------------------------------------------------------------
  // The first call joins the network. False: it can't, with errno set.
  bool start();
  MemoryTable& memory() { return memory_; }
  void add(Context& context) { contexts_.push_back(&context); }
  void remove(Context& context) { std::erase(contexts_, &context); }
  void add(QueuePair& qp);  // Gives it a number.
  void remove(QueuePair& qp) { queue_pairs_.erase(qp.qp_num); }
  QueuePair* find(std::uint32_t number) const;
  bool has_any_of(const ibv_pd* domain) const;
  // Wakes the thread: there is something to send.
  void ring() const;
  // To the error state: all posted requests are flushed.
  void fail(QueuePair& qp);

 private:
  Nic();
  void run();

  // --- Streams (nic.cc) --------------------------------------------------------------------------
  Stream* stream_to(std::uint32_t node);
  void watch(Stream& stream, bool also_for_room) const;
  void accept_all();
  void on_readable(Stream& stream);
  void write_out(Stream& stream);
  void forget(const Stream& stream);

  // --- Sends of queue pairs (requester.cc) ------------------------------------------------------
  void send_all(TimePoint now);
  bool send_packet(QueuePair& qp, TimePoint now);
  ibv_wc_status begin(QueuePair& qp, Work& work);
  bool is_lost(const QueuePair& qp);
  static void go_back(QueuePair& qp);
  void on_silence(QueuePair& qp, TimePoint now);
  static TimePoint silence_ends(const QueuePair& qp);
  void on_answer(const Packet& packet, std::span<const std::byte> payload);
  void on_refusal(QueuePair& qp, const Packet& packet);
  void acknowledge(QueuePair& qp, std::uint32_t psn);
  void finish(QueuePair& qp, ibv_wc_status status);
  void end_fated(QueuePair& qp);
  void count_message(QueuePair& qp);
  void lose(Device& device, ibv_event_type event);
  void bring_up(TimePoint now);
  void tell(const Device& device, ibv_event_type event);
  TimePoint next_deadline() const;

  // --- Packets for queue pairs (responder.cc) --------------------------------------------------
  void on_request(Stream& stream, const Packet& packet, std::span<const std::byte> payload);
  ibv_wc_status carry_out(QueuePair& qp, const Packet& packet, std::span<const std::byte> payload);
  ibv_wc_status check(QueuePair& qp, const Packet& packet, unsigned needed, std::size_t size,
                      Memory*& out);
  ibv_wc_status fill(QueuePair& qp, std::span<const std::byte> payload);
  void answer_read(Stream& stream, QueuePair& qp, const Packet& packet);
  void tell_receiver(QueuePair& qp, const Packet& packet);

  void complete(ibv_cq* cq, const ibv_wc& completion, std::uint32_t sends);
  bool happens_once_of(std::uint64_t of) { return of != 0 && random_() % of == 0; }

  const Settings settings_;
  Counters counters_;
  std::mutex mutex_;
  MemoryTable memory_;
  std::mt19937_64 random_;
  std::vector<Context*> contexts_;
  std::map<std::uint32_t, QueuePair*> queue_pairs_;
  std::uint32_t next_number_ = 0;
  std::uint64_t messages_ = 0;  // Messages begun.
  std::uint64_t begun_or_come_ = 0;

  bool is_started_ = false;
  std::uint32_t node_ = 0;
  int listener_ = -1;
  int epoll_ = -1;
  int doorbell_ = -1;
  std::map<std::uint32_t, Stream*> outgoing_;       // By node.
  std::map<int, std::unique_ptr<Stream>> streams_;  // By descriptor.
};

}  // namespace ztcp::soft_nic
