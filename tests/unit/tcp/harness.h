// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Fixtures of the engine's tests: a hand-driven peer that sees and sends single segments, users
// that record their events, and two Stacks joined by a cable without delay.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/stream.h"
#include "transport/tcp/stack.h"
#include "transport/wire/frame_parser.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::tcp::test {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

inline constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 1}};
inline constexpr MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 2}};
inline constexpr Ipv4Address kOurIp{0x0a000001};
inline constexpr Ipv4Address kPeerIp{0x0a000002};
inline constexpr IpAddress kOurIpv6{0xfd00ULL << 48, 0x1'0001};
inline constexpr IpAddress kPeerIpv6{0xfd00ULL << 48, 0x1'0002};
constexpr IpAddress our_ip(bool is_ipv6) { return is_ipv6 ? kOurIpv6 : kOurIp; }
constexpr IpAddress peer_ip(bool is_ipv6) { return is_ipv6 ? kPeerIpv6 : kPeerIp; }
inline constexpr std::uint16_t kPeerPort = 7000;
inline constexpr std::uint16_t kListenPort = 7471;

inline constexpr std::size_t kIpAt = wire::kEthernetBytes;  // In a frame.

inline constexpr Duration kRoundTrip = 1ms;

inline TimePoint at(Duration since_start) { return TimePoint{} + 1h + since_start; }

inline double in_ms(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

StackConfig test_config(bool is_ipv6 = false);

// A stream's user.
class User final : public StreamEvents, public StreamAcceptor {
 public:
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) override;
  void on_open(TimePoint now, Stream& stream) override;
  void on_bytes(TimePoint now, std::span<const std::byte> bytes) override;
  void on_acked(TimePoint now, std::uint64_t total_bytes) override;
  void on_closed(TimePoint now) override;
  void on_ended(TimePoint now) override;
  void on_failed(TimePoint now, Error error) override;

  Stream* stream = nullptr;
  Bytes received;
  std::uint64_t acked = 0;
  int acked_calls = 0;
  bool opened = false;
  bool closed = false;
  bool ended = false;
  bool refuse = false;
  std::optional<Error> failed;
  StreamHealth health;  // At the failure.
  // Run after each delivery, and after acknowledgements.
  std::function<void()> on_bytes_hook;
  std::function<void()> on_acked_hook;
};

// A segment in a test's terms. Numbers are absolute.
struct Seg {
  wire::TcpFlags flags = wire::kAck;
  std::uint32_t seq = 0;
  std::uint32_t ack = 0;
  std::uint16_t window = 0xffff;
  Bytes payload{};
  wire::TcpOptions options{};
  wire::Ecn ecn = wire::Ecn::kNotCapable;
  std::uint32_t flow_label = 0;  // IPv6.
  std::uint8_t dscp = 0;
  // Only in the Stack's segments.
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
};

// The bytes of a frame from the peer, and its view as a link would give it.
struct Frame {
  Bytes bytes;
  RxFrame view;
};
std::unique_ptr<Frame> frame_from_peer(const Seg& seg, std::uint16_t our_port,
                                       std::uint16_t peer_port, bool is_ipv6 = false);
// A frame from the peer with an ICMPv6 message, whose checksum is filled in.
std::unique_ptr<Frame> icmpv6_from_peer(Bytes message, IpAddress source, IpAddress destination,
                                        std::uint8_t hop_limit = 255);

Bytes pattern(std::size_t size, std::uint8_t first = 0);
std::string flags_of(const Seg& seg);

// Options of the peer's SYN; the timestamp is set when it is sent.
wire::TcpOptions offer(std::uint16_t mss_bytes = 1460);

// One connection of one Stack, whose other side is the test.
class Peer {
 public:
  explicit Peer(const StackConfig& config = test_config());

  // The Stack connects, the peer answers: 3 round trips without data. `options` is the peer's
  // offer; frames that the Stack sends until then are dropped, the path probe included.
  void open(const wire::TcpOptions& options = offer(), bool answer_probe = true);
  // The peer connects to a listening port.
  void open_passive(const wire::TcpOptions& options = offer());

  // Segments are sent as they are, without timestamps that the test did not give.
  void fill_no_timestamps() { timestamps_ = false; }

  void advance(Duration d) { now += d; }
  // Fires deadlines until the Stack has frames to send, has failed, or has no deadline.
  std::vector<Seg> wait();
  // Advances to the next deadline and fires it. False when there is none.
  bool fire();
  // Fires all deadlines due within `d`, collecting nothing.
  void pass(Duration d);

  void send(Seg seg);
  void deliver(std::vector<std::unique_ptr<Frame>> frames);
  // Several segments in one burst.
  void send_burst(std::vector<Seg> segs);
  // A bare ACK of everything up to `ack`, with the newest timestamps.
  void ack(std::uint32_t ack, std::vector<wire::SackBlock> sack = {});

  // All segments that the Stack has for the peer now. Requests for the peer's MAC are answered, and
  // no other frames returned.
  std::vector<Seg> collect();
  // The only one.
  Seg collect_one();

  // Writes user bytes; each value depends on its position in the stream.
  void write(std::size_t bytes);

  // Bytes of the peer's stream, in order, and the ACK it carries.
  void send_data(std::size_t bytes, std::uint32_t ack);

  // The peer's current timestamp; the echo is copied from the last segment seen.
  std::uint32_t timestamp() const;

  StackConfig config;
  Stack stack;
  User user;
  TimePoint now = at(0s);
  std::uint16_t our_port = 0;
  std::uint16_t peer_port = kPeerPort;
  std::uint32_t iss = 0;            // Ours, chosen by the Stack.
  std::uint32_t irs = 0xfffffff0U;  // The peer's: it wraps soon.
  std::uint32_t last_ts = 0;        // The newest timestamp of the Stack.
  std::uint32_t first() const { return iss + 1; }
  std::uint32_t peer_first() const { return irs + 1; }
  std::uint32_t peer_nxt() const { return peer_first() + peer_sent; }
  std::uint32_t peer_sent = 0;  // By send_data().
  std::vector<TxFrame> raw;     // Frames of the last collect().
  int arp_requests = 0;         // Answered so far, of either family.
  std::vector<Bytes> others;    // Frames of the last collect() that are neither.
  std::deque<std::unique_ptr<Frame>> held;
  std::size_t mss = 1448;
  bool answers_requests = true;  // For the peer's MAC; else they are among `others`.
  bool has_routers = false;  // Between the Stack and the peer: segments may go to any MAC address.

 private:
  Seg parse(const TxFrame& frame);
  // The answer, if it is a request for the peer's MAC.
  std::unique_ptr<Frame> answer_to(const TxFrame& frame);
  void fill_timestamps(Seg& seg) const;

  std::deque<Bytes> written_;
  std::size_t written_bytes_ = 0;
  bool timestamps_ = true;
};

StackConfig right_config(bool is_ipv6 = false);  // For the second of two Stacks.

// Two Stacks and a cable: every frame arrives at once, unless `drop` rejects it.
class Pair {
 public:
  explicit Pair(bool is_ipv6 = false);
  Pair(const StackConfig& left, const StackConfig& right);

  void connect();
  // Runs both until neither has frames to send.
  void pump();
  // Jumps to the next deadline, until `done` or nothing is left within `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit = 60s);

  TimePoint now = at(0s);
  Stack left;
  Stack right;
  User client;
  User server;
  std::function<bool(const TxFrame&, bool from_left)> drop = [](const TxFrame&, bool) {
    return false;
  };

 private:
  bool turn(Stack& from, Stack& to, bool from_left);
  const bool is_ipv6_;
  std::deque<std::unique_ptr<Frame>> held_;
};

}  // namespace ztcp::tcp::test
