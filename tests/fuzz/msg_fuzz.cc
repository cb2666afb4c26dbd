// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A peer of msg/ that sends anything: raw bytes, or well-formed records at the wrong time. The
// first byte chooses which half is under test. For any input a receiver keeps within its allowance
// and its buffers, and each message completes at most once and with its own size.
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "tests/fuzz/byte_source.h"
#include "transport/msg/acceptor.h"
#include "transport/msg/record.h"
#include "transport/msg/send_session.h"

namespace ztcp::fuzz {
namespace {

using namespace msg;

constexpr Cookie kCookie{std::byte{1}};
constexpr std::uint64_t kSession = 7;
constexpr std::uint32_t kAllowance = 8192;

SessionSettings settings() {
  SessionSettings s;
  s.eager_allowance_bytes = kAllowance;
  s.multi_flow_threshold_bytes = 4096;
  s.kept_message_bytes = 16'384;
  return s;
}

struct SinkStream final : Stream {
  std::size_t room() const override { return is_full ? 0 : 1U << 16; }
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override {
    require(!is_left);
    if (is_full) return false;
    written += copied.size();
    for (const Fragment& f : referenced) written += f.size_bytes;
    return true;
  }
  void finish() override { require(false); }  // Sessions call close() instead.
  void close() override { leave(); }
  void abort() override { leave(); }
  void leave() {
    require(!is_left);
    is_left = true;
  }
  bool is_full = false;
  bool is_left = false;
  std::uint64_t written = 0;
};

template <class Message>
struct Posted final : Message {
  std::size_t capacity_bytes = 0;
  bool is_done = false;
  std::vector<std::byte> buffer;  // A receive's, with a margin.
};

struct Owner final : SendOwner, RecvOwner {
  void on_ready(TimePoint) override {}
  void on_done(SendMessage& message) override { complete(message); }
  void on_done(RecvMessage& message) override { complete(message); }
  template <class Message>
  void complete(Message& message) {
    auto& posted = static_cast<Posted<Message>&>(message);
    require(!is_over && posted.capacity_bytes >= message.size_bytes() && !posted.is_done);
    posted.is_done = true;
  }
  void on_session_failed(Error) override { end(); }
  void on_session_closed() override { end(); }
  void end() {
    require(!is_over);
    is_over = true;
  }
  bool is_over = false;
};

// Sends one item of the peer's to `events`, in one piece.
class Peer {
 public:
  explicit Peer(ByteSource& source) : source_(source) {}

  void say(SinkStream& stream, StreamEvents& events) {
    std::vector<std::byte> bytes(kMaxRecordBytes);
    std::uint32_t payload = 0;
    switch (source_.u8() % 10) {
      case 0: {
        const auto raw = source_.bytes(source_.u8());
        bytes.assign(raw.begin(), raw.end());
        break;
      }
      case 1:
      case 2: {  // Fields of valid chunks, and slightly beyond.
        Chunk chunk;
        chunk.eager = source_.u8() % 2 == 0;
        chunk.message = source_.u8() % 40;
        chunk.tag = tag();
        chunk.wants_receipt = chunk.tag == 1;
        chunk.total = source_.u16();
        chunk.offset = std::uint64_t{source_.u8() % 4U} * 4096;
        chunk.size_bytes = source_.u16();
        if (source_.u8() % 4 != 0 && chunk.offset <= chunk.total)  // Otherwise unchanged.
          chunk.size_bytes = static_cast<std::uint32_t>(chunk.total - chunk.offset);
        bytes.resize(encode(chunk, bytes));
        payload = source_.u8() % 3 == 0 ? source_.u16() % (chunk.size_bytes + 1) : chunk.size_bytes;
        break;
      }
      case 3:
        bytes.resize(encode(Bye{source_.u8()}, bytes));
        break;
      case 4:
        bytes.resize(encode(Credit{source_.u8(), source_.u16(), source_.u8(), tag()}, bytes));
        break;
      case 5: {
        Map map{source_.u8(), source_.u16(), {}, source_.u8() % 8 == 0, tag()};
        map.units.set_word(0, source_.u16() & ((1U << UnitSize(map.total).count(map.total)) - 1));
        bytes.resize(encode(map, bytes));
        break;
      }
      case 6:
        bytes.resize(encode(Accept{true, kAllowance, 4, 32, kSession}, bytes));
        break;
      case 8:
        bytes.resize(encode(Ready{source_.u16()}, bytes));
        break;
      case 7:
        bytes.resize(
            encode(Refusal{static_cast<Reason>(source_.u8() % (kLastReason + 2)), 1, 2}, bytes));
        break;
      case 9:
        bytes.resize(encode(Ask{}, bytes));
        break;
    }
    bytes.resize(bytes.size() + payload, std::byte{0x42});
    hear(stream, events, bytes);
  }

