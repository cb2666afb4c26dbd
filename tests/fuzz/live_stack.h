// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A stack with one established connection and one listening port; the fuzzer is its network.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/stream.h"
#include "transport/tcp/stack.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::fuzz {

// A stack that takes its address from a router hears the frame, and what it took is well formed.
void receive_without_address(RxFrame& frame);

class LiveStack {
 public:
  static constexpr std::uint16_t kListeningPort = 7471;
  static constexpr std::uint16_t kPeerPort = 40000;

  explicit LiveStack(bool is_ipv6);

  // A frame from outside. The stack may keep it; then its memory must outlive this object.
  void receive(RxFrame& frame);
  // A segment of the established connection: numbers relative to the next ones each side expects.
  void receive_segment(wire::TcpFlags flags, std::int32_t seq_offset, std::int32_t ack_offset,
                       std::uint16_t window, std::span<const std::byte> options,
                       std::span<const std::byte> payload);
  // A router's ICMP or ICMPv6 message about a segment of the established connection, or of one
  // being opened.
  void receive_icmp(std::uint8_t type, std::uint8_t code, std::uint16_t mtu_bytes,
                    std::int32_t seq_offset, std::size_t padding_bytes);
  void advance(Duration span);
  void write(std::size_t size_bytes);
  void finish();
  void close();
  void abort();
  void connect();
  // Lets all timers expire: then nothing is held and nothing is unfinished.
  void settle();

 private:
  // Checks the promises that every user of a stream relies on.
  class User final : public StreamEvents, public tcp::StreamAcceptor {
   public:
    StreamEvents* on_accept(TimePoint, Stream& stream, Endpoint) override;
    void on_open(TimePoint, Stream& stream) override;
    void on_bytes(TimePoint, std::span<const std::byte> bytes) override;
    void on_acked(TimePoint, std::uint64_t total_bytes) override;
    void on_closed(TimePoint) override;
    void on_ended(TimePoint) override;
    void on_failed(TimePoint, Error) override;
    Stream* stream = nullptr;
    std::uint64_t written = 0;
    std::uint64_t acked = 0;
    bool closed = false;
    bool finished = false;
    std::uint8_t sum = 0;
  };

  void turn();
  void check();
  void learn(const TxFrame& frame);

  static tcp::StackConfig config(bool is_ipv6);
  // A packet from the peer, its payload zero.
  std::vector<std::byte> packet(wire::IpProtocol protocol, std::size_t payload_bytes) const;

  const bool is_ipv6_;
  tcp::Stack stack_;
  std::array<User, 4> users_;  // The listener's, then one per connect().
  std::size_t next_user_ = 1;
  TimePoint now_{std::chrono::seconds(1)};
  std::vector<TxFrame> burst_;
  std::vector<std::byte> sent_bytes_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  std::size_t held_ = 0;
  // The established connection, as its peer sees it.
  std::uint32_t peer_next_ = 1000;
  std::uint32_t stack_next_ = 0;
};

}  // namespace ztcp::fuzz
