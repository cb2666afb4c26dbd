// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages of which a sender keeps copies.
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/send_session_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

// With a transport whose acknowledgement is no delivery.
class KeptTest : public SendSessionTest {
 protected:
  void SetUp() override {
    settings.ack_is_delivery = false;
    settings.kept_message_bytes = 2048;  // Pages of 128 bytes.
    make();
  }
  // The peer's TCP has acknowledged `total_bytes`.
  void deliver(Dialled& d, std::uint64_t total_bytes) { d.events->on_delivered(now, total_bytes); }
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

TEST_F(KeptTest, SmallMessagesAreDoneOnceThePeersTcpHasThem) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  post(900);
  post(2048);
  ack(d, 2 * kChunkRecordBytes + 900 + 2047);
  EXPECT_EQ(d.stream.delivery_asks, 1) << "of the first; the stream still refers to the other";
  EXPECT_TRUE(done.empty()) << "the kernel has it, which throws it away if this process ends";
  deliver(d, kHelloBytes + kChunkRecordBytes + 899);
  EXPECT_TRUE(done.empty());
  deliver(d, kHelloBytes + kChunkRecordBytes + 900);
  EXPECT_EQ(done.size(), 1U);
  ack(d, 1);
  EXPECT_EQ(done.size(), 1U);
  deliver(d, kHelloBytes + 2 * kChunkRecordBytes + 900 + 2048);
  EXPECT_EQ(done.size(), 2U);
  post(2049);
  ack(d, kChunkRecordBytes + 2049);
  deliver(d, 1U << 20);
  EXPECT_EQ(done.size(), 2U) << "that one waits for the receiver's record";
  const auto chunks = sent(d);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_FALSE(chunks[0].chunk.wants_receipt);
  EXPECT_FALSE(chunks[1].chunk.wants_receipt);
  EXPECT_TRUE(chunks[2].chunk.wants_receipt);
  say(d, Credit{3, 900 + 2048 + 2049, 3});
  EXPECT_EQ(done, (std::vector<std::uint32_t>{0, 1, 2})) << "each once";
}

// A kernel delays the ACK of a last segment by tens of milliseconds (RFC 1122 section 4.2.3.2), and
// NCCL's next operation on a connection waits for the send before it.
TEST_F(KeptTest, CopiesBehindALargeMessageAskForReceipts) {
  Dialled& d = accept(0, Credit{64, 0, 0});
  ack(d, kHelloBytes);
  post(100);
  post(4096);  // No copy is kept of it.
  post(100);
  ack(d, 1U << 20);
  auto chunks = sent(d);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_FALSE(chunks[0].chunk.wants_receipt) << "a connection begins as a run of small messages";
  EXPECT_TRUE(chunks[2].chunk.wants_receipt);
  say(d, Credit{64, 0, 3});
  EXPECT_EQ(done.size(), 3U) << "without an ACK of the peer's kernel";
  post(4096);
  for (int i = 0; i < 17; ++i) {
    ack(d, 1U << 20);
    deliver(d, 1U << 20);
    post(100);
  }
  chunks = sent(d);
  ASSERT_EQ(chunks.size(), 18U);
  EXPECT_TRUE(chunks[1].chunk.wants_receipt);
  EXPECT_TRUE(chunks[16].chunk.wants_receipt);
  EXPECT_FALSE(chunks[17].chunk.wants_receipt) << "a run of small messages, told of in batches";
}

// The receiver sends nothing unasked until 16 messages of a small lane were received, or half of
// the allowance was released: until then none of its packets can make the kernel drop its queued
// data.
TEST_F(KeptTest, SmallMessagesAreDoneAtOnceWhileTheReceiverIsSilent) {
  Dialled& d = accept(0);
  post(8);
  ack(d, 1U << 20);
  EXPECT_TRUE(done.empty()) << "it may tell of the buffers that it has";
  say(d, Credit{1, 8, 1});
  ASSERT_EQ(done.size(), 1U);
  for (std::size_t i = 0; i < 15; ++i) {
    post(8);
    EXPECT_EQ(done.size(), 1 + i) << "before its stream has it";
    ack(d, kChunkRecordBytes + 8);
    EXPECT_EQ(done.size(), 2 + i);
  }
  EXPECT_EQ(d.stream.delivery_asks, 1) << "that of the first";
  post(8);
  ack(d, kChunkRecordBytes + 8);
  EXPECT_EQ(done.size(), 16U) << "the 16th without an answer";
  EXPECT_EQ(d.stream.delivery_asks, 2);
  say(d, Credit{17, 17 * 8, 17});
  EXPECT_EQ(done.size(), 17U);
}

