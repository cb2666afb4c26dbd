// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/exchange.h"

#include <cstring>

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

EndFacts facts(std::uint8_t queue_pairs) {
  EndFacts out;
  out.rails = 2;
  for (RailFacts& on : out.on) {
    on.number = static_cast<std::uint8_t>(&on - out.on.data());
    on.queue_pairs = queue_pairs;
    on.mtu = 5;
    on.device[0] = 'm';
  }
  return out;
}

template <class Record>
void feed(RecordReader& reader, const Record& record, std::size_t at_once) {
  const auto bytes = std::as_bytes(std::span(&record, 1));
  for (std::size_t at = 0; at < bytes.size();) {
    const auto room = reader.room();
    ASSERT_FALSE(room.empty());
    const std::size_t n = std::min({at_once, room.size(), bytes.size() - at});
    std::memcpy(room.data(), bytes.data() + at, n);
    reader.add(n);
    at += n;
    const auto complete = reader.is_complete();
    ASSERT_TRUE(complete);
    EXPECT_EQ(*complete, at == bytes.size());
  }
}

TEST(Exchange, RecordsComeInAnyPieces) {
  for (const std::size_t at_once : std::initializer_list<std::size_t>{1, 7, 200, 2000}) {
    RecordReader reader;
    const Hello hello = make_hello({std::byte{1}}, {std::byte{2}}, facts(3));
    feed(reader, hello, at_once);
    EXPECT_EQ(reader.kind(), RecordKind::kHello);
    const auto taken = reader.take<Hello>();
    ASSERT_TRUE(taken);
    EXPECT_EQ(std::memcmp(&*taken, &hello, sizeof hello), 0);
    feed(reader, make_close_record(3, "why"), at_once);
    EXPECT_EQ(reader.kind(), RecordKind::kClose);
    EXPECT_FALSE(reader.take<Ready>()) << "another size";
    EXPECT_TRUE(reader.take<CloseRecord>());
  }
}

TEST(Exchange, ForeignBytesAndOtherVersionsAreRefused) {
  for (const bool is_version : {false, true}) {
    Hello hello = make_hello({}, {}, facts(1));
    (is_version ? reinterpret_cast<std::uint8_t&>(hello.header.version)
                : reinterpret_cast<std::uint8_t&>(hello.header.magic)) ^= 0x40;
    RecordReader reader;
    std::memcpy(reader.room().data(), &hello, sizeof hello.header);
    reader.add(sizeof hello.header);
    const auto complete = reader.is_complete();
    ASSERT_FALSE(complete);
    EXPECT_EQ(complete.error().code, Errc::kProtocol);
  }
}

TEST(Exchange, ProofsAreOfThisKeyAndThisConversation) {
  const msg::ClusterKey key{std::byte{9}};
  const Hello hello = make_hello({}, {std::byte{1}}, facts(1));
  const Answer answer = make_answer(key, hello, {std::byte{2}}, facts(1));
  const Ready ready = make_ready(key, hello, answer);
  EXPECT_TRUE(is_proven(key, hello, answer));
  EXPECT_TRUE(is_proven(key, hello, answer, ready));
  EXPECT_FALSE(is_proven({}, hello, answer));
  EXPECT_FALSE(is_proven({}, hello, answer, ready));
  const Hello other = make_hello({}, {std::byte{3}}, facts(1));
  EXPECT_FALSE(is_proven(key, other, answer)) << "a recorded answer";
  EXPECT_FALSE(is_proven(key, other, answer, ready));
  Answer changed = answer;
  changed.facts.on[1].numbers[0] ^= 1;
  EXPECT_FALSE(is_proven(key, hello, changed));
  Ready echoed;
  echoed.proof = answer.proof;
  EXPECT_FALSE(is_proven(key, hello, answer, echoed)) << "the other side's proof";
}

TEST(Exchange, AProofThatDoesNotFitIsBlamedOnAnotherKeyOnlyWhereAKeyIsSet) {
  for (const msg::ClusterKey& key : {msg::ClusterKey{}, msg::ClusterKey{std::byte{9}}}) {
    const std::string text(unproven_text(key));
    EXPECT_EQ(text.starts_with("another cluster_key"), key != msg::ClusterKey{});
    EXPECT_EQ(text.starts_with("bytes of the exchange were changed"), key == msg::ClusterKey{});
    EXPECT_EQ(text_of(make_close_record(1, text)), text) << "cut off";
  }
}

TEST(Exchange, EndsThatDoNotFitAreNamed) {
  EndFacts ours = facts(1);
  EndFacts theirs = facts(2);
  EXPECT_EQ(mismatch(ours, theirs), "");
  theirs.on[1].network = Network::kInfiniBand;
  EXPECT_EQ(mismatch(ours, theirs).substr(0, 45), "Ethernet here, InfiniBand at the peer (m): gi");
  EXPECT_NE(mismatch(ours, facts(0)), "");
  EXPECT_NE(mismatch(ours, facts(9)), "");
  ours.rails = 1;
  EXPECT_EQ(mismatch(ours, theirs), "") << "the second rail is none of both";
  theirs.on[0].key = kMaxRails;
  EXPECT_NE(mismatch(ours, theirs), "");
  theirs.on[0].is_tcp = 1;
  EXPECT_EQ(mismatch(ours, theirs).substr(0, 72),
            "no rail in common: RDMA 1 here, TCP 1, RDMA 2 at the peer; merge NICs of");
  ours.on[0].is_tcp = 1;
  theirs.on[0].key = 0;
  EXPECT_EQ(mismatch(ours, theirs), "");
  theirs.rails = 0;
  EXPECT_NE(mismatch(ours, theirs), "");
  theirs.rails = 9;
  EXPECT_NE(mismatch(ours, theirs), "");
}

TEST(Exchange, CloseRecord_TextIsFitForALogLine) {
  CloseRecord record = make_close_record(1, std::string(500, 'x'));
  EXPECT_EQ(text_of(record).size(), record.text.size() - 1);
  record.text[0] = '\n';
  record.text[1] = '\0';
  EXPECT_EQ(text_of(record), "?");
}

TEST(Exchange, RoceOfOneVersionIsNotJoinedToTheOther) {
  RailFacts ours = facts(1).on[0];
  RailFacts theirs = ours;
  ours.gid_type = RailFacts::kRoceV2;
  theirs.gid_type = RailFacts::kRoceV1;
  EXPECT_EQ(mismatch(ours, theirs),
            "RoCE v2 here, RoCE v1 at the peer (m): name GIDs of one version by gid_index in both "
            "hosts' ztcp.conf, or by NCCL_IB_GID_INDEX");
  theirs.gid_type = 0;
  EXPECT_EQ(mismatch(ours, theirs), "") << "which is not known";
  theirs.gid_type = RailFacts::kRoceV2;
  EXPECT_EQ(mismatch(ours, theirs), "");
}

}  // namespace
}  // namespace ztcp::verbs
