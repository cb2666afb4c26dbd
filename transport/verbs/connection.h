// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One connection between two devices, over one rail or several: its queue pairs, the memory that
// the peer writes to, and what the control thread has heard. The control thread joins it and lets
// go of it last; once it is ready all else belongs to the thread of NCCL's that uses its comm.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "transport/core/address.h"
#include "transport/transport.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/session/send_session.h"
#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {

enum class Direction : std::uint8_t { kSend, kReceive };

// A sender's ring is written by the peer, a receiver's is written from.
struct alignas(4096) ControlMemory {
  Ring ring{};
  std::byte flushed{};  // What a flush reads into.
};

// Of the peer, or of the device.
enum class News : std::uint8_t {
  kNone,
  kFarewell,    // It closes in peace.
  kGivenUp,     // It can't go on, and says why.
  kDied,        // Its process ended without a word.
  kDeviceLost,  // Ours.
};

class Connection final : public WorkQueues {
 public:
  enum class Phase : std::uint8_t { kConnecting, kReady, kFailed };

  // What it has on one of its rails. They go from the last to the first.
  struct Strand {
    std::shared_ptr<Rail> rail;
    RegionHandle region;  // Of the memory.
    std::unique_ptr<QueuePairs> queues;
    std::uint32_t first_queue_pair = 0;  // Among all of the connection.
  };

  Connection(std::shared_ptr<RailSet> rails, Direction direction, Endpoint peer)
      : rails_(std::move(rails)), direction_(direction), peer_(peer) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- Who makes it ------------------------------------------------------------------------------
  // With what `peer` has, if it has told. `traffic_class`: the communicator's.
  Made<void> prepare(int traffic_class, const EndFacts* peer = nullptr);
  EndFacts facts() const;
  Made<void> join(const EndFacts& peer);
  void succeed() { phase_.store(Phase::kReady, std::memory_order_release); }
  void fail(const Error& error);
  // The first counts.
  void hear(News news, Errc code, const std::string& text);

  // --- Any thread --------------------------------------------------------------------------------
  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  const Error& error() const { return error_; }  // Of one that failed before it was ready.
  News news() const { return news_.load(std::memory_order_acquire); }
  // With news.
  Errc news_code() const { return news_code_; }
  const std::string& news_text() const { return news_text_; }

  RailSet& rails() const { return *rails_; }
  Direction direction() const { return direction_; }
  Endpoint peer() const { return peer_; }  // Of the exchange.

  // --- Whose it is -------------------------------------------------------------------------------
  // As many as both ends have rails.
  std::span<const Strand> strands() const { return strands_; }
  ControlMemory& memory() { return *memory_; }
  const EndFacts& peer_facts() const { return peer_facts_; }
  RailKeys memory_lkeys() const;
  RemoteMemory peer_memory() const;
  // One of its rails is of that device; and has that completion queue, if one is given.
  bool is_over(const OpenDevice& device, const ibv_cq* queue = nullptr) const;
  // All that sessions number through.
  std::vector<QueuePairFacts> queue_pairs() const;
  void abort();

  Status post(std::uint32_t queue_pair, std::span<const WorkRequest> requests) override {
    const Place& at = places_[queue_pair];
    return at.queues->post(at.index, requests);
  }
  Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override {
    const Place& at = places_[queue_pair];
    return at.queues->post_receives(at.index, count);
  }

 private:
  struct Place {
    QueuePairs* queues = nullptr;
    std::uint32_t index = 0;
  };

  Made<void> add_strand(const std::shared_ptr<Rail>& rail, const QueuePairSettings& settings);

  const std::shared_ptr<RailSet> rails_;
  std::unique_ptr<ControlMemory> memory_;
  std::vector<Strand> strands_;
  std::array<Place, kMaxQueuePairs> places_{};

  const Direction direction_;
  const Endpoint peer_;
  EndFacts peer_facts_;
  std::atomic<Phase> phase_{Phase::kConnecting};
  Error error_;
  std::mutex news_mutex_;
  std::atomic<News> news_{News::kNone};
  Errc news_code_ = Errc::kPeerClosed;
  std::string news_text_;
};

}  // namespace ztcp::verbs
