// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending side against a receiver written by hand, record by record.
#include "transport/msg/send_session.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/recording_stream.h"

namespace ztcp::msg {
namespace {

constexpr Cookie kCookie = {std::byte{1}};
constexpr std::uint64_t kId = 77;

class SendSessionTest : public testing::Test, public Dialer, public SendOwner {
 protected:
  // A message that the test calls by a number.
  struct Send final : SendMessage {
    std::uint32_t name = 0;
  };
  struct Dialled {
    RecordingStream stream;
    StreamEvents* events = nullptr;
    std::uint64_t acked = 0;
  };

  void SetUp() override { make(); }
  void make() {
    session = std::make_unique<SendSession>(settings, ClusterKey{}, kCookie, kId, *this, *this);
  }
  Result<Stream*> dial(TimePoint, StreamEvents& events) override {
    if (!dials_succeed) return fail(Errc::kNoRoute, "dial");
    dialled.emplace_back().events = &events;
    return &dialled.back().stream;
  }
  void on_ready(TimePoint) override { ++ready; }
  void on_done(SendMessage& message) override { done.push_back(static_cast<Send&>(message).name); }
  void on_session_failed(Error e) override { failures.push_back(e); }
  void on_session_closed() override { ++closed; }

  void preamble(Dialled& d, std::uint32_t version = kWireVersion) {
    std::array<std::byte, kPreambleBytes> out;
    encode_preamble(version, out);
    d.events->on_bytes(now, out);
  }
  template <class Record>
  void say(Dialled& d, const Record& record) {
    RecordBuffer out;
    const std::size_t size = encode(record, out);
    if (!d.stream.is_left()) d.events->on_bytes(now, std::span(out).first(size));
  }
  // The next stream that was dialled shakes hands.
  Dialled& open(std::size_t index) {
    session->on_timers(now);
    Dialled& d = dialled.at(index);
    d.events->on_open(now, d.stream);
    preamble(d);
    return d;
  }
  Dialled& accept(std::size_t index, const Credit& credit = {}, const Accept& limits = kLimits) {
    Dialled& d = open(index);
    static_cast<void>(d.stream.records());
    say(d, limits);
    if (credit != Credit{}) say(d, credit);
    say(d, Ready{credit.released});
    return d;
  }
  // Everything written so far.
  void ack(Dialled& d, std::uint64_t bytes) { d.events->on_acked(now, d.acked += bytes); }
  void post(std::size_t size, std::uint32_t tag = 0) {
    Send& send = sends.emplace_back();
    send.name = next_name++;
    send.start(std::span(memory).first(size), tag, 0);
    session->post(now, send);
  }
  static std::vector<Chunk> chunks(Dialled& d) {
    std::vector<Chunk> out;
    for (const auto& r : d.stream.records())
      if (r.header.type == RecordType::kChunk) out.push_back(*decode_chunk(r.header, r.body));
    return out;
  }

  static constexpr Accept kLimits{true, 8192, 4, 32, kId};
  static constexpr std::uint64_t kHelloBytes = kPreambleBytes + kHeaderBytes + Hello::kBody;
  SessionSettings settings;
  TimePoint now{};
  bool dials_succeed = true;
  std::deque<Dialled> dialled;
  std::vector<std::byte> memory = std::vector<std::byte>(1U << 20);
  std::uint32_t next_name = 0;
  std::deque<Send> sends;
  int ready = 0;
  int closed = 0;
  std::vector<std::uint32_t> done;
  std::vector<Error> failures;
  std::unique_ptr<SendSession> session;
};

TEST_F(SendSessionTest, GreetsWithItsNameAndWaitsForTheCredit) {
  Dialled& d = open(0);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto hello = decode_hello(records[0].header, records[0].body);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->is_new);
  EXPECT_EQ(hello->cookie, kCookie);
  EXPECT_EQ(hello->session, kId);
  EXPECT_EQ(hello->epoch, 1U);
  say(d, kLimits);
  EXPECT_EQ(ready, 0);
  say(d, Credit{});
  EXPECT_EQ(ready, 0);
  say(d, Ready{});
  EXPECT_EQ(ready, 1);
}

TEST_F(SendSessionTest, SendsPostedMessagesPlainlyAndOthersWithinTheAllowance) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(20'000);
  post(5000);
  post(5000);  // Its first 8192 - 5000 bytes are no whole unit.
  auto sent = chunks(d);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_FALSE(sent[0].eager);
  EXPECT_EQ(sent[0].size_bytes, 20'000U);
  EXPECT_TRUE(sent[1].eager);
  EXPECT_EQ(sent[1].message, 1U);

  say(d, Credit{1, 1000, 0});
  sent = chunks(d);
  ASSERT_EQ(sent.size(), 1U);  // 4192 bytes: a unit of message 2.
  EXPECT_TRUE(sent[0].eager);
  EXPECT_EQ(sent[0].size_bytes, 4096U);
  say(d, Credit{3, 1000, 0});
  sent = chunks(d);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_FALSE(sent[0].eager);
  EXPECT_EQ(sent[0].offset, 4096U);
  EXPECT_EQ(sent[0].size_bytes, 904U);
}

// In the order of posting, but for lanes without credit.
TEST_F(SendSessionTest, PassesOverMessagesWhoseLaneMustWait) {
  Dialled& d = accept(0);
  post(8192, 1);  // The whole allowance.
  post(100, 1);
  post(100, 2);
  post(100, 3);
  EXPECT_EQ(chunks(d).size(), 1U);
  say(d, Credit{1, 0, 0, 3});
  auto sent = chunks(d);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].tag, 3U);
  EXPECT_EQ(sent[0].message, 0U);
  EXPECT_FALSE(sent[0].eager);
  say(d, Credit{1, 8192, 1, 1});
  sent = chunks(d);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].tag, 1U);
  EXPECT_EQ(sent[0].message, 1U);
  EXPECT_EQ(sent[1].tag, 2U);
  EXPECT_TRUE(sent[1].eager);
}

