// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving side against a sender written by hand, record by record.
#include "transport/msg/acceptor.h"

#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/unit/msg/recording_stream.h"
#include "transport/msg/handshake.h"

namespace ztcp::msg {
namespace {

constexpr Cookie kCookie = {std::byte{1}, std::byte{2}};
constexpr Cookie kOtherCookie = {std::byte{1}, std::byte{3}};
constexpr ClusterKey kKey = {std::byte{0x6b}};

class AcceptorTest : public testing::Test, public ListenerEvents, public SessionOwner {
 protected:
  // A hand-made sender's stream.
  struct Peer {
    RecordingStream stream;
    StreamEvents* events = nullptr;
    template <class Record>
    void say(const Record& record) {
      RecordBuffer out;
      hear(std::span(out).first(encode(record, out)));
    }
    void hear(std::span<const std::byte> bytes) {
      if (!stream.is_left()) events->on_bytes(TimePoint{}, bytes);
    }
    void hear(std::string_view text) { hear(std::as_bytes(std::span(text))); }
    void preamble(std::uint32_t version = kWireVersion) {
      std::array<std::byte, kPreambleBytes> out;
      hear(std::span(out).first(encode_preamble(version, out)));
    }
    void chunk(const Chunk& chunk, std::byte fill = std::byte{0x11}) {
      say(chunk);
      if (chunk.size_bytes != 0) hear(std::vector<std::byte>(chunk.size_bytes, fill));
    }
    std::optional<Refusal> refusal() {
      for (const auto& record : stream.records())
        if (record.header.type == RecordType::kRefusal) return decode_refusal(record.body);
      return std::nullopt;
    }
    Reason reason() {
      const auto refused = refusal();
      return refused ? refused->reason : Reason::kNone;
    }
  };

  void SetUp() override { make(); }
  void make(const ClusterKey& key = {}) {
    sessions.clear();
    acceptor = std::make_unique<Acceptor>(settings, key, 8, std::array<std::uint64_t, 2>{1, 2});
    ASSERT_TRUE(acceptor->add_listener(kCookie, *this));
  }
  void TearDown() override { sessions.clear(); }

  Peer& connect() {
    Peer& peer = peers.emplace_back();
    peer.events = acceptor->on_accept(now, peer.stream, Endpoint{Ipv4Address{0x0a000002}, 4000});
    return peer;
  }
  static Hello hello(std::uint64_t session = 5, std::uint32_t epoch = 1, std::uint8_t flow = 0) {
    Hello h;
    h.is_new = flow == 0 && epoch == 1;
    h.cookie = kCookie;
    h.session = session;
    h.epoch = epoch;
    h.flow = flow;
    h.flows_wanted = 4;
    h.nonce = sender_nonce(session, flow, epoch);
    return h;
  }
  Peer& greet(const Hello& h = hello()) {
    Peer& peer = connect();
    peer.preamble();
    peer.say(h);
    return peer;
  }
  // The accept that `peer` was told, after which nothing is left unread but what `rest` gets.
  static std::optional<Accept> accept_of(Peer& peer,
                                         std::vector<RecordingStream::Record>* rest = nullptr) {
    auto records = peer.stream.records();
    if (records.empty() || records.front().header.type != RecordType::kAccept) return std::nullopt;
    const auto accept = decode_accept(records.front().header, records.front().body);
    if (rest != nullptr) rest->assign(records.begin() + 1, records.end());
    return accept;
  }
  static std::optional<Credit> credit_of(Peer& peer) {
    std::optional<Credit> credit;
    for (const auto& record : peer.stream.records())
      if (record.header.type == RecordType::kCredit) credit = decode_credit(record.body);
    return credit;
  }

  void on_session(TimePoint, std::unique_ptr<RecvSession> session) override {
    if (refuse_sessions) return;
    sessions.push_back(std::move(session));
    if (set_owner) sessions.back()->set_owner(*this);
  }
  void on_ready(TimePoint) override {}
  void on_done(std::uint32_t token, std::size_t size_bytes) override {
    done.emplace_back(token, size_bytes);
  }
  void on_session_failed(Error e) override { failures.push_back(e); }
  void on_session_closed() override { ++closed; }