TEST_F(KeptTest, AReceiverThatMaySendARecordIsNotSilent) {
  struct Case {
    const char* name;
    std::function<void(Dialled&)> does;
  };
  const std::vector<Case> cases = {
      {"another tag", [&](Dialled&) { post(8, 1); }},
      {"a message for whose buffer it is told unasked", [&](Dialled&) { post(5000); }},
      {"half of the allowance", [&](Dialled&) { post(2048), post(2040); }},
      {"a flow that died",
       [&](Dialled& d) {
         d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
       }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    dialled.clear();
    done.clear();
    make();
    Dialled& d = accept(0);
    post(8);
    ack(d, 1U << 20);
    say(d, Credit{1, 8, 1});
    ASSERT_EQ(done.size(), 1U);
    one.does(d);
    Dialled& then = &one == &cases.back() ? accept(1, Credit{1, 8, 1}) : d;
    const std::size_t before = done.size();
    post(8);
    ack(then, 1U << 20);
    EXPECT_EQ(done.size(), before);
    EXPECT_GT(then.stream.delivery_asks, 0);
  }
}

// No event looks for credit any more once all is done.
TEST_F(KeptTest, AMessageThatWaitedForCreditIsDoneAfterItWasSent) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  for (int i = 0; i < 33; ++i) post(8);
  EXPECT_EQ(asks(d), 1U);
  ack(d, 50'000);
  say(d, Credit{16, 16 * 8, 16});
  EXPECT_EQ(done.size(), 16U);
  EXPECT_EQ(sent(d).size(), 1U);
  ack(d, 100'000);
  deliver(d, 100'000);
  EXPECT_EQ(done.size(), 33U);
}

TEST_F(KeptTest, AMessageReceivedBeforeItsCopyIsDoneOnce) {
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
  deliver(again, 100'000);
  EXPECT_EQ(done.size(), 1U);
}

TEST_F(KeptTest, WithoutRoomForTheCopyMessagesWait) {
  Dialled& d = accept(0, Credit{40, 0, 0});
  for (int i = 0; i < 5; ++i) post(2000);
  EXPECT_TRUE(sent(d).back().chunk.wants_receipt);
  ack(d, 100'000);
  deliver(d, 100'000);
  EXPECT_EQ(done.size(), 4U);
  say(d, Credit{40, 0, 1});
  post(2000);
  ack(d, 100'000);
  deliver(d, 200'000);
  EXPECT_EQ(done.size(), 5U) << "the first has made room for a copy";
  say(d, Credit{40, 0, 5});
  EXPECT_EQ(done.size(), 6U);
}

TEST_F(KeptTest, MessagesOfADeadFlowAreSentAgainFromTheirCopies) {
  Dialled& d = accept(0, Credit{40, 0, 0});
  for (int i = 0; i < 4; ++i) {
    memory[0] = static_cast<std::byte>(i);
    post(100);
  }
  memory[0] = std::byte{0xee};
  ack(d, 100'000);
  deliver(d, 100'000);
  EXPECT_EQ(done.size(), 4U);
  d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  Dialled& again = accept(1, Credit{40, 0, 2});
  const auto chunks = sent(again);
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].chunk.message, 2U);
  EXPECT_EQ(chunks[0].first, std::byte{2});
  EXPECT_EQ(chunks[1].first, std::byte{3});
  EXPECT_EQ(done.size(), 4U) << "once";
}

// The receiver sends credit for small messages only now and then.
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

TEST_F(KeptTest, CreditForLargeMessagesIsNotAskedFor) {
  Dialled& d = accept(0);
  post(5000);
  post(5000);
  EXPECT_EQ(asks(d), 0U);
}

TEST_F(KeptTest, ClosesOnceTheReceiverHasAllMessages) {
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

// It reported them done; they still have to arrive.
TEST_F(KeptTest, AProcessThatEndsDeliversItsCopiesFirst) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  ack(d, 100'000);
  static_cast<void>(d.stream.records());
  session->leave(now);
  EXPECT_EQ(asks(d), 1U);
  EXPECT_FALSE(d.stream.is_left());
  EXPECT_TRUE(session->is_finishing());
  // The flow dies nevertheless.
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

// The receiver has not posted its buffer by the time of the last wait.
TEST_F(KeptTest, CopiesLeftWhenTheProcessEndsArriveInOrder) {
  for (const bool leaves : {true, false}) {
    dialled.clear();
    closed = 0;
    make();
    Dialled& d = accept(0);
    post(100);
    ack(d, 100'000);
    static_cast<void>(d.stream.records());
    if (leaves)
      session->leave(now);
    else
      session->close();
    session->cut_off();
    const auto records = d.stream.records();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].header.type, RecordType::kAsk);
    EXPECT_EQ(decode_bye(records[1].header, records[1].body)->messages, 1U);
    EXPECT_TRUE(d.stream.closed);
    EXPECT_FALSE(session->is_finishing());
  }
}

// A receiver that ends as soon as it has everything, before its kernel has acknowledged.
TEST_F(KeptTest, CopiesThatAnEndedReceiverMayHaveAreDone) {
  Dialled& d = accept(0);
  post(100);
  post(3000);
  ack(d, 100'000);
  d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_TRUE(done.empty());
  const TimePoint since = now;
  while (failures.empty() && now - since < std::chrono::seconds(2)) {
    now = std::max(now, session->next_deadline());
    session->on_timers(now);
    if (failures.empty())
      dialled.back().events->on_failed(now, Error{Errc::kRefused, 0, "connect"});
  }
  EXPECT_EQ(done, std::vector<std::uint32_t>{0}) << "the other waits for the receiver's answer";
  EXPECT_EQ(failures.size(), 1U);
}

TEST_F(KeptTest, CopiesWithoutAFlowWhenTheProcessEndsAreGivenUp) {
  Dialled& d = accept(0);
  post(100);
  ack(d, 100'000);
  session->close();
  d.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  session->cut_off();
  EXPECT_FALSE(session->is_finishing());
  EXPECT_EQ(session->next_deadline(), kNever);
}

}  // namespace
}  // namespace ztcp::msg