// A small message must not overtake the message before it, for which the allowance does not
// suffice.
TEST_F(SendSessionTest, KeepsTheOrderWithinALane) {
  Dialled& d = accept(0);
  post(5000, 1);
  post(5000, 2);  // Room for no unit of it.
  post(10, 2);
  post(10, 3);
  const auto sent = chunks(d);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].tag, 1U);
  EXPECT_EQ(sent[1].tag, 3U);
}

TEST_F(SendSessionTest, Begins32MessagesWithoutBuffersAtMost) {
  Dialled& d = accept(0);
  for (std::uint32_t i = 0; i < 40; ++i) post(i % 2, i);
  EXPECT_EQ(chunks(d).size(), 32U);
  say(d, Credit{2, 0, 0, 39});
  EXPECT_EQ(chunks(d).size(), 1U) << "the one with a buffer";
  say(d, Credit{1, 0, 0, 0});
  const auto sent = chunks(d);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].tag, 32U);
}

TEST_F(SendSessionTest, TagsWithoutEndFailTheSessionByName) {
  for (const bool by_peer : {true, false}) {
    failures.clear();
    dialled.clear();
    make();
    Dialled& d = accept(0);
    for (std::uint32_t tag = 0; tag < 128; ++tag) post(1, tag);
    EXPECT_TRUE(failures.empty());
    if (by_peer)
      say(d, Credit{1, 0, 0, 128});
    else
      post(1, 128);
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kInvalidArgument);
    EXPECT_EQ(session->failure_detail().reason, Reason::kTooManyTags);
  }
}

TEST_F(SendSessionTest, IsDoneByAcknowledgementOnlyWhereThatMeansDelivery) {
  for (const bool delivery : {true, false}) {
    done.clear();
    dialled.clear();
    make();
    Accept limits = kLimits;
    limits.ack_is_delivery = delivery;
    Dialled& d = accept(0, Credit{2, 0, 0}, limits);
    ack(d, kHelloBytes);
    post(100);
    ack(d, kChunkRecordBytes + 99);
    EXPECT_TRUE(done.empty());
    ack(d, 1);
    EXPECT_EQ(done.size(), delivery ? 1U : 0U);
    say(d, Credit{2, 0, 1});
    EXPECT_EQ(done.size(), 1U);
    // And the count alone does not free memory that a living stream may still read.
    post(2000);
    say(d, Credit{2, 0, 2});
    EXPECT_EQ(done.size(), 1U);
    ack(d, kChunkRecordBytes + 2000);
    EXPECT_EQ(done.size(), 2U);
  }
}