  using Done = std::vector<std::pair<std::uint32_t, std::size_t>>;
  SessionSettings settings;
  TimePoint now{};
  bool set_owner = true;
  bool refuse_sessions = false;
  std::deque<Peer> peers;
  std::unique_ptr<Acceptor> acceptor;
  std::vector<std::unique_ptr<RecvSession>> sessions;
  Done done;
  std::vector<Error> failures;
  int closed = 0;
};

// --- Who gets in -------------------------------------------------------------------------------

TEST_F(AcceptorTest, AcceptsASessionAndSaysItsLimits) {
  Peer& peer = greet();
  std::vector<RecordingStream::Record> rest;
  const auto accept = accept_of(peer, &rest);
  ASSERT_TRUE(accept);
  EXPECT_EQ(accept->allowance_bytes, 128U << 10);
  EXPECT_EQ(accept->flows_granted, 4);
  EXPECT_EQ(accept->message_window, 32);
  EXPECT_EQ(accept->session, 5U);
  EXPECT_TRUE(accept->ack_is_delivery);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(*decode_credit(rest[0].body), Credit{});
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0]->remote().port, 4000);
}

TEST_F(AcceptorTest, AnotherVersionIsToldBothVersions) {
  Peer& peer = connect();
  peer.preamble(2);
  const auto refusal = peer.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kVersion);
  EXPECT_EQ(refusal->ours, 1U);
  EXPECT_EQ(refusal->theirs, 2U);
  EXPECT_TRUE(peer.stream.closed);
  EXPECT_EQ(acceptor->counters().refused_version, 1U);
}

TEST_F(AcceptorTest, AnUnknownCookieIsRefused) {
  Hello h = hello();
  h.cookie = kOtherCookie;
  EXPECT_EQ(greet(h).reason(), Reason::kUnknownCookie);
  EXPECT_EQ(acceptor->counters().strays_unknown_cookie, 1U);

  acceptor->remove_listener(kCookie);
  EXPECT_EQ(greet().reason(), Reason::kUnknownCookie);
  EXPECT_TRUE(sessions.empty());
}

TEST_F(AcceptorTest, ACookieCanBeListenedForOnce) {
  const Status again = acceptor->add_listener(kCookie, *this);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kBusy);
}

TEST_F(AcceptorTest, StraysAreDroppedAndCounted) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 300; ++i) {
    Peer& peer = connect();
    ASSERT_NE(peer.events, nullptr);
    std::string noise;
    for (int n = 0; n < 64; ++n) noise += static_cast<char>(rng());
    peer.hear(noise);
    EXPECT_TRUE(peer.stream.aborted);
    EXPECT_TRUE(peer.stream.written.empty());
  }
  Peer& http = connect();
  http.hear("GET / HTTP/1.1\r\n");
  EXPECT_TRUE(http.stream.aborted);
  // Our magic, then nonsense.
  Peer& half = connect();
  half.preamble();
  half.hear("\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_TRUE(half.stream.aborted);
  // Records out of turn.
  for (int kind = 0; kind < 3; ++kind) {
    Peer& peer = connect();
    peer.preamble();
    if (kind == 0) peer.chunk({true, 8, 0, 0, 8});
    if (kind == 1) peer.say(Proof{});
    if (kind == 2) peer.say(Bye{});
    EXPECT_TRUE(peer.stream.aborted) << kind;
  }
  EXPECT_EQ(acceptor->counters().strays_bad_magic, 305U);
  EXPECT_TRUE(sessions.empty());
  EXPECT_TRUE(accept_of(greet()));  // And nobody is hurt.
}

TEST_F(AcceptorTest, SilenceEndsAtTheHandshakeTimeout) {
  Peer& silent = connect();
  Peer& slow = connect();
  slow.preamble();
  EXPECT_EQ(acceptor->next_deadline(), now + settings.handshake_timeout);
  acceptor->on_timers(now + settings.handshake_timeout - Duration(1));
  EXPECT_FALSE(silent.stream.is_left());
  acceptor->on_timers(now + settings.handshake_timeout);
  EXPECT_TRUE(silent.stream.aborted);
  EXPECT_TRUE(slow.stream.aborted);
  EXPECT_EQ(acceptor->counters().strays_timed_out, 2U);
  EXPECT_EQ(acceptor->next_deadline(), kNever);
}

TEST_F(AcceptorTest, PendingStreamsAreLimitedAndTheirPlacesComeBack) {
  std::vector<Peer*> pending;
  for (int i = 0; i < 8; ++i) pending.push_back(&connect());
  EXPECT_EQ(connect().events, nullptr);
  EXPECT_EQ(acceptor->counters().refused_full, 1U);
  pending[3]->events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  pending[4]->events->on_closed(now);
  EXPECT_NE(connect().events, nullptr);
  EXPECT_NE(connect().events, nullptr);
  EXPECT_EQ(connect().events, nullptr);
}