  void hear(SinkStream& stream, StreamEvents& events, std::span<const std::byte> bytes) {
    if (!stream.is_left) events.on_bytes(now, bytes);
  }
  void end(SinkStream& stream, StreamEvents& events) {
    if (stream.is_left) return;
    if (source_.u8() % 2 == 0) return events.on_closed(now);
    stream.is_left = true;
    events.on_failed(now, Error{Errc::kTimedOut, 0, "fuzz"});
  }

  TimePoint now{};

 private:
  // Mostly one of three, sometimes any of more than are allowed.
  std::uint32_t tag() {
    const std::uint8_t choice = source_.u8();
    return choice < 230 ? choice % 3 : 100U + source_.u8();
  }

  ByteSource& source_;
};

struct Flow {
  SinkStream stream;
  StreamEvents* events = nullptr;
};

struct Receiving final : ListenerEvents {
  void on_session(TimePoint, std::unique_ptr<RecvSession> s) override {
    if (session != nullptr) return;
    session = std::move(s);
    session->set_owner(owner);
  }

  void run(ByteSource& source) {
    Peer peer(source);
    while (!source.is_empty()) {
      const std::uint8_t what = source.u8();
      Flow* flow = flows.empty() ? nullptr : flows[what / 16 % flows.size()].get();
      switch (what % 10) {
        case 0:
          connect(source, peer);
          break;
        case 1:
          post(source, peer.now);
          break;
        case 2:
          acceptor.flush();
          break;
        case 3:
          peer.now += std::chrono::milliseconds(source.u16());
          acceptor.on_timers(peer.now);
          break;
        case 4:
          if (flow != nullptr) peer.end(flow->stream, *flow->events);
          break;
        case 5:
          if (flow == nullptr || flow->stream.is_left) break;
          flow->stream.is_full = !flow->stream.is_full;
          flow->events->on_acked(peer.now, flow->stream.written);
          break;
        default:
          if (flow != nullptr) peer.say(flow->stream, *flow->events);
          break;
      }
      if (session != nullptr) require(session->unposted_bytes() <= kAllowance);
      for (const auto& posted : records) require(posted.buffer.back() == std::byte{0x7e});
    }
    if (session == nullptr || owner.is_over) return;
    const std::uint8_t end = source.u8() % 3;
    if (end == 0) session->close();
    if (end == 1) session->give_up();
  }

  void connect(ByteSource& source, Peer& peer) {
    if (flows.size() >= 12) return;
    auto flow = std::make_unique<Flow>();
    flow->events = acceptor.on_accept(peer.now, flow->stream, Endpoint{});
    if (flow->events == nullptr) return;
    flows.push_back(std::move(flow));
    Hello hello;
    const std::uint8_t choice = source.u8();
    hello.flow = choice % 4;
    hello.is_new = hello.flow == 0;
    hello.cookie = kCookie;
    hello.session = kSession;
    hello.epoch = 1 + choice / 4 % 8;
    hello.flows_wanted = 4;
    hello.process_ends = choice / 32 == 6;
    hello.aborts = choice / 32 == 7;
    std::vector<std::byte> bytes(kPreambleBytes + kMaxRecordBytes);
    const std::size_t preamble = encode_preamble(kWireVersion, bytes);
    bytes.resize(preamble + encode(hello, std::span(bytes).subspan(preamble)));
    peer.hear(flows.back()->stream, *flows.back()->events, bytes);
  }