// All but the oldest may be done and NCCL ready to post again: the window is the receiver's.
TEST_F(SendSessionTest, GoesOnWhileTheOldestMessageIsSlow) {
  settings.multi_flow_threshold_bytes = 0;
  make();
  Dialled& slow = accept(0, Credit{40, 0, 0});
  ack(slow, kHelloBytes);
  post(100);  // It goes out on the only flow there is.
  slow.stream.full = true;
  ack(slow, 0);
  Dialled& fast = accept(1, Credit{40, 0, 0});
  ack(fast, kHelloBytes);
  for (int i = 1; i < 40; ++i) post(100);
  while (done.size() < 39) {
    ASSERT_LT(fast.acked, 1U << 20) << "the flows share otherwise than this test thinks";
    ack(fast, kChunkRecordBytes + 100);
  }
  post(8);
  EXPECT_EQ(chunks(fast).back().message, 39U) << "for the last one there is no credit";
  ack(slow, kChunkRecordBytes + 100);
  EXPECT_EQ(done.back(), 0U);
  say(fast, Credit{41, 0, 40});
  EXPECT_EQ(chunks(fast).back().message, 40U);
}

// --- Copies that are kept ------------------------------------------------------------------------

// Where an acknowledgement is no delivery.
class KeptTest : public SendSessionTest {
 protected:
  void SetUp() override {
    settings.ack_is_delivery = false;
    settings.kept_message_bytes = 2048;  // Pages of 128 bytes.
    make();
  }
  Dialled& accept(std::size_t index, const Credit& credit = {}) {
    return SendSessionTest::accept(index, credit, Accept{false, 8192, 1, 32, kId});
  }
  struct Sent {
    Chunk chunk;
    std::byte first;
  };
  static std::vector<Sent> sent(Dialled& d) {
    std::vector<Sent> out;
    for (const auto& r : d.stream.records())
      if (r.header.type == RecordType::kChunk)
        out.push_back({*decode_chunk(r.header, r.body), r.payload.at(0)});
    return out;
  }
  static std::size_t asks(Dialled& d) {
    const auto records = d.stream.records();
    return static_cast<std::size_t>(
        std::count_if(records.begin(), records.end(),
                      [](const auto& r) { return r.header.type == RecordType::kAsk; }));
  }
};

TEST_F(KeptTest, SmallMessagesAreDoneWhenTheyArePosted) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  post(900);
  EXPECT_EQ(done.size(), 1U);
  post(2048);
  ack(d, 2 * kChunkRecordBytes + 900 + 2047);
  EXPECT_EQ(done.size(), 1U);
  ack(d, 1);
  EXPECT_EQ(done.size(), 2U) << "the stream has taken it";
  post(2049);
  ack(d, kChunkRecordBytes + 2049);
  EXPECT_EQ(done.size(), 2U) << "that one waits";
  const auto chunks = sent(d);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_FALSE(chunks[0].chunk.wants_receipt);
  EXPECT_FALSE(chunks[1].chunk.wants_receipt);
  EXPECT_TRUE(chunks[2].chunk.wants_receipt);
  say(d, Credit{3, 900 + 2048 + 2049, 3});
  EXPECT_EQ(done, (std::vector<std::uint32_t>{0, 1, 2})) << "each once";
}

TEST_F(KeptTest, WhatIsReceivedBeforeItWasCopiedIsDoneOnce) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  post(2000);
  say(d, Credit{1, 2000, 1});
  EXPECT_TRUE(done.empty()) << "the stream still refers to it";
  ack(d, kChunkRecordBytes + 2000);
  EXPECT_EQ(done.size(), 1U);
}

TEST_F(KeptTest, AFlowThatDiesBeforeItTookAMessageLeavesItToTheNext) {
  Dialled& d = accept(0);
  memory[0] = std::byte{7};
  post(2000);
  d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  Dialled& again = accept(1);
  const auto chunks = sent(again);
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].first, std::byte{7});
  ack(again, 100'000);
  EXPECT_EQ(done.size(), 1U);
}

TEST_F(KeptTest, WithoutRoomForTheCopyMessagesWait) {
  Dialled& d = accept(0, Credit{40, 0, 0});
  for (int i = 0; i < 5; ++i) post(2000);
  EXPECT_TRUE(sent(d).back().chunk.wants_receipt);
  ack(d, 100'000);
  EXPECT_EQ(done.size(), 4U);
  say(d, Credit{40, 0, 1});
  post(2000);
  EXPECT_FALSE(sent(d).back().chunk.wants_receipt) << "the first has made room";
  say(d, Credit{40, 0, 5});
  EXPECT_EQ(done.size(), 6U);
}

TEST_F(KeptTest, WhatDiedWithItsFlowIsSentAgainFromTheCopy) {
  Dialled& d = accept(0, Credit{40, 0, 0});
  for (int i = 0; i < 4; ++i) {
    memory[0] = static_cast<std::byte>(i);
    post(100);
  }
  EXPECT_EQ(done.size(), 4U);
  memory[0] = std::byte{0xee};
  ack(d, 100'000);
  d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  Dialled& again = accept(1, Credit{40, 0, 2});
  const auto chunks = sent(again);
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].chunk.message, 2U);
  EXPECT_EQ(chunks[0].first, std::byte{2});
  EXPECT_EQ(chunks[1].first, std::byte{3});
  EXPECT_EQ(done.size(), 4U) << "once";
}