TEST_F(AcceptorTest, ASessionTooManyIsToldTheLimit) {
  settings.max_sessions = 2;
  make();
  EXPECT_TRUE(accept_of(greet(hello(1))));
  EXPECT_TRUE(accept_of(greet(hello(2))));
  const auto refusal = greet(hello(3)).refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kFull);
  EXPECT_EQ(refusal->ours, 2U);
  sessions.pop_back();
  EXPECT_TRUE(accept_of(greet(hello(3))));
}

TEST_F(AcceptorTest, TheAllowanceShrinksWithManySessions) {
  settings.eager_budget_bytes = 1U << 20;
  make();
  for (std::uint64_t id = 1; id <= 300; ++id) {
    const auto accept = accept_of(greet(hello(id)));
    ASSERT_TRUE(accept);
    EXPECT_LE(accept->allowance_bytes, std::max<std::uint64_t>(4096, (1U << 20) / id));
    EXPECT_EQ(accept->allowance_bytes % 4096, 0U);
    if (id <= 8) {
      EXPECT_EQ(accept->allowance_bytes, 128U << 10) << id;
    } else if (id > 128) {
      EXPECT_EQ(accept->allowance_bytes, 4096U) << id;
    }
  }
  sessions.clear();
  EXPECT_EQ(accept_of(greet(hello(1000)))->allowance_bytes, 128U << 10);
}

TEST_F(AcceptorTest, AListenerMayTurnASessionAway) {
  refuse_sessions = true;
  EXPECT_TRUE(greet().stream.aborted);
  acceptor->flush(now);
  refuse_sessions = false;
  EXPECT_TRUE(accept_of(greet()));
}

// --- Keys --------------------------------------------------------------------------------------

TEST_F(AcceptorTest, WithAKeyBothSidesProveIt) {
  make(kKey);
  Hello h = hello();
  h.has_key = true;
  Peer& peer = greet(h);
  auto records = peer.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto challenge = decode_challenge(records[0].body);
  EXPECT_EQ(challenge->mac, receiver_mac(kKey, h, challenge->nonce));
  EXPECT_TRUE(sessions.empty());  // Nothing before the proof.
  peer.say(Proof{sender_mac(kKey, h, challenge->nonce)});
  EXPECT_TRUE(accept_of(peer));
  EXPECT_EQ(sessions.size(), 1U);

  // Every challenge is new, so an old proof is worth nothing.
  Hello resume = hello(5, 2);
  resume.has_key = true;
  Peer& replay = greet(resume);
  records = replay.stream.records();
  EXPECT_NE(decode_challenge(records[0].body)->nonce, challenge->nonce);
  replay.say(Proof{sender_mac(kKey, h, challenge->nonce)});
  EXPECT_EQ(replay.reason(), Reason::kKeyMismatch);
  EXPECT_FALSE(peer.stream.is_left());  // No fence without a proof.
  EXPECT_EQ(acceptor->counters().strays_bad_key, 1U);
}

TEST_F(AcceptorTest, KeysOnOneSideOnlyAreNamed) {
  make(kKey);
  EXPECT_EQ(greet().reason(), Reason::kKeyMissing);
  make();
  Hello h = hello();
  h.has_key = true;
  EXPECT_EQ(greet(h).reason(), Reason::kKeyUnexpected);
}

TEST_F(AcceptorTest, WhoCannotVerifyTheChallengeIsCounted) {
  make(kKey);
  Hello h = hello();
  h.has_key = true;
  greet(h).events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  EXPECT_EQ(acceptor->counters().strays_bad_key, 1U);
}

// --- Resume ------------------------------------------------------------------------------------

