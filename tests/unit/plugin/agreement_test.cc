// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/agreement.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/transport.h"

namespace ztcp::plugin {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// One NIC that is exposed eight times.
Agreement shown_often() {
  return {.tuner = static_cast<std::uint8_t>(TransportKind::kSockets),
          .tuner_rule = 3,
          .max_receives = 8,
          .channels_per_peer = 0,
          .nics = 1,
          .devices = 8,
          .speed_mbps = 100'000};
}

Agreement shown_once() {
  Agreement agreement = shown_often();
  agreement.devices = agreement.nics;
  return agreement;
}

// The differences between rank `ours` on host a and rank `theirs` on host b.
std::string between(const Agreement& ours, const Agreement& theirs) {
  return differences(ours, {"a"}, theirs, {"b"});
}

template <class Change>
Agreement changed(Agreement agreement, Change&& change) {
  change(agreement);
  return agreement;
}

TEST(Agreement, EncodingKeepsAllValues) {
  const Agreement agreement{.tuner = 1,
                            .tuner_rule = 2,
                            .max_receives = 3,
                            .channels_per_peer = 4,
                            .nics = 0x0506,
                            .devices = 0x0708,
                            .max_message_bytes = 0x090a0b0c,
                            .speed_mbps = 0x0d0e0f10};
  std::array<std::byte, kAgreementBytes> bytes{};
  encode(agreement, bytes);
  EXPECT_EQ(decode_agreement(bytes), agreement);
  EXPECT_EQ(bytes[4], std::byte{6}) << "little-endian on every host";
  EXPECT_EQ(bytes[15], std::byte{0x0d});
}

TEST(Agreement, EqualRanksAgree) {
  EXPECT_THAT(between(shown_often(), shown_often()), IsEmpty());
  EXPECT_THAT(between(shown_once(), shown_once()), IsEmpty());
}

TEST(Agreement, NamesTheTunerOfOneRankOnly) {
  const Agreement off = changed(shown_often(), [](Agreement& a) { a.tuner = a.tuner_rule = 0; });
  const char* const text =
      "this rank (host a) chooses NCCL's channels by size (rule 3 of kernel sockets), the peer "
      "(host b) leaves them to NCCL, and ranks that differ in this wait for each other for ever: "
      "export ZTCP_TUNER=off on all hosts";
  EXPECT_EQ(between(shown_often(), off), text);
  EXPECT_THAT(between(off, shown_often()),
              HasSubstr("the peer (host b) chooses NCCL's channels by size (rule 3 of kernel "
                        "sockets), this rank (host a) leaves them to NCCL"));
}

TEST(Agreement, NamesBothRulesOfTheTuner) {
  const Agreement other = changed(shown_often(), [](Agreement& a) { a.tuner_rule = 4; });
  const std::string text = between(shown_often(), other);
  EXPECT_THAT(text, HasSubstr("(rule 3 of kernel sockets)"));
  EXPECT_THAT(text, HasSubstr("(rule 4 of kernel sockets)"));
  EXPECT_THAT(text, HasSubstr("install the same ztcp on all hosts, or export ZTCP_TUNER=off"));
}

TEST(Agreement, NamesTheTransportsOfTheTunersRules) {
  const Agreement other = changed(shown_often(), [](Agreement& a) {
    a.tuner = static_cast<std::uint8_t>(TransportKind::kUstack);
  });
  const std::string text = between(shown_often(), other);
  EXPECT_THAT(text, HasSubstr("(rule 3 of userspace TCP)"));
  EXPECT_THAT(text, HasSubstr("for ever: export ZTCP_TUNER=off on all hosts"));
}

TEST(Agreement, NamesBothNumbersOfDevices) {
  const Agreement fewer = changed(shown_often(), [](Agreement& a) { a.devices = 4; });
  EXPECT_EQ(between(shown_often(), fewer),
            "the peer (host b) shows NCCL 4 devices for 1 NIC, this rank (host a) 8 devices for 1 "
            "NIC, and NCCL cuts messages by their number: set the same nccl_devices for each NIC "
            "in every host's ztcp.conf; where there is none, name as many interfaces on all hosts "
            "(NCCL_SOCKET_IFNAME)");
  EXPECT_THAT(between(shown_once(), shown_often()), HasSubstr("shows NCCL 8 devices for 1 NIC"));
}

// NCCL weighs NICs by its topology: 4 for 4 GPUs and 8 for 8 are equal for each GPU.
TEST(Agreement, DifferentNumbersOfNicsShownOnceAgree) {
  const Agreement more = changed(shown_once(), [](Agreement& a) { a.nics = a.devices = 8; });
  EXPECT_THAT(between(shown_once(), more), IsEmpty());
}

TEST(Agreement, EqualNumbersOfDevicesAgree) {
  const Agreement two = changed(shown_often(), [](Agreement& a) { a.nics = 2; });
  EXPECT_THAT(between(shown_often(), two), IsEmpty());
}

TEST(Agreement, NamesBothValuesOfNcclsVariable) {
  const Agreement four = changed(shown_often(), [](Agreement& a) { a.channels_per_peer = 4; });
  const Agreement eight = changed(shown_often(), [](Agreement& a) { a.channels_per_peer = 8; });
  EXPECT_THAT(between(shown_often(), four),
              HasSubstr("NCCL_NCHANNELS_PER_NET_PEER is 4 at the peer (host b) and not set at this "
                        "rank (host a)"));
  EXPECT_THAT(between(eight, four),
              HasSubstr("is 4 at the peer (host b) and 8 at this rank (host a)"));
}

TEST(Agreement, NcclsVariableReplacesDevicesAndSpeed) {
  const Agreement ours = changed(shown_often(), [](Agreement& a) { a.channels_per_peer = 4; });
  const Agreement theirs = changed(ours, [](Agreement& a) {
    a.devices = 2;
    a.speed_mbps = 7;
  });
  EXPECT_THAT(between(ours, theirs), IsEmpty());
}

// Four of eight devices of 400 Gb/s fill a GPU's link of 24 GB/s; of 200 Gb/s all eight are needed.
TEST(Agreement, NamesBothSpeedsWhereNcclCountsByThem) {
  const auto often_at = [](std::uint32_t speed_mbps) {
    return changed(shown_often(), [&](Agreement& a) { a.speed_mbps = speed_mbps; });
  };
  const std::string text = between(often_at(400'000), often_at(200'000));
  EXPECT_THAT(text, HasSubstr("the 8 devices of the peer (host b) have 200000 Mb/s together, those "
                              "of this rank (host a) 400000"));
  EXPECT_THAT(text, HasSubstr("set the same speed_mbps"));
  EXPECT_THAT(between(often_at(10'000), often_at(25'000)), IsEmpty()) << "no link is that slow";
  EXPECT_THAT(between(often_at(100'000), often_at(200'000)), IsEmpty()) << "no GPU's is any more";
  EXPECT_THAT(between(often_at(0), often_at(1)), IsEmpty());
  const auto once_at = [](std::uint32_t speed_mbps) {
    return changed(shown_once(), [&](Agreement& a) { a.speed_mbps = speed_mbps; });
  };
  EXPECT_THAT(between(once_at(400'000), once_at(100'000)), IsEmpty()) << "one is one";
}

TEST(Agreement, NamesBothLimits) {
  const Agreement other = changed(shown_often(), [](Agreement& a) {
    a.max_receives = 1;
    a.max_message_bytes = 1 << 20;
  });
  EXPECT_EQ(between(shown_often(), other),
            "the peer (host b) allows 1 buffers of one grouped receive, this rank (host a) 8: "
            "install the same ztcp on all hosts; the peer (host b) allows 1048576 bytes of one "
            "message, this rank (host a) 1073741824: install the same ztcp on all hosts");
}

TEST(Agreement, NamesAllDifferencesInOneSentence) {
  const Agreement other = changed(shown_once(), [](Agreement& a) { a.tuner = a.tuner_rule = 0; });
  const std::string text = between(shown_often(), other);
  EXPECT_THAT(text, HasSubstr("ZTCP_TUNER"));
  EXPECT_THAT(text, HasSubstr("; the peer (host b) shows NCCL 1 device for 1 NIC"));
}

TEST(Agreement, WorksWithoutHostNames) {
  EXPECT_THAT(differences(shown_often(), {}, shown_once(), {}),
              HasSubstr("the peer shows NCCL 1 device for 1 NIC, this rank 8 devices"));
}

// A damaged handle's values are compared and printed.
TEST(Agreement, TakesAnyBytes) {
  for (const int value : {0x00, 0x01, 0x7f, 0xff}) {
    std::array<std::byte, kAgreementBytes> bytes{};
    bytes.fill(static_cast<std::byte>(value));
    const Agreement agreement = decode_agreement(bytes);
    EXPECT_THAT(between(shown_often(), agreement), Not(IsEmpty()));
    EXPECT_THAT(between(agreement, agreement), IsEmpty());
  }
}

}  // namespace
}  // namespace ztcp::plugin