// The receiver tells of small messages now and then.
TEST_F(KeptTest, AsksWhenItWaitsForCreditOfSmallMessages) {
  Dialled& d = accept(0);
  for (int i = 0; i < 32; ++i) post(1);
  EXPECT_EQ(asks(d), 0U);
  post(1);
  EXPECT_EQ(asks(d), 1U);
  post(1);
  EXPECT_EQ(asks(d), 0U) << "asked already";
  say(d, Credit{1, 1, 1});
  EXPECT_EQ(asks(d), 1U) << "one of the two went out, the other waits";
  say(d, Credit{40, 1, 1});
  EXPECT_EQ(asks(d), 0U);
}

TEST_F(KeptTest, OfLargeMessagesItIsToldUnasked) {
  Dialled& d = accept(0);
  post(5000);
  post(5000);
  EXPECT_EQ(asks(d), 0U);
}

TEST_F(KeptTest, ClosesOnceTheReceiverHasThemAll) {
  Dialled& d = accept(0);
  post(100);
  ack(d, 100'000);
  static_cast<void>(d.stream.records());
  session->close();
  EXPECT_EQ(asks(d), 1U);
  EXPECT_FALSE(d.stream.closed);
  EXPECT_TRUE(session->is_finishing());
  say(d, Credit{1, 100, 1});
  EXPECT_TRUE(d.stream.closed);
  EXPECT_EQ(closed, 1);
}

// It called them done: that they get there is left to do.
TEST_F(KeptTest, AProcessThatEndsDeliversThemFirst) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  ack(d, 100'000);
  static_cast<void>(d.stream.records());
  session->leave(now);
  EXPECT_EQ(asks(d), 1U);
  EXPECT_FALSE(d.stream.is_left());
  EXPECT_TRUE(session->is_finishing());
  // The flow dies all the same.
  d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  Dialled& again = open(1);
  const auto hello = again.stream.records();
  EXPECT_FALSE(decode_hello(hello[0].header, hello[0].body)->process_ends);
  say(again, Accept{false, 8192, 1, 32, kId});
  say(again, Credit{1, 0, 0});
  say(again, Ready{});
  EXPECT_EQ(sent(again).size(), 1U);
  ack(again, 100'000);
  say(again, Credit{1, 0, 1});
  const auto records = again.stream.records();
  ASSERT_FALSE(records.empty());
  EXPECT_TRUE(decode_bye(records.back().header, records.back().body)->process_ends);
  EXPECT_TRUE(again.stream.closed);
  EXPECT_FALSE(session->is_finishing());
}

// -------------------------------------------------------------------------------------------------

TEST_F(SendSessionTest, OpensTheOtherFlowsAtTheFirstLargeMessage) {
  Dialled& d = accept(0, Credit{9, 0, 0});
  post(128U << 10);
  session->on_timers(now);
  EXPECT_EQ(dialled.size(), 1U);
  post((128U << 10) + 1);
  EXPECT_EQ(chunks(d).size(), 2U);  // Flow 0 does not wait for them.
  session->on_timers(now);
  EXPECT_EQ(dialled.size(), 4U);
}

// Large messages are cut evenly for the other flows; small ones do not wait behind them.
TEST_F(SendSessionTest, KeepsTheFirstFlowFree) {
  settings.keeps_first_flow_free = true;
  settings.multi_flow_threshold_bytes = 1000;
  settings.flows = 5;
  make();
  constexpr Credit kPosted{9, 0, 0};
  Accept limits = kLimits;
  limits.flows_granted = 5;
  Dialled& first = accept(0, kPosted, limits);
  post(100'000);
  EXPECT_EQ(chunks(first).size(), 1U) << "there is no other yet";
  session->on_timers(now);
  ASSERT_EQ(dialled.size(), 5U);
  std::vector<Dialled*> others;
  for (std::size_t i = 1; i < 5; ++i) others.push_back(&accept(i, kPosted, limits));

  constexpr std::size_t kSize = 802'816;
  post(kSize);
  post(4096);
  EXPECT_EQ(chunks(first).size(), 1U);
  std::vector<Chunk> large;
  for (Dialled* const other : others)
    for (const Chunk& chunk : chunks(*other)) large.push_back(chunk);
  ASSERT_EQ(large.size(), 4U);
  for (const Chunk& chunk : large) EXPECT_EQ(chunk.size_bytes, kSize / 4);

  for (Dialled* const other : others) other->stream.full = true;
  post(kSize);
  EXPECT_TRUE(chunks(first).empty());
}

TEST_F(SendSessionTest, AnotherVersionIsNamedWhoeverNotices) {
  Dialled& d = open(0);
  dialled.clear();
  make();
  Dialled& e = [&]() -> Dialled& {
    session->on_timers(now);
    dialled[0].events->on_open(now, dialled[0].stream);
    return dialled[0];
  }();
  static_cast<void>(d);
  preamble(e, 2);
  say(e, Refusal{Reason::kVersion, 2, 1});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
  EXPECT_EQ(describe(session->failure_detail()),
            "the peer refused: wire version 2 there, 1 here: install the same ztcp on both hosts");

  failures.clear();
  dialled.clear();
  make();
  session->on_timers(now);
  dialled[0].events->on_open(now, dialled[0].stream);
  preamble(dialled[0], 3);
  say(dialled[0], Credit{});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(describe(session->failure_detail()),
            "wire version 1 here, 3 there: install the same ztcp on both hosts");
}

TEST_F(SendSessionTest, AnotherServiceAtThePortIsNoPeer) {
  session->on_timers(now);
  dialled[0].events->on_open(now, dialled[0].stream);
  const std::string_view banner = "SSH-2.0-OpenSSH_9.2\r\n";
  dialled[0].events->on_bytes(now, std::as_bytes(std::span(banner)));
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
  EXPECT_TRUE(dialled[0].stream.aborted);
}

TEST_F(SendSessionTest, ASilentPeerTimesOut) {
  settings.redial_window = {};
  make();
  session->on_timers(now);
  EXPECT_EQ(session->next_deadline(), kNever);  // TCP bounds the connect.
  dialled[0].events->on_open(now, dialled[0].stream);
  EXPECT_EQ(session->next_deadline(), now + settings.handshake_timeout);
  session->on_timers(now + settings.handshake_timeout);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
  EXPECT_TRUE(dialled[0].stream.aborted);
}

// Of a flow that was dialled again all counts, and the path as it was seen last; of flows beside
// one another the sums.
TEST_F(SendSessionTest, ItsHealthIsThatOfAllItsStreams) {
  using namespace std::chrono_literals;
  settings.multi_flow_threshold_bytes = 1000;
  make();
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(5000);
  first.stream.vitals = {TimePoint(1s), 90us, 5000, 700, 40, 2};
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  session->on_timers(now);  // Dials it again, and the second flow.
  ASSERT_GE(dialled.size(), 3U);
  for (std::size_t i = 1; i < dialled.size(); ++i) dialled[i].stream.vitals = {};
  dialled[1].stream.vitals = {TimePoint(3s), 80us, 4000, 300, 5, 1};
  dialled[2].stream.vitals = {TimePoint(2s), 100us, 6000, 10, 0, 0};
  session->abort();
  const StreamHealth all = session->health();
  EXPECT_EQ(all.heard, TimePoint(3s));
  EXPECT_EQ(all.srtt, 100us);
  EXPECT_EQ(all.cwnd_bytes, 10'000U);
  EXPECT_EQ(all.unacked_bytes, 310U);
  EXPECT_EQ(all.retransmitted_bytes, 45U);
  EXPECT_EQ(all.timeouts, 3U);
}

// As long as the window is open, however many attempts that takes.
TEST_F(SendSessionTest, RedialsUntilTheWindowIsOver) {
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(100);
  const TimePoint died = now;
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  while (failures.empty()) {
    ASSERT_NE(session->next_deadline(), kNever);
    const Duration silence = session->next_deadline() - now;
    EXPECT_LE(silence, settings.redial_attempt) << "nobody was asked for longer than that";
    now = std::max(now, session->next_deadline());
    session->on_timers(now);
  }
  EXPECT_GE(now - died, settings.redial_window);
  EXPECT_LE(now - died, settings.redial_window + settings.redial_attempt);
  EXPECT_GE(dialled.size(), 5U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
}

// A host whose kernel, or whose stack, answers that nobody is there has no such process any more.
TEST_F(SendSessionTest, APortWithoutAListenerIsNotDialledForLong) {
  using namespace std::chrono_literals;
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(100);
  const TimePoint died = now;
  const auto redial = [&](Errc outcome) {
    now = std::max(now, session->next_deadline());
    session->on_timers(now);
    dialled.back().events->on_failed(now, Error{outcome, 0, "connect"});
  };
  first.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  while (now - died < 250ms) redial(Errc::kRefused);
  ASSERT_TRUE(failures.empty()) << "a firewall may be starting";
  redial(Errc::kTimedOut);
  redial(Errc::kRefused);
  EXPECT_TRUE(failures.empty()) << "not all said so, one after the other";
  const TimePoint since = now;
  while (failures.empty() && now - since < 2s) redial(Errc::kRefused);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kRefused);
  EXPECT_GE(now - since, 500ms);
  EXPECT_LE(now - since, 1s);
}

// Which queue a port leads to is the peer's NIC's choice: the next one may lead to the right one.
TEST_F(SendSessionTest, DialsAgainAtOnceWhereAFlowCameToAnotherQueue) {
  accept(0, Credit{3, 0, 0});
  post(settings.multi_flow_threshold_bytes + 1);
  for (std::size_t extra = 1; extra <= 3; ++extra) open(extra);
  for (std::size_t attempt = 4; attempt < 20; ++attempt) {
    say(dialled.at(attempt - (attempt == 4 ? 3 : 1)), Refusal{Reason::kOtherQueue, 2, 0});
    EXPECT_EQ(session->next_deadline(), now);
    open(attempt);
  }
  say(dialled.at(19), kLimits);
  say(dialled.at(19), Ready{});
  dialled.at(0).stream.full = true;
  post(1U << 20);
  EXPECT_FALSE(chunks(dialled.at(19)).empty()) << "it carries";
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, GoesOnWithFewerFlowsWhereNoPortLeadsToItsQueue) {
  accept(0, Credit{3, 0, 0});
  post(settings.multi_flow_threshold_bytes + 1);
  for (std::size_t extra = 1; extra <= 3; ++extra) open(extra);
  std::size_t last = 3;
  for (;; open(++last)) {
    say(dialled.at(last), Refusal{Reason::kOtherQueue, 2, 0});
    if (session->next_deadline() != now) break;
  }
  EXPECT_EQ(last, 3U + 64);
  EXPECT_TRUE(failures.empty());
  ack(dialled.at(0), kHelloBytes);
}

// A flow that comes back has as long as any redial.
TEST_F(SendSessionTest, ComesBackToItsQueueAsLongAsItMayRedial) {
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(100);
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  std::size_t dial = 1;
  for (; dial < 200; ++dial) {
    open(dial);
    now += std::chrono::milliseconds(1);
    say(dialled.at(dial), Refusal{Reason::kOtherQueue, 2, 0});
    ASSERT_TRUE(failures.empty());
  }
  now += settings.redial_window;
  for (; failures.empty() && dial < 400; ++dial) {
    open(dial);
    say(dialled.at(dial), Refusal{Reason::kOtherQueue, 2, 0});
  }
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kRefused);
}

// What the peer must hear it hears on the queue that has the session.
TEST_F(SendSessionTest, SaysThatItsProcessEndsOnTheRightQueue) {
  accept(0, Credit{3, 0, 0});
  post(100);
  session->leave(now);
  for (std::size_t dial = 1; dial < 5; ++dial) {
    open(dial);
    say(dialled.at(dial), Refusal{Reason::kOtherQueue, 2, 0});
    EXPECT_TRUE(session->is_finishing());
  }
  open(5);
  say(dialled.at(5), Refusal{Reason::kUnknownSession});
  EXPECT_FALSE(session->is_finishing());
  EXPECT_EQ(closed, 1);
}

// A connection that nobody uses for long may lose its flow as often as it likes.
TEST_F(SendSessionTest, FlowsThatDieAtOnceAreNotDialledForEver) {
  const auto die = [&](Duration age) {
    if (session->next_deadline() != kNever) now = std::max(now, session->next_deadline());
    session->on_timers(now);
    Dialled& d = accept(dialled.size() - 1);
    now += age;
    d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "rst"});
  };
  for (int i = 0; i < 20; ++i) die(settings.redial_window);
  EXPECT_TRUE(failures.empty());
  for (std::uint32_t i = 0; i < settings.max_redials; ++i) die(std::chrono::seconds(1));
  EXPECT_TRUE(failures.empty());
  die(std::chrono::seconds(1));
  EXPECT_EQ(failures.size(), 1U);
}

TEST_F(SendSessionTest, ResumesWithTheNextEpochAndSendsOnlyWhatIsMissing) {
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(40'000);
  post(100);
  post(5000);
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  EXPECT_TRUE(failures.empty());
  Dialled& second = open(1);
  auto records = second.stream.records();
  const auto hello = decode_hello(records[0].header, records[0].body);
  EXPECT_EQ(hello->epoch, 2U);
  EXPECT_FALSE(hello->is_new);
  say(second, kLimits);
  Map map{0, 40'000, {}};
  map.units.set(0, 3);
  map.units.set(5, 6);
  say(second, map);
  Map whole{1, 100, {}};
  whole.units.set(0, 1);
  say(second, whole);
  EXPECT_TRUE(chunks(second).empty());
  say(second, Credit{3, 0, 0});
  EXPECT_TRUE(chunks(second).empty());
  say(second, Ready{});
  const auto sent = chunks(second);
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].offset, 3U * 4096);
  EXPECT_EQ(sent[0].size_bytes, 2U * 4096);
  EXPECT_EQ(sent[1].offset, 6U * 4096);
  EXPECT_EQ(sent[1].size_bytes, 40'000U - 6 * 4096);
  EXPECT_EQ(sent[2].message, 2U);  // Of which the peer had nothing.
  EXPECT_EQ(done, std::vector<std::uint32_t>{1});
}

TEST_F(SendSessionTest, EagerBytesLostWithAFlowAreNotChargedTwice) {
  Dialled& first = accept(0);
  post(8192);  // The whole allowance.
  EXPECT_EQ(chunks(first).size(), 1U);
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  Dialled& second = accept(1);
  const auto sent = chunks(second);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].eager);
  EXPECT_EQ(sent[0].size_bytes, 8192U);
}

