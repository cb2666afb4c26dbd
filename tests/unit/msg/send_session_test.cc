// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sender's hello, and which bytes it sends when.
#include <gtest/gtest.h>

#include "tests/unit/msg/send_session_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

TEST_F(SendSessionTest, SendsItsHelloAndWaitsForCredit) {
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

TEST_F(SendSessionTest, ExchangesHostNames) {
  settings.host = HostName::of("gpu-01");
  make();
  Dialled& d = open(0);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(decode_hello(records[0].header, records[0].body)->host.view(), "gpu-01");
  EXPECT_TRUE(session->peer_host().is_empty());
  Accept accept = kLimits;
  accept.host = HostName::of("gpu-02");
  say(d, accept);
  EXPECT_EQ(session->peer_host().view(), "gpu-02");
}

TEST_F(SendSessionTest, MeasuresTheTimeWithoutCredit) {
  using std::chrono::milliseconds;
  Dialled& d = accept(0);
  post(8192);  // The whole allowance.
  EXPECT_EQ(session->credit_wait().times(), 0U);
  post(100);
  now += milliseconds(3);
  EXPECT_EQ(session->credit_wait().times(), 1U);
  EXPECT_EQ(session->credit_wait().time(now), milliseconds(3)) << "while it lasts, too";
  post(100);
  now += milliseconds(2);
  say(d, Credit{2, 0, 0});
  now += milliseconds(5);
  EXPECT_EQ(session->credit_wait().times(), 2U) << "the third message waits, too";
  say(d, Credit{3, 0, 0});
  now += milliseconds(5);
  EXPECT_EQ(session->credit_wait().times(), 2U);
  EXPECT_EQ(session->credit_wait().time(now), milliseconds(10)) << "a sent message waits no more";
}

// In the order of posting, except for lanes without credit.
TEST_F(SendSessionTest, SkipsMessagesOfLanesWithoutCredit) {
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

// A small message must not overtake the message before it, which exceeds the allowance.
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

// As many as it may have buffers: a peer must not make this side's memory grow.
TEST_F(SendSessionTest, AReceiverMayNameFewTagsWithoutMessages) {
  make();
  Dialled& d = accept(0);
  for (std::uint32_t tag = 0; tag < 2000; ++tag) post(1, tag);
  for (std::uint32_t tag = 2000; tag < 2000 + kMaxUnusedLanes; ++tag) say(d, Credit{1, 0, 0, tag});
  EXPECT_TRUE(failures.empty());
  post(1, 2000);
  say(d, Credit{1, 0, 0, 9000});
  EXPECT_TRUE(failures.empty()) << "one of them was used";
  say(d, Credit{1, 0, 0, 9001});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

TEST_F(SendSessionTest, IsDoneByAcknowledgementOnlyWhereThatMeansDelivery) {
  for (const bool delivery : {true, false}) {
    done.clear();
    dialled.clear();
    make();
    Accept limits = kLimits;
    limits.ack_is_delivery = delivery;
    Dialled& d = accept(0, Credit{2, 0, 0}, limits);
    EXPECT_EQ(d.stream.expects_late_acks, !delivery) << "it comes from the peer's kernel";
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
TEST_F(SendSessionTest, ContinuesWhileTheOldestMessageIsSlow) {
  settings.multi_flow_threshold_bytes = 0;
  make();
  Dialled& slow = accept(0, Credit{40, 0, 0});
  ack(slow, kHelloBytes);
  post(100);  // It is sent on the only flow.
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

// Large messages are divided evenly over the other flows; small ones do not wait behind them.
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

TEST_F(SendSessionTest, AnotherVersionIsReportedByEitherSide) {
  Dialled& d = open(0);
  dialled.clear();
  make();
  Dialled& e = [&]() -> Dialled& {
    session->on_timers(now);
    dialled[0].events->on_open(now, dialled[0].stream);
    return dialled[0];
  }();
  static_cast<void>(d);
  preamble(e, 3);
  say(e, Refusal{Reason::kVersion, 3, 2});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
  EXPECT_EQ(describe(session->failure_detail()),
            "the peer refused: wire version 3 there, 2 here: install the same ztcp on both hosts");

  failures.clear();
  dialled.clear();
  make();
  session->on_timers(now);
  dialled[0].events->on_open(now, dialled[0].stream);
  preamble(dialled[0], 3);
  say(dialled[0], Credit{});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(describe(session->failure_detail()),
            "wire version 2 here, 3 there: install the same ztcp on both hosts");
}

TEST_F(SendSessionTest, AnotherServiceAtThePortIsReported) {
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
  EXPECT_EQ(session->next_deadline(), kNever);  // TCP limits the connect.
  dialled[0].events->on_open(now, dialled[0].stream);
  EXPECT_EQ(session->next_deadline(), now + settings.handshake_timeout);
  session->on_timers(now + settings.handshake_timeout);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
  EXPECT_TRUE(dialled[0].stream.aborted);
}

// For a redialled flow all streams count, with the latest state of the path; over parallel flows
// the values are added.
TEST_F(SendSessionTest, HealthCoversAllItsStreams) {
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

}  // namespace
}  // namespace ztcp::msg