  void post(ByteSource& source, TimePoint now) {
    if (session == nullptr || owner.is_over || records.size() >= 200) return;
    const std::size_t size = source.u16();
    Posted<RecvMessage>& posted = records.emplace_back();
    posted.capacity_bytes = size;
    posted.buffer.assign(size + 1, std::byte{0x7e});
    posted.start(std::span(posted.buffer).first(size), source.u8() % 3);
    session->post(now, posted);
  }

  Receiving() { require(acceptor.add_listener(kCookie, *this).has_value()); }

  std::vector<std::unique_ptr<Flow>> flows;
  Owner owner;
  std::deque<Posted<RecvMessage>> records;
  Acceptor acceptor{settings(), {}, 16, {1, 2}};
  std::unique_ptr<RecvSession> session;
};

struct Sending final : Dialer {
  Result<Stream*> dial(TimePoint, StreamEvents& events) override {
    if (flows.size() >= 12) return fail(Errc::kNoRoute, "dial");
    flows.push_back(std::make_unique<Flow>());
    flows.back()->events = &events;
    return &flows.back()->stream;
  }

  void run(ByteSource& source) {
    Peer peer(source);
    std::array<std::byte, kPreambleBytes> preamble;
    encode_preamble(kWireVersion, preamble);
    session.on_timers(peer.now);
    while (!source.is_empty()) {
      const std::uint8_t what = source.u8();
      // After this no message completes, for any answer of the receiver.
      if (what == 255 && !owner.is_over && !session.give_up(peer.now)) owner.end();
      Flow* flow = flows.empty() ? nullptr : flows[what / 16 % flows.size()].get();
      const bool lives = flow != nullptr && !flow->stream.is_left;
      switch (what % 10) {
        case 0:
          if (!lives || flow->stream.written != 0) break;
          flow->events->on_open(peer.now, flow->stream);
          peer.hear(flow->stream, *flow->events, preamble);
          break;
        case 1:
          post(source, peer.now);
          break;
        case 2:
          peer.now += std::chrono::milliseconds(source.u16());
          session.on_timers(peer.now);
          break;
        case 3:
          if (lives && flow->stream.written != 0) peer.end(flow->stream, *flow->events);
          break;
        case 4:
          if (!lives || flow->stream.written == 0) break;
          flow->stream.is_full = source.u8() % 2 == 0;
          flow->events->on_acked(peer.now, flow->stream.written);
          break;
        default:
          if (lives && flow->stream.written != 0) peer.say(flow->stream, *flow->events);
          break;
      }
    }
    if (!owner.is_over) session.close();
  }

  void post(ByteSource& source, TimePoint now) {
    if (owner.is_over || records.size() >= 200) return;
    Posted<SendMessage>& posted = records.emplace_back();
    posted.capacity_bytes = source.u16();
    posted.start(std::span(memory).first(posted.capacity_bytes), source.u8() % 3, 0);
    session.post(now, posted);
  }

  std::vector<std::unique_ptr<Flow>> flows;
  std::vector<std::byte> memory = std::vector<std::byte>(65'536);
  Owner owner;
  std::deque<Posted<SendMessage>> records;
  SendSession session{settings(), {}, kCookie, kSession, *this, owner};
};

}  // namespace
}  // namespace ztcp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ztcp::fuzz::ByteSource source(data, size);
  if (source.u8() % 2 == 0)
    std::make_unique<ztcp::fuzz::Receiving>()->run(source);
  else
    std::make_unique<ztcp::fuzz::Sending>()->run(source);
  return 0;
}