// What is sent again fills no further memory of the receiver's; once its buffer is posted it is
// not charged any more.
TEST_F(SendSessionTest, WhatIsSentAgainNeedsNoCredit) {
  Dialled& first = accept(0);
  post(8192, 1);
  post(100, 2);
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  Dialled& second = accept(1);
  auto sent = chunks(second);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].eager);
  EXPECT_EQ(sent[0].tag, 1U);
  second.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  now = std::max(now, session->next_deadline());
  Dialled& third = accept(2, Credit{1, 0, 0, 1});
  sent = chunks(third);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_FALSE(sent[0].eager);
  EXPECT_EQ(sent[0].tag, 1U);
  EXPECT_TRUE(sent[1].eager) << "the allowance is free again";
  EXPECT_EQ(sent[1].tag, 2U);
}

TEST_F(SendSessionTest, ResumesEachLaneByItsOwnMaps) {
  Dialled& first = accept(0);
  post(100, 1);
  post(100, 2);
  post(100, 2);
  post(100, 3);
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  Dialled& second = open(1);
  static_cast<void>(second.stream.records());
  say(second, kLimits);
  say(second, Credit{1, 100, 1, 1});
  Map map{0, 100, {}, false, 2};
  map.units.set(0, 1);
  say(second, map);
  say(second, Map{1, 0, {}, true, 2});
  say(second, Credit{2, 200, 0, 2});
  EXPECT_TRUE(chunks(second).empty());
  say(second, Ready{200});
  const auto sent = chunks(second);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].tag, 3U);
  EXPECT_EQ(done, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_F(SendSessionTest, NonsenseFromTheReceiverFailsTheSession) {
  const auto fails = [&](const auto& record) {
    failures.clear();
    dialled.clear();
    make();
    Dialled& d = accept(0, Credit{1, 0, 0});
    post(100);
    say(d, record);
    return failures.size() == 1 && failures[0].code == Errc::kProtocol && d.stream.aborted;
  };
  EXPECT_TRUE(fails(Credit{2, 0, 2}));     // Received what was never sent.
  EXPECT_TRUE(fails(Credit{2, 1, 1}));     // Released what was never eager.
  EXPECT_TRUE(fails(Credit{2, 0, 1, 5}));  // Received of a tag that was never sent.
  EXPECT_TRUE(fails(Ready{}));             // Ready twice.
  EXPECT_TRUE(fails(kLimits));             // Accepts twice.
  EXPECT_TRUE(fails(Map{0, 100, {}}));     // Maps outside a resume.
  EXPECT_TRUE(fails(Chunk{true, 0, 0, 0, 0}));
  EXPECT_TRUE(fails(Challenge{}));
  EXPECT_TRUE(fails(Bye{2}));
}

TEST_F(SendSessionTest, AnIdleSenderIsNotTroubledByAReceiverThatLeaves) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  say(d, Bye{0});
  d.events->on_closed(now);
  EXPECT_TRUE(d.stream.closed);
  EXPECT_TRUE(failures.empty());
  session->close();
  EXPECT_EQ(closed, 1);

  dialled.clear();
  make();
  say(accept(0), Bye{0});
  post(1);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

// --- The end of a process -----------------------------------------------------------------------

TEST_F(SendSessionTest, LeavesAnIdleReceiverWithABye) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  static_cast<void>(d.stream.records());
  session->leave(now);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(decode_bye(records[0].header, records[0].body)->process_ends);
  EXPECT_TRUE(d.stream.closed);
  EXPECT_FALSE(session->is_finishing());
}

