// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two engines and one stream between them, joined in memory by reference.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>
#include <x86intrin.h>

#include "transport/core/frame.h"
#include "transport/core/ordered_copy.h"
#include "transport/core/stream.h"
#include "transport/tcp/stack.h"

namespace ztcp::bench {

inline std::uint64_t read_cycles() { return __rdtsc(); }

struct Cycles {
  std::uint64_t send = 0;
  std::uint64_t receive = 0;
};

struct PairOptions {
  std::uint16_t mtu_bytes = 9000;
  std::uint32_t super_segment_bytes = 0;  // 0: the engine cuts segments itself.
  bool checksum_offload = true;
};

class JoinedPair {
 public:
  // Sends `source` over and over into `destination`, of the same size. Both outlive the pair.
  JoinedPair(const PairOptions& options, std::span<const std::byte> source,
             std::span<std::byte> destination);

  bool connect();
  // Moves so many more bytes; multiples of the buffers' size leave the destination complete.
  Cycles transfer(std::size_t bytes);
  // Nothing was lost, refused or sent twice.
  bool is_intact() const;

 private:
  static constexpr std::size_t kBurst = 32;

  // Writes as much as the stream has room for.
  class Sender final : public StreamEvents {
   public:
    explicit Sender(std::span<const std::byte> source) : source_(source) {}
    void want(std::uint64_t total_bytes) {
      wanted_ = total_bytes;
      pump();
    }
    bool is_open() const { return stream_ != nullptr; }
    bool failed() const { return failed_; }
    std::uint64_t acked() const { return acked_; }
    void on_open(TimePoint, Stream& stream) override { stream_ = &stream; }
    void on_bytes(TimePoint, std::span<const std::byte>) override {}
    void on_acked(TimePoint, std::uint64_t total_bytes) override {
      acked_ = total_bytes;
      pump();
    }
    void on_closed(TimePoint) override { failed_ = true; }
    void on_failed(TimePoint, Error) override { failed_ = true; }

   private:
    void pump();
    std::span<const std::byte> source_;
    Stream* stream_ = nullptr;
    std::uint64_t written_ = 0;
    std::uint64_t wanted_ = 0;
    std::uint64_t acked_ = 0;
    bool failed_ = false;
  };

  // Copies what arrives into the posted buffer: the one copy.
  class Receiver final : public StreamEvents, public tcp::StreamAcceptor {
   public:
    explicit Receiver(std::span<std::byte> destination) : destination_(destination) {}
    std::uint64_t received() const { return received_; }
    bool failed() const { return failed_; }
    StreamEvents* on_accept(TimePoint, Stream&, Endpoint) override { return this; }
    void on_open(TimePoint, Stream&) override {}
    void on_bytes(TimePoint, std::span<const std::byte> bytes) override;
    void on_acked(TimePoint, std::uint64_t) override {}
    void on_closed(TimePoint) override { failed_ = true; }
    void on_failed(TimePoint, Error) override { failed_ = true; }

   private:
    std::span<std::byte> destination_;
    std::size_t at_ = 0;
    std::uint64_t received_ = 0;
    bool failed_ = false;
  };

  // Frames on their way, with the views of them that the other side receives.
  struct Cable {
    explicit Cable(std::size_t frames) : sent(frames), views(frames), pieces(frames) {}
    std::vector<TxFrame> sent;
    std::vector<RxFrame> views;
    std::vector<std::array<std::span<const std::byte>, TxFrame::kMaxFragments>> pieces;
    std::size_t count = 0;
  };

  static tcp::StackConfig host_config(const PairOptions& options, std::uint8_t host);
  // Fills the cable with all that may leave now.
  std::uint64_t collect(tcp::Stack& from, Cable& cable);
  // Hands it over in bursts; after each the receiving side's own frames are collected.
  std::uint64_t deliver(Cable& cable, tcp::Stack& to, Cable& answers);
  void make_views(Cable& cable) const;
  void turn(Cycles& cycles);

  PairOptions options_;
  Sender sender_;
  Receiver receiver_;
  tcp::Stack client_;
  tcp::Stack server_;
  Cable data_;
  Cable acks_;
  TimePoint now_{std::chrono::seconds(1)};
  std::uint64_t wanted_ = 0;
};

}  // namespace ztcp::bench
