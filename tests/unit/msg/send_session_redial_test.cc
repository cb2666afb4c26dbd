// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows that die, and their sender's reaction.
#include <gtest/gtest.h>

#include "tests/unit/msg/send_session_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

TEST_F(SendSessionTest, RedialsUntilTheWindowIsOver) {
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(100);
  const TimePoint died = now;
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  while (failures.empty()) {
    ASSERT_NE(session->next_deadline(), kNever);
    const Duration silence = session->next_deadline() - now;
    EXPECT_LE(silence, settings.redial_attempt) << "no attempt lasts longer than that";
    now = std::max(now, session->next_deadline());
    session->on_timers(now);
  }
  EXPECT_GE(now - died, settings.redial_window);
  EXPECT_LE(now - died, settings.redial_window + settings.redial_attempt);
  EXPECT_GE(dialled.size(), 5U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
}

// If a host's kernel, or its stack, refuses the connection, the process is gone.
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

// The peer's NIC decides which queue a port leads to: the next one may lead to the right one.
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

TEST_F(SendSessionTest, ContinuesWithFewerFlowsWhereNoPortLeadsToItsQueue) {
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

// A resumed flow has as long as any redial.
TEST_F(SendSessionTest, TriesPortsToItsQueueAsLongAsItMayRedial) {
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

// The announcement must reach the queue that has the session.
TEST_F(SendSessionTest, AnnouncesTheEndOfItsProcessOnTheRightQueue) {
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

// A connection that is idle for long may lose its flow any number of times.
TEST_F(SendSessionTest, FlowsThatKeepDyingEarlyAreGivenUp) {
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

// TCP takes a second to detect it, and four dials took four.
TEST_F(SendSessionTest, PathWithoutFullPacketsFailsANewSessionAtOnce) {
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(100'000);
  now += std::chrono::seconds(1);
  first.events->on_failed(now, Error{Errc::kPathMtu, 0, "tcp path probe"});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPathMtu);
}

TEST_F(SendSessionTest, PathWithoutFullPacketsCostsAFurtherFlowOnly) {
  accept(0, Credit{3, 0, 0});
  post(settings.multi_flow_threshold_bytes + 1);
  Dialled& further = open(1);
  say(further, kLimits);
  now += std::chrono::seconds(1);
  const std::size_t dials = dialled.size();
  further.events->on_failed(now, Error{Errc::kPathMtu, 0, "tcp path probe"});
  session->on_timers(now + std::chrono::seconds(1));
  EXPECT_TRUE(failures.empty());
  EXPECT_EQ(dialled.size(), dials) << "not dialled again";
}

TEST_F(SendSessionTest, PathWithoutFullPacketsIsLeftByARedialledFlow) {
  Dialled& first = accept(0, Credit{3, 0, 0});
  post(100'000);
  first.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  now = std::max(now, session->next_deadline());
  session->on_timers(now);
  Dialled& second = open(1);
  second.events->on_failed(now, Error{Errc::kPathMtu, 0, "tcp path probe"});
  EXPECT_TRUE(failures.empty());
  EXPECT_NE(session->next_deadline(), kNever) << "another port may lead along another path";
}

TEST_F(SendSessionTest, ResumesWithTheNextEpochAndSendsOnlyMissingUnits) {
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
  EXPECT_EQ(sent[2].message, 2U);  // The peer had none of its bytes.
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

// Bytes sent again fill no further memory of the receiver; once their buffer is posted they are not
// charged any more.
TEST_F(SendSessionTest, BytesSentAgainNeedNoCredit) {
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

TEST_F(SendSessionTest, InvalidRecordsFromTheReceiverFailTheSession) {
  const auto fails = [&](const auto& record) {
    failures.clear();
    dialled.clear();
    make();
    Dialled& d = accept(0, Credit{1, 0, 0});
    post(100);
    say(d, record);
    return failures.size() == 1 && failures[0].code == Errc::kProtocol && d.stream.aborted;
  };
  EXPECT_TRUE(fails(Credit{2, 0, 2}));     // Received messages that were never sent.
  EXPECT_TRUE(fails(Credit{2, 1, 1}));     // Released bytes that were never eager.
  EXPECT_TRUE(fails(Credit{2, 0, 1, 5}));  // Received messages of a tag that was never sent.
  EXPECT_TRUE(fails(Ready{}));             // Ready twice.
  EXPECT_TRUE(fails(kLimits));             // Accepts twice.
  EXPECT_TRUE(fails(Map{0, 100, {}}));     // Maps outside a resume.
  EXPECT_TRUE(fails(Chunk{true, 0, 0, 0, 0}));
  EXPECT_TRUE(fails(Challenge{}));
  EXPECT_TRUE(fails(Bye{2}));
}

TEST_F(SendSessionTest, AnIdleSenderIgnoresTheEndOfTheReceiver) {
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

}  // namespace
}  // namespace ztcp::msg