TEST_F(AcceptorTest, ANewEpochFencesTheOldStreamAndHearsWhatIsHeld) {
  Peer& first = greet();
  std::vector<std::byte> buffer(40'000, std::byte{0});
  sessions[0]->post(now, std::span(buffer), 1);
  first.chunk({false, 8192, 0, 0, 40'000}, std::byte{1});
  first.chunk({false, 4096, 0, 12'288, 40'000}, std::byte{2});
  first.say(Chunk{false, 8192, 0, 20'480, 40'000});  // And dies in its second unit.
  first.hear(std::vector<std::byte>(5000, std::byte{3}));
  first.chunk({true, 0, 1, 0, 0});  // Still inside the chunk: payload, not a record.

  Peer& second = greet(hello(5, 2));
  EXPECT_TRUE(first.stream.aborted);
  std::vector<RecordingStream::Record> rest;
  ASSERT_TRUE(accept_of(second, &rest));
  ASSERT_EQ(rest.size(), 2U);
  const auto map = decode_map(rest[0].body);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->message, 0U);
  EXPECT_EQ(map->total, 40'000U);
  ChunkMap expected;
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

TEST_F(AcceptorTest, WithoutAnyFlowASessionWaitsBoundedTime) {
  Peer& peer = greet();
  peer.events->on_failed(now, Error{Errc::kTimedOut, 0, "rto"});
  EXPECT_EQ(acceptor->next_deadline(),
            std::min(now + settings.resume_wait, now + settings.handshake_timeout));
  acceptor->on_timers(now + settings.resume_wait - Duration(1));
  EXPECT_TRUE(failures.empty());
  acceptor->on_timers(now + settings.resume_wait);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
  EXPECT_STREQ(failures[0].where, "rto");
}

TEST_F(AcceptorTest, AResumeInTimeSavesIt) {
  Peer& peer = greet();
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "rst"});
  now += settings.redial_window - Duration(1);
  EXPECT_TRUE(accept_of(greet(hello(5, 2))));
  now += settings.resume_wait;
  acceptor->on_timers(now);
  EXPECT_TRUE(failures.empty());
}

TEST_F(AcceptorTest, AFailureBeforeTheOwnerCameIsToldThen) {
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

// --- Messages ----------------------------------------------------------------------------------

TEST_F(AcceptorTest, BytesThatComeBeforeTheirBufferAreKeptAndReleased) {
  Peer& peer = greet();
  peer.chunk({true, 100, 0, 0, 100}, std::byte{1});
  peer.chunk({true, 8192, 1, 0, 20'000}, std::byte{2});
  peer.say(Chunk{true, 8192, 1, 8192, 20'000});
  peer.hear(std::vector<std::byte>(5000, std::byte{3}));  // Under way while the buffer is posted.
  EXPECT_EQ(sessions[0]->unposted_bytes(), 100U + 16'384U);

  std::vector<std::byte> small(100);
  sessions[0]->post(now, std::span(small), 10);
  EXPECT_EQ(done, (Done{{10, 100}}));
  EXPECT_EQ(small, std::vector<std::byte>(100, std::byte{1}));

  std::vector<std::byte> large(20'000, std::byte{0xee});
  sessions[0]->post(now, std::span(large), 11);
  EXPECT_EQ(sessions[0]->unposted_bytes(), 0U);
  // Exactly what came, no more.
  EXPECT_EQ(large[8191], std::byte{2});
  EXPECT_EQ(large[8192 + 4999], std::byte{3});
  EXPECT_EQ(large[8192 + 5000], std::byte{0xee});
  acceptor->flush(now);
  EXPECT_EQ(*credit_of(peer), (Credit{2, 100 + 8192 + 4096, 1}));

  peer.hear(std::vector<std::byte>(3192, std::byte{4}));
  peer.chunk({false, 20'000 - 16'384, 1, 16'384, 20'000}, std::byte{5});
  EXPECT_EQ(done.back(), (std::pair<std::uint32_t, std::size_t>{11, 20'000}));
  EXPECT_EQ(large[16'383], std::byte{4});
  EXPECT_EQ(large[19'999], std::byte{5});
  acceptor->flush(now);
  EXPECT_EQ(*credit_of(peer), (Credit{2, 100 + 16'384, 2}));  // The last chunk was not eager.
}

TEST_F(AcceptorTest, APeerBeyondTheAllowanceIsRefusedWithBothNumbers) {
  Peer& peer = greet();
  peer.chunk({true, 100'000, 0, 0, 100'000});
  peer.chunk({true, 31'072, 1, 0, 31'072});  // 131072: all of it.
  EXPECT_TRUE(failures.empty());
  peer.chunk({true, 1, 2, 0, 1});
  const auto refusal = peer.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kAllowance);
  EXPECT_EQ(refusal->ours, 131'072U);
  EXPECT_EQ(refusal->theirs, 131'073U);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

TEST_F(AcceptorTest, ATruncatedMessageTellsBothSizes) {
  for (const bool posted_first : {true, false}) {
    failures.clear();
    Peer& peer = greet(hello(posted_first ? 1 : 2));
    std::vector<std::byte> buffer(100, std::byte{0xee});
    if (posted_first) sessions.back()->post(now, std::span(buffer), 1);
    peer.chunk({true, 101, 0, 0, 101});
    if (!posted_first) sessions.back()->post(now, std::span(buffer), 1);
    const auto refusal = peer.refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, Reason::kTruncated);
    EXPECT_EQ(refusal->ours, 100U);
    EXPECT_EQ(refusal->theirs, 101U);
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kTruncated);
    EXPECT_EQ(sessions.back()->failure_detail().theirs, 101U);
    EXPECT_EQ(buffer, std::vector<std::byte>(100, std::byte{0xee}));
    // The peer gets time to read it, its bytes go nowhere, and then the stream ends.
    EXPECT_FALSE(peer.stream.is_left());
    peer.chunk({true, 5000, 1, 0, 5000});
    acceptor->on_timers(now += std::chrono::seconds(2));
    EXPECT_TRUE(peer.stream.closed);
  }
}

TEST_F(AcceptorTest, NothingIsWrittenTwice) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(3 * 4096, std::byte{0xee});
  sessions[0]->post(now, std::span(buffer), 1);
  peer.chunk({false, 4096, 0, 4096, 12'288}, std::byte{1});
  peer.chunk({false, 12'288, 0, 0, 12'288}, std::byte{2});  // Its middle unit is held already.
  EXPECT_EQ(buffer[4095], std::byte{2});
  EXPECT_EQ(buffer[4096], std::byte{1});
  EXPECT_EQ(buffer[8191], std::byte{1});
  EXPECT_EQ(buffer[8192], std::byte{2});
  EXPECT_EQ(done, (Done{{1, 12'288}}));
  buffer.assign(buffer.size(), std::byte{0xdd});
  peer.chunk({false, 12'288, 0, 0, 12'288}, std::byte{3});  // Of a finished message.
  EXPECT_EQ(buffer, std::vector<std::byte>(buffer.size(), std::byte{0xdd}));
  EXPECT_EQ(done.size(), 1U);
  EXPECT_TRUE(failures.empty());
}

TEST_F(AcceptorTest, MessagesMayFinishOutOfOrderButAreCountedInOrder) {
  Peer& peer = greet();
  std::vector<std::byte> a(10);
  std::vector<std::byte> b(20);
  sessions[0]->post(now, std::span(a), 1);
  sessions[0]->post(now, std::span(b), 2);
  peer.chunk({false, 20, 1, 0, 20});
  EXPECT_EQ(done, (Done{{2, 20}}));
  acceptor->flush(now);
  EXPECT_EQ(*credit_of(peer), (Credit{2, 0, 0}));
  peer.chunk({false, 10, 0, 0, 10});
  EXPECT_EQ(done, (Done{{2, 20}, {1, 10}}));
  acceptor->flush(now);
  EXPECT_EQ(*credit_of(peer), (Credit{2, 0, 2}));
}

TEST_F(AcceptorTest, EmptyMessagesCompletePostedOrNot) {
  Peer& peer = greet();
  peer.chunk({true, 0, 0, 0, 0});
  sessions[0]->post(now, {}, 7);
  EXPECT_EQ(done, (Done{{7, 0}}));
  std::vector<std::byte> buffer(8);
  sessions[0]->post(now, std::span(buffer), 8);
  peer.chunk({false, 0, 1, 0, 0});
  EXPECT_EQ(done, (Done{{7, 0}, {8, 0}}));
}

struct Breach {
  const char* name;
  std::vector<Chunk> chunks;
};
class BreachTest : public AcceptorTest, public testing::WithParamInterface<Breach> {};

TEST_P(BreachTest, FailsTheSession) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(100'000);
  sessions[0]->post(now, std::span(buffer), 1);
  for (const Chunk& chunk : GetParam().chunks) {
    EXPECT_TRUE(failures.empty());
    peer.chunk(chunk);
  }
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
  EXPECT_EQ(peer.reason(), Reason::kProtocol);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, BreachTest,
    testing::Values(Breach{"plain_without_buffer", {{false, 8, 1, 0, 8}}},
                    Breach{"outside_the_window", {{true, 8, 32, 0, 8}}},
                    Breach{"far_outside", {{true, 8, ~std::uint64_t{0}, 0, 8}}},
                    Breach{"sizes_differ",
                           {{false, 4096, 0, 0, 8192}, {false, 4096, 0, 4096, 9000}}},
                    Breach{"unaligned", {{false, 100, 0, 100, 8192}}}),
    [](const auto& test) { return test.param.name; });

// --- Credit ------------------------------------------------------------------------------------

TEST_F(AcceptorTest, APostTheSenderMayWaitForIsToldAtOnceOthersOncePerBurst) {
  Peer& peer = greet();
  static_cast<void>(peer.stream.records());
  std::vector<std::byte> buffer(8);
  sessions[0]->post(now, std::span(buffer), 1);
  EXPECT_EQ(credit_of(peer), (Credit{1, 0, 0}));
  sessions[0]->post(now, std::span(buffer), 2);
  sessions[0]->post(now, std::span(buffer), 3);
  EXPECT_EQ(credit_of(peer), std::nullopt);
  peer.chunk({false, 8, 0, 0, 8});
  EXPECT_EQ(credit_of(peer), std::nullopt);
  acceptor->flush(now);
  EXPECT_EQ(credit_of(peer), (Credit{3, 0, 1}));
  acceptor->flush(now);
  EXPECT_EQ(credit_of(peer), std::nullopt);
}

TEST_F(AcceptorTest, CreditGoesWhereItIsHeardAndIsNeverLost) {
  Peer& zero = greet();
  Peer& one = greet(hello(5, 1, 1));
  static_cast<void>(zero.stream.records());
  static_cast<void>(one.stream.records());
  std::vector<std::byte> buffer(8);
  one.chunk({true, 1, 0, 0, 1});
  sessions[0]->post(now, std::span(buffer), 1);
  EXPECT_EQ(credit_of(one), (Credit{1, 1, 1}));  // The last flow that was heard.
  one.stream.full = true;
  sessions[0]->post(now, std::span(buffer), 2);
  EXPECT_EQ(credit_of(zero), (Credit{2, 1, 1}));
  zero.stream.full = true;
  sessions[0]->post(now, std::span(buffer), 3);
  acceptor->flush(now);
  EXPECT_EQ(credit_of(zero), std::nullopt);
  zero.stream.full = false;
  zero.events->on_acked(now, 100);
  acceptor->flush(now);
  EXPECT_EQ(credit_of(zero), (Credit{3, 1, 1}));
  // Whatever died with a flow is said again on another.
  one.stream.full = false;
  zero.events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  acceptor->flush(now);
  EXPECT_EQ(credit_of(one), (Credit{3, 1, 1}));
}

// --- Ends --------------------------------------------------------------------------------------

TEST_F(AcceptorTest, ClosesInOrderFromEitherSide) {
  Peer& peer = greet();
  peer.say(Bye{0});
  peer.events->on_closed(now);
  EXPECT_TRUE(peer.stream.closed);
  EXPECT_TRUE(failures.empty());
  sessions[0]->close(now);
  EXPECT_EQ(closed, 1);

  Peer& other = greet(hello(6));
  static_cast<void>(other.stream.records());
  sessions[1]->close(now);
  const auto records = other.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(decode_bye(records[0].body)->messages, 0U);
  EXPECT_TRUE(other.stream.closed);
  EXPECT_EQ(closed, 2);
}

TEST_F(AcceptorTest, MessagesHeldAtTheByeCanStillBeReceived) {
  Peer& peer = greet();
  peer.chunk({true, 5, 0, 0, 5}, std::byte{9});
  peer.say(Bye{1});
  peer.events->on_closed(now);
  std::vector<std::byte> buffer(5);
  sessions[0]->post(now, std::span(buffer), 1);
  EXPECT_EQ(done, (Done{{1, 5}}));
  EXPECT_EQ(buffer[4], std::byte{9});
  sessions[0]->post(now, std::span(buffer), 2);  // But no more than there were.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

TEST_F(AcceptorTest, ReceivesOutstandingAtTheByeFail) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  sessions[0]->post(now, std::span(buffer), 1);
  peer.say(Bye{0});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

TEST_F(AcceptorTest, FinWithoutByeIsADeadFlow) {
  Peer& peer = greet();
  peer.events->on_closed(now);
  EXPECT_TRUE(peer.stream.aborted);
  EXPECT_TRUE(failures.empty());
  EXPECT_TRUE(accept_of(greet(hello(5, 2))));
}

TEST_F(AcceptorTest, SessionsMayOutliveTheirAcceptor) {
  Peer& peer = greet();
  acceptor.reset();
  EXPECT_TRUE(peer.stream.aborted);
  sessions[0]->close(now);
  sessions.clear();
}

}  // namespace
}  // namespace ztcp::msg
