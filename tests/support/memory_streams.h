// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Streams in memory for tests of msg/: pairs of connected ends whose every move is an event drawn
// by a seeded generator, so that a failing run is replayed by its seed alone. Hard on its users on
// purpose:
//   * referenced memory is read when it is delivered, not when it is written, as zero-copy and
//     retransmission do;
//   * bytes arrive in pieces of any size, acknowledgements late;
//   * a killed pair loses what was not delivered and may lose acknowledgements of what was; its
//     two ends hear of it at different times;
//   * a stalled direction delivers nothing and has no room;
//   * received bytes that were lent are spoilt the moment they are given back.
// Those like the kernel's are hard in other ways, see StreamScript.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/stream.h"
#include "transport/msg/session.h"

namespace ztcp::testing_support {

struct StreamScript {
  std::uint64_t seed = 1;
  std::size_t max_piece_bytes = 9000;    // Of one on_bytes().
  std::size_t window_bytes = 64U << 10;  // room() is what is left of it.
  std::size_t ring_bytes = 512U << 10;   // write() fails beyond, when room() is 0 too.
  unsigned loan_refused_chance = 0;      // One in so many; 0: never.
  // As kernel sockets do: bytes are copied at some time after the write, and acknowledged by that,
  // delivered or not; those that have a place are put there, the last one first.
  bool is_kernel_like = false;
};

class MemoryStreams;

// One end.
class MemoryStream final : public Stream {
 public:
  MemoryStream(MemoryStreams& net, std::size_t pair) : net_(net), pair_(pair) {}

  std::size_t room() const override;
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override;
  void finish() override { assert(false); }  // Sessions close.
  void close() override;
  void abort() override;
  void ask_delivery() override { wants_delivery_ = true; }

  std::size_t pair() const { return pair_; }
  std::uint64_t written_bytes() const { return written_; }

 private:
  friend class MemoryStreams;
  struct Item {
    std::vector<std::byte> copied;  // Or:
    const std::byte* referenced = nullptr;
    std::size_t size = 0;
    std::size_t taken = 0;
  };
  enum class User : std::uint8_t { kListening, kLeft };  // kLeft: closed, aborted or failed.

  MemoryStreams& net_;
  std::size_t pair_;
  MemoryStream* peer_ = nullptr;
  StreamEvents* events_ = nullptr;
  User user_ = User::kListening;
  bool must_open_ = false;    // on_open() is due.
  bool must_accept_ = false;  // This end waits to be accepted.
  bool is_open_ = false;
  bool must_fail_ = false;
  Error failure_;
  bool fin_queued_ = false;
  bool fin_delivered_ = false;
  bool stalled_ = false;  // Nothing leaves from here.
  bool is_orphan_ = false;
  bool wants_delivery_ = false;
  std::deque<Item> queue_;
  std::deque<std::byte> taken_;  // By the kernel, and not delivered.
  std::uint64_t taken_bytes_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t told_delivered_ = 0;
};

class MemoryStreams final : public msg::Dialer, public FrameLoans {
 public:
  using Accept = std::function<StreamEvents*(TimePoint, Stream&, Endpoint)>;

  MemoryStreams(const StreamScript& script, Accept accept)
      : script_(script), rng_(script.seed), accept_(std::move(accept)) {}

  Result<Stream*> dial(TimePoint now, StreamEvents& events) override;

  // One event, if any can happen. False: all is quiet until someone writes or time passes.
  bool step(TimePoint now);

  // Both ends will fail; bytes on their way are lost.
  void kill(std::size_t pair, Errc why = Errc::kTimedOut);
  // What the dialling end writes stays queued.
  void stall(std::size_t pair, bool stalled) { pairs_[pair].first->stalled_ = stalled; }
  // The dialling process ends, without a word to its sessions. Its kernel goes on to send what it
  // has taken, then FIN; but when anything comes from the peer, it throws the rest away.
  void orphan(std::size_t pair);
  // Dials that get no answer, or fail at once.
  void lose_dials(std::size_t count) { lost_dials_ = count; }
  void refuse_dials(std::size_t count) { refused_dials_ = count; }

  std::uint32_t lend() override;
  void give_back(std::uint32_t loan) override;
  std::size_t loans() const { return loans_.size() - free_loans_.size(); }

  // on_delivered(), of all ends.
  std::uint64_t deliveries_told() const { return deliveries_told_; }

  std::size_t pairs() const { return pairs_.size(); }
  // Still able to carry bytes.
  bool is_alive(std::size_t pair) const;
  std::uint64_t bytes_sent(std::size_t pair) const { return pairs_[pair].first->written_; }

 private:
  friend class MemoryStream;
  using Pair = std::pair<std::unique_ptr<MemoryStream>, std::unique_ptr<MemoryStream>>;

  bool can_act(const MemoryStream& end) const;
  bool can_tell_delivery(const MemoryStream& end) const;
  void act(TimePoint now, MemoryStream& end);
  void deliver(TimePoint now, MemoryStream& from);
  std::vector<std::byte> take(MemoryStream& from, std::size_t wanted);
  void hand_over(TimePoint now, MemoryStream& to, std::span<const std::byte> bytes);
  // What may be acknowledged.
  std::uint64_t acknowledgeable(const MemoryStream& end) const {
    return script_.is_kernel_like ? end.taken_bytes_ : end.delivered_;
  }
  std::size_t draw(std::size_t n) { return static_cast<std::size_t>(rng_() % n); }

  StreamScript script_;
  std::mt19937_64 rng_;
  Accept accept_;
  std::vector<Pair> pairs_;  // First: the dialling end.
  // What on_bytes() is showing, and what is lent of earlier.
  std::shared_ptr<std::vector<std::byte>> shown_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> loans_;
  std::vector<std::uint32_t> free_loans_;
  std::uint64_t deliveries_told_ = 0;
  std::size_t lost_dials_ = 0;
  std::size_t refused_dials_ = 0;
};

}  // namespace ztcp::testing_support
