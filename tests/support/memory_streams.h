// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// In-memory streams for tests of msg/: pairs of connected ends. A seeded generator draws each
// event, so that the seed alone replays a failing run. They are as hard on a session as the
// interface allows:
//   * referenced memory is read at delivery, not at the write, as zero-copy and retransmission do;
//   * bytes arrive in pieces of any size, acknowledgements late;
//   * a killed pair loses its undelivered bytes and may lose acknowledgements of delivered ones;
//   its
//     two ends hear of it at different times;
//   * a stalled direction delivers nothing and has no room;
//   * lent received bytes are overwritten as soon as they are given back.
// Streams that behave as the kernel's do are hard in other ways, see StreamScript.
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

#include "core/address.h"
#include "core/stream.h"
#include "transport/msg/session.h"

namespace ztcp::testing_support {

struct StreamScript {
  std::uint64_t seed = 1;
  std::size_t max_piece_bytes = 9000;    // The most bytes of one on_bytes().
  std::size_t window_bytes = 64U << 10;  // room() is the part of it that is free.
  std::size_t ring_bytes = 512U << 10;   // Beyond it write() fails, when room() is 0, too.
  unsigned loan_refused_chance = 0;      // One loan in so many is refused; 0: none.
  // As kernel sockets do: bytes are copied some time after the write, and acknowledged at that
  // time, delivered or not; bytes that have a place are put there, the last one first.
  bool is_kernel_like = false;
};

class MemoryStreams;

// One end of a pair.
class MemoryStream final : public Stream {
 public:
  MemoryStream(MemoryStreams& net, std::size_t pair) : net_(net), pair_(pair) {}

  std::size_t room() const override;
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override;
  void finish() override { assert(false); }  // Sessions call close() instead.
  void close() override;
  void abort() override;
  void ask_delivery() override { wants_delivery_ = true; }

  std::size_t pair() const { return pair_; }
  std::uint64_t written_bytes() const { return written_; }

 private:
  friend class MemoryStreams;
  struct Item {
    std::vector<std::byte> copied;  // Empty: `referenced` has the bytes.
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
  bool stalled_ = false;  // Nothing is sent from this end.
  bool is_orphan_ = false;
  bool wants_delivery_ = false;
  std::deque<Item> queue_;
  std::deque<std::byte> taken_;  // Bytes that the kernel has copied and not delivered.
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

  // Carries out one event. False: none can happen until a session writes or time passes.
  bool step(TimePoint now);

  // Both ends fail; undelivered bytes are lost.
  void kill(std::size_t pair, Errc why = Errc::kTimedOut);
  // Bytes that the dialling end writes stay queued.
  void stall(std::size_t pair, bool stalled) { pairs_[pair].first->stalled_ = stalled; }
  // The dialling process ends without notice to its sessions. Its kernel goes on sending the bytes
  // it has copied, then FIN; but when any bytes come from the peer, it drops the rest.
  void orphan(std::size_t pair);
  // The next dials get no answer, or fail at once.
  void lose_dials(std::size_t count) { lost_dials_ = count; }
  void refuse_dials(std::size_t count) { refused_dials_ = count; }

  std::uint32_t lend() override;
  void give_back(std::uint32_t loan) override;
  std::size_t loans() const { return loans_.size() - free_loans_.size(); }

  // Calls of on_delivered() at all ends.
  std::uint64_t deliveries_told() const { return deliveries_told_; }

  std::size_t pairs() const { return pairs_.size(); }
  // True while the pair can carry bytes.
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
  // The bytes that may be acknowledged.
  std::uint64_t acknowledgeable(const MemoryStream& end) const {
    return script_.is_kernel_like ? end.taken_bytes_ : end.delivered_;
  }
  std::size_t draw(std::size_t n) { return static_cast<std::size_t>(rng_() % n); }

  StreamScript script_;
  std::mt19937_64 rng_;
  Accept accept_;
  std::vector<Pair> pairs_;  // `first` is the dialling end.
  // The bytes that on_bytes() is showing, and those of earlier calls that are still lent.
  std::shared_ptr<std::vector<std::byte>> shown_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> loans_;
  std::vector<std::uint32_t> free_loans_;
  std::uint64_t deliveries_told_ = 0;
  std::size_t lost_dials_ = 0;
  std::size_t refused_dials_ = 0;
};

}  // namespace ztcp::testing_support
