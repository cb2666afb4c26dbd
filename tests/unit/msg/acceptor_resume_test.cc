// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Resumes, and the answers to them.
#include <array>
#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "core/running_clock.h"
#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/acceptor.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

TEST_F(AcceptorTest, ANewEpochFencesTheOldStreamAndIsToldHeldUnits) {
  Peer& first = greet();
  std::vector<std::byte> buffer(40'000, std::byte{0});
  post(buffer, 1);
  first.chunk({false, 8192, 0, 0, 40'000}, std::byte{1});
  first.chunk({false, 4096, 0, 12'288, 40'000}, std::byte{2});
  first.say(Chunk{false, 8192, 0, 20'480, 40'000});  // It dies in its second unit.
  first.hear(std::vector<std::byte>(5000, std::byte{3}));
  first.chunk({true, 0, 1, 0, 0});  // Still inside the chunk: payload, not a record.

  Peer& second = greet(hello(5, 2));
  EXPECT_TRUE(first.stream.aborted);
  std::vector<RecordingStream::Record> rest;
  ASSERT_TRUE(accept_of(second, &rest));
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(rest[2].header.type, RecordType::kReady);
  const auto map = decode_map(rest[0].header, rest[0].body);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->message, 0U);
  EXPECT_EQ(map->total, 40'000U);
  ChunkMap expected{};
  expected.set(0, 2);
  expected.set(3, 4);
  expected.set(5, 6);
  EXPECT_EQ(map->units, expected);
  EXPECT_EQ(*decode_credit(rest[1].body), (Credit{1, 0, 0}));

  second.chunk({false, 4096, 0, 8192, 40'000}, std::byte{4});
  second.chunk({false, 4096, 0, 16'384, 40'000}, std::byte{5});
  second.chunk({false, 40'000 - 24'576, 0, 24'576, 40'000}, std::byte{6});
  EXPECT_EQ(done, (Done{{1, 40'000}}));
  EXPECT_EQ(buffer[0], std::byte{1});
  EXPECT_EQ(buffer[8192], std::byte{4});
  EXPECT_EQ(buffer[12'288], std::byte{2});
  EXPECT_EQ(buffer[16'384], std::byte{5});
  EXPECT_EQ(buffer[20'480], std::byte{3});
  EXPECT_EQ(buffer[24'576], std::byte{6});
  EXPECT_EQ(sessions.size(), 1U);
}

// In order of the lanes: their maps, then their credit. Messages finished beyond the oldest are
// told, too.
TEST_F(AcceptorTest, AResumeIsToldMapsAndCreditOfEachLane) {
  Peer& first = greet();
  std::array<std::array<std::byte, 8>, 3> buffers{};
  post(buffers[0], 1, 0, /*tag=*/4);
  post(buffers[1], 2, 0, /*tag=*/4);
  post(buffers[2], 3, 0, /*tag=*/6);
  first.chunk({false, 8, 1, 0, 8, 4});
  first.chunk({true, 100, 1, 0, 100, 6});
  Peer& second = greet(hello(5, 2));
  std::vector<RecordingStream::Record> rest;
  ASSERT_TRUE(accept_of(second, &rest));
  ASSERT_EQ(rest.size(), 5U);
  const auto whole = decode_map(rest[0].header, rest[0].body);
  EXPECT_TRUE(whole->is_whole);
  EXPECT_EQ(whole->message, 1U);
  EXPECT_EQ(whole->tag, 4U);
  EXPECT_EQ(*decode_credit(rest[1].body), (Credit{2, 0, 0, 4}));
  const auto map = decode_map(rest[2].header, rest[2].body);
  EXPECT_EQ(map->total, 100U);
  EXPECT_EQ(map->tag, 6U);
  EXPECT_TRUE(map->units.test(0));
  EXPECT_EQ(*decode_credit(rest[3].body), (Credit{1, 0, 0, 6}));
  EXPECT_EQ(rest[4].header.type, RecordType::kReady);
}

// If the stream is full it continues later, and carries chunks only afterwards.
TEST_F(AcceptorTest, AResumeOnAFullStreamContinuesLater) {
  Peer& first = greet();
  std::array<std::byte, 8> buffer{};
  for (std::uint32_t tag = 0; tag < 3; ++tag) {
    post(buffer, tag, 0, tag);
    first.chunk({true, 8, 1, 0, 8, tag});
  }
  Peer& second = connect();
  second.preamble();
  second.stream.takes = 3;  // accept, a map, a credit.
  second.say(hello(5, 2));
  EXPECT_EQ(second.stream.records().size(), 3U);
  second.stream.takes = 2;
  second.events->on_acked(now, 1);
  EXPECT_EQ(second.stream.records().size(), 2U);
  second.stream.takes = SIZE_MAX;
  second.events->on_acked(now, 2);
  const auto rest = second.stream.records();
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(decode_map(rest[0].header, rest[0].body)->tag, 2U);
  EXPECT_EQ(decode_credit(rest[1].body)->tag, 2U);
  EXPECT_EQ(rest[2].header.type, RecordType::kReady);
}

TEST_F(AcceptorTest, ResumeNeedsANewerEpochAndALivingSession) {
  greet();
  EXPECT_EQ(greet(hello(5, 1)).reason(), Reason::kStaleEpoch);
  EXPECT_TRUE(accept_of(greet(hello(5, 7))));
  EXPECT_EQ(greet(hello(5, 7)).reason(), Reason::kStaleEpoch);
  EXPECT_TRUE(accept_of(greet(hello(5, 1, 3))));  // Another flow has epochs of its own.
  EXPECT_EQ(greet(hello(6, 2)).reason(), Reason::kUnknownSession);
  Hello stolen = hello(5, 9);
  stolen.cookie = kOtherCookie;
  EXPECT_EQ(greet(stolen).reason(), Reason::kUnknownSession);
  // The listener may be gone by then, as NCCL's is.
  acceptor->remove_listener(kCookie);
  EXPECT_TRUE(accept_of(greet(hello(5, 8))));
  sessions.clear();
  EXPECT_EQ(greet(hello(5, 9)).reason(), Reason::kUnknownSession);
  EXPECT_EQ(acceptor->counters().refused_stale, 5U);
}

// Its bye may have been lost with its flows.
TEST_F(AcceptorTest, AResumeOfAClosedSessionIsToldTheReceivedCount) {
  Peer& peer = greet();
  std::array<std::byte, 8> buffer{};
  post(buffer, 1);
  peer.chunk({false, 8, 0, 0, 8});
  sessions[0]->close();
  const auto closing = greet(hello(5, 2)).refusal();
  ASSERT_TRUE(closing);
  EXPECT_EQ(closing->reason, Reason::kClosed);
  EXPECT_EQ(closing->ours, 1U);
  sessions.clear();
  const auto gone = greet(hello(5, 3)).refusal();
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->reason, Reason::kClosed);
  EXPECT_EQ(gone->ours, 1U);
  Hello stolen = hello(5, 4);
  stolen.cookie = kOtherCookie;
  EXPECT_EQ(greet(stolen).reason(), Reason::kUnknownSession);

  greet(hello(6));
  sessions[0]->abort();
  EXPECT_EQ(greet(hello(6, 2)).reason(), Reason::kUnknownSession) << "that one was not closed";
  // The last few thousand are remembered.
  sessions.clear();
  for (std::uint64_t id = 100; id < 100 + 4096; ++id) {
    greet(hello(id)).events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
    sessions[0]->close();
    sessions.clear();
  }
  EXPECT_EQ(greet(hello(100, 2)).reason(), Reason::kClosed);
  EXPECT_EQ(greet(hello(5, 5)).reason(), Reason::kUnknownSession);
}

TEST_F(AcceptorTest, ASessionWithoutFlowsWaitsBoundedTime) {
  Peer& peer = greet();
  peer.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  EXPECT_EQ(acceptor->next_deadline(),
            std::min(now + settings.resume_wait(), now + settings.handshake_timeout));
  acceptor->on_timers(now + settings.resume_wait() - Duration(1));
  EXPECT_TRUE(failures.empty());
  acceptor->on_timers(now + settings.resume_wait());
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
  EXPECT_STREQ(failures[0].where, "rto");
}

TEST_F(AcceptorTest, AResumeInTimeSavesTheSession) {
  Peer& peer = greet();
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "rst"});
  now += settings.resume_wait() - Duration(1);
  EXPECT_TRUE(accept_of(greet(hello(5, 2))));
  now += settings.resume_wait();
  acceptor->on_timers(now);
  EXPECT_TRUE(failures.empty());
}

// The process is stopped between reading the clock and the event that its flows are gone, for
// longer than a resume may take. Its sender, which has redialled all the while, finds the session.
TEST_F(AcceptorTest, StopInTheMiddleOfATurn_LeavesTheWholeTimeForAResume) {
  std::mt19937_64 random(7);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    TimePoint real = now;
    RunningClock clock(real, 1s);
    const auto turn = [&](Duration pause) { now = clock.at(real += pause); };
    Peer& peer = greet(hello(id));
    turn(1ms);
    real += std::chrono::milliseconds(1000 + random() % 60'000);  // The stop.
    peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "rst"});
    turn(0ms);
    acceptor->on_timers(now);
    ASSERT_TRUE(failures.empty());
    for (int i = 0; i < 10; ++i) {
      turn(std::chrono::milliseconds(random() % 700));
      acceptor->on_timers(now);
    }
    ASSERT_TRUE(failures.empty());
    EXPECT_TRUE(accept_of(greet(hello(id, 2))));
  }
}

TEST_F(AcceptorTest, AFailureBeforeTheOwnerIsSetIsReportedLater) {
  set_owner = false;
  Peer& peer = greet();
  peer.hear("nonsense, but enough for a header");
  EXPECT_EQ(peer.reason(), Reason::kProtocol);
  EXPECT_TRUE(failures.empty());
  sessions[0]->set_owner(*this);
  acceptor->on_timers(now);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

}  // namespace
}  // namespace ztcp::msg