// Its streams refer to memory that may be going, and a reset alone would have the receiver wait for
// a redial.
TEST_F(SendSessionTest, LeavesMessagesUnderWayWithAResetAndAHello) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  session->leave(now);
  EXPECT_TRUE(d.stream.aborted);
  EXPECT_TRUE(session->is_finishing());
  session->on_timers(now);
  Dialled& last = dialled.at(1);
  last.events->on_open(now, last.stream);
  const auto records = last.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto hello = decode_hello(records[0].header, records[0].body);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->process_ends);
  EXPECT_EQ(hello->session, kId);
  EXPECT_EQ(hello->epoch, 2U);
  preamble(last);
  say(last, Refusal{Reason::kUnknownSession, 0, 0});
  EXPECT_FALSE(session->is_finishing());
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, ReadsNoMemoryAfterLeavingWhateverTheReceiverSays) {
  accept(0, Credit{1, 0, 0});
  post(100);
  session->leave(now);
  Dialled& last = accept(1, Credit{1, 0, 0});
  for (const auto& record : last.stream.records()) EXPECT_EQ(record.header.type, RecordType::kBye);
  EXPECT_FALSE(session->is_finishing());
}

TEST_F(SendSessionTest, TriesAgainWhenTheLastHelloGetsLost) {
  accept(0, Credit{1, 0, 0});
  post(100);
  session->leave(now);
  session->on_timers(now);
  dialled.at(1).events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  EXPECT_TRUE(session->is_finishing());
  session->on_timers(session->next_deadline());
  EXPECT_EQ(dialled.size(), 3U);
}

