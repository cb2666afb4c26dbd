// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One connection between two devices: its queue pairs, the memory that the peer writes to, and what
// the control thread has heard. The control thread joins it and lets go of it last; once it is
// ready all else belongs to the thread of NCCL's that uses its comm.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "transport/core/address.h"
#include "transport/transport.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/session/slot.h"

namespace ztcp::verbs {

enum class Direction : std::uint8_t { kSend, kReceive };

// A sender's ring is written by the peer and its sizes are sent from; a receiver has it the other
// way round.
struct alignas(4096) ControlMemory {
  Ring ring{};
  SizeTable sizes{};
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

class Connection {
 public:
  enum class Phase : std::uint8_t { kConnecting, kReady, kFailed };

  Connection(std::shared_ptr<Rail> rail, Direction direction, Endpoint peer)
      : rail_(std::move(rail)), direction_(direction), peer_(peer) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- Who makes it ------------------------------------------------------------------------------
  Made<void> prepare(std::uint32_t queue_pairs, std::uint8_t traffic_class);
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

  Rail& rail() const { return *rail_; }
  const std::shared_ptr<Rail>& shared_rail() const { return rail_; }
  Direction direction() const { return direction_; }
  Endpoint peer() const { return peer_; }  // Of the exchange.

  // --- Whose it is -------------------------------------------------------------------------------
  QueuePairs& queues() { return *queues_; }
  ControlMemory& memory() { return *memory_; }
  std::uint32_t memory_key() const { return region_->lkey; }
  const EndFacts& peer_facts() const { return peer_facts_; }

 private:
  // They go from the last to the first: queue pairs before what they use.
  const std::shared_ptr<Rail> rail_;
  std::unique_ptr<ControlMemory> memory_;
  RegionHandle region_;
  std::unique_ptr<QueuePairs> queues_;

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
