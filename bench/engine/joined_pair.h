// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two engines and one session of messages between them, joined in memory by reference.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>
#if !defined(__aarch64__)
#include <x86intrin.h>
#endif

#include "core/frame.h"
#include "core/worker_threads.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::bench {

// Ticks of the CPU's constant counter. On x86 it runs at about the nominal clock of the CPU; Arm's
// is slower, so that numbers for each byte compare only with others of the same CPU.
inline std::uint64_t read_cycles() {
#if defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
  return ticks;
#else
  return __rdtsc();
#endif
}

struct Cycles {
  std::uint64_t send = 0;
  std::uint64_t receive = 0;
};

struct PairOptions {
  std::uint16_t mtu_bytes = 9000;
  std::uint32_t super_segment_bytes = 0;  // 0: the engine cuts segments itself.
  bool checksum_offload = true;
  std::size_t workers = 0;  // Threads that copy for the receiver.
  bool is_ipv6 = false;
};

class JoinedPair {
 public:
  // The bytes that NCCL posts to a network at a time, and the number of posts it keeps in flight.
  static constexpr std::size_t kMessageBytes = 512U << 10;
  static constexpr std::size_t kInFlight = 8;

  // Sends `source` over and over into `destination`, of the same size, a multiple of
  // kMessageBytes. Both outlive the pair.
  JoinedPair(const PairOptions& options, std::span<const std::byte> source,
             std::span<std::byte> destination);

  ~JoinedPair() { workers_.stop(); }

  bool connect();
  // Moves so many more bytes, a multiple of kMessageBytes; multiples of the buffers' size leave the
  // destination complete.
  Cycles transfer(std::size_t bytes);
  // True if every message arrived, and no frame was lost, refused or sent twice.
  bool is_intact() const;

 private:
  static constexpr std::size_t kBurst = 32;

  // Counts the messages of one end.
  template <class Message>
  struct End final : msg::SendOwner, msg::RecvOwner {
    End() {
      for (Message& message : records) free.push_back(&message);
    }
    void on_ready(TimePoint) override { ready = true; }
    void on_done(msg::SendMessage& message) override { complete(message); }
    void on_done(msg::RecvMessage& message) override { complete(message); }
    template <class Done>
    void complete(Done& message) {
      if constexpr (std::is_same_v<Done, Message>) free.push_back(&message);
      ++done;
      bytes += message.size_bytes();
    }
    Message& take() {
      Message& message = *free.back();
      free.pop_back();
      return message;
    }
    void on_session_failed(Error) override { failed = true; }
    void on_session_closed() override { failed = true; }
    std::array<Message, kInFlight> records;
    std::vector<Message*> free;  // The last one used comes first.
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::uint64_t bytes = 0;
    bool ready = false;
    bool failed = false;
  };
  struct Listener final : msg::ListenerEvents {
    void on_session(TimePoint, std::unique_ptr<msg::RecvSession> incoming) override {
      session = std::move(incoming);
    }
    std::unique_ptr<msg::RecvSession> session;
  };

  // Frames in flight, with the views of them that the other side receives.
  struct Cable {
    explicit Cable(std::size_t frames) : sent(frames), views(frames), pieces(frames) {}
    std::vector<TxFrame> sent;
    std::vector<RxFrame> views;
    std::vector<std::array<std::span<const std::byte>, TxFrame::kMaxFragments>> pieces;
    std::size_t count = 0;
  };

  static ustack::EngineConfig host_config(const PairOptions& options, std::uint8_t host);
  void post_sends();
  void post_receives();
  // Delivers the frames in bursts; `to` posts after each, as a poller does, and its own frames are
  // collected. Returns the cycles spent on that side.
  template <class Post>
  std::uint64_t deliver(Cable& cable, ustack::Engine& to, Cable& answers, Post post);
  void collect(ustack::Engine& from, Cable& cable);
  void make_views(Cable& cable) const;
  void finish_copies();
  void take_released();
  void turn(Cycles& cycles);

  PairOptions options_;
  std::span<const std::byte> source_;
  std::span<std::byte> destination_;
  End<msg::SendMessage> sender_;
  End<msg::RecvMessage> receiver_;
  ustack::Engine client_;
  WorkerThreads workers_;
  ustack::Engine server_;
  Listener listener_;  // Its session ends before the engine.
  msg::SendSession* session_ = nullptr;
  Cable data_;
  Cable acks_;
  TimePoint now_{std::chrono::seconds(1)};
  std::uint64_t wanted_messages_ = 0;
};

}  // namespace ztcp::bench