TEST_F(SendSessionTest, SaysThatTheReceiversProcessEnded) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  say(d, Bye{0, /*process_ends=*/true});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_EQ(session->failure_detail().reason, Reason::kProcessEnded);

  failures.clear();
  dialled.clear();
  make();
  say(accept(0), Bye{0, /*process_ends=*/true});
  EXPECT_TRUE(failures.empty()) << "an idle sender has lost nothing";
  post(1);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(session->failure_detail().reason, Reason::kProcessEnded);
}

TEST_F(SendSessionTest, ClosesWithByeOnEveryFlowOnceAllIsDone) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  ack(d, kHelloBytes);
  post(100);
  static_cast<void>(d.stream.records());
  session->close();
  EXPECT_FALSE(d.stream.is_left());
  ack(d, kChunkRecordBytes + 100);
  EXPECT_TRUE(d.stream.closed);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(decode_bye(records[0].header, records[0].body)->messages, 1U);
  EXPECT_EQ(closed, 1);
}

TEST_F(SendSessionTest, ClosesAlsoWhenTheReceiverIsFoundToBeNoMore) {
  accept(0).events->on_failed(now, Error{Errc::kPeerClosed, 0, "tcp reset"});
  session->close();
  EXPECT_EQ(closed, 0);
  say(open(1), Refusal{Reason::kUnknownSession});
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(session->next_deadline(), kNever);
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, WritesOutsideTheRingsGoOutLater) {
  Dialled& d = accept(0, Credit{9, 0, 0});
  d.stream.full = true;
  post(100);
  EXPECT_TRUE(chunks(d).empty());
  d.stream.full = false;
  ack(d, 1);
  EXPECT_EQ(chunks(d).size(), 1U);
}

}  // namespace
}  // namespace ztcp::msg
