// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A TCP peer driven by hand: the test writes each segment it sends and reads each one the stack
// sends. For the corners of the protocol that two correct stacks never reach.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/clock.h"
#include "tests/sim/app.h"
#include "tests/sim/frames.h"
#include "transport/tcp/stack.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {

// A segment with sequence numbers relative to each side's initial one.
struct Segment {
  wire::TcpFlags flags = wire::kAck;
  std::uint32_t seq = 0;
  std::uint32_t ack = 0;
  std::uint16_t window = 65535;
  wire::TcpOptions options;
  Bytes payload;
  TimePoint at{};  // When the stack sent it.
};

class Peer {
 public:
  // The initial sequence number is near the wrap, where arithmetic breaks.
  static constexpr std::uint32_t kInitialSequence = 0xffffff00;
  static constexpr MacAddress kMac{{2, 0, 0, 0, 0, 2}};
  static constexpr Endpoint kEndpoint{Ipv4Address{0x0a4d0102}, 7471};

  explicit Peer(tcp::StackConfig config = {});

  tcp::Stack& stack() { return stack_; }
  TimePoint now() const { return now_; }

  // The stack connects to us and we accept, with these options in our SYN.
  void accept(App& app, const wire::TcpOptions& options = default_options());
  static wire::TcpOptions default_options();

  void send(Segment segment);
  // The oldest segment not read yet; nothing when the stack sent none. ARP is answered
  // automatically.
  std::optional<Segment> receive();
  // Virtual time passes; timers fire when they are due.
  void advance(Duration span);
  // Advances to the next segment, at most `limit`.
  std::optional<Segment> wait(Duration limit);
  // A raw frame, as a stranger would send it.
  void inject(const Bytes& frame);
  // The stack's MAC and addresses in front of an IP payload.
  Bytes ip_frame(wire::IpProtocol protocol, const Bytes& payload) const;

  std::uint32_t local_isn() const { return stack_isn_; }
  std::uint16_t local_port() const { return stack_port_; }
  std::size_t frames_held() const { return held_.size(); }

  // Our timestamps: milliseconds, and the echo of the stack's last.
  wire::Timestamps timestamps() const;

 private:
  void turn();
  void read(const Bytes& frame);

  tcp::Stack stack_;
  TimePoint now_{std::chrono::seconds(1)};
  std::deque<Segment> segments_;
  std::vector<TxFrame> burst_;
  std::vector<std::unique_ptr<ReceivedFrame>> held_;
  std::uint32_t stack_isn_ = 0;
  std::uint16_t stack_port_ = 0;
  std::uint32_t last_timestamp_ = 0;
};

}  // namespace ztcp::sim
