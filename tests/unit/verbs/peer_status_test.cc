// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/peer_status.h"

#include <cerrno>
#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Advice = PeerStatus::Advice;

// The last path of an open connection, ended by the peer's kernel without a word.
PathEnd closed() {
  return {.error = {Errc::kPeerClosed, 0, "the exchange"},
          .is_joined = true,
          .silence = milliseconds(10),
          .user_timeout = seconds(20),
          .may_redial = true,
          .is_last = true};
}

PathEnd reset() {
  PathEnd out = closed();
  out.error.sys_errno = ECONNRESET;
  return out;
}

TEST(PathEnds, LastPathThatThePeerClosedIsItsEnd) {
  EXPECT_EQ(judge(closed()), PathVerdict::kDied);
}

TEST(PathEnds, PathBesideOthersSaysNothing) {
  PathEnd ended = closed();
  ended.is_last = false;
  EXPECT_EQ(judge(ended), PathVerdict::kOthersServe);
  ended.error.code = Errc::kRefused;
  EXPECT_EQ(judge(ended), PathVerdict::kOthersServe);
}

TEST(PathEnds, ResetIsFollowedByARedialWhereTheSenderCanDial) {
  EXPECT_EQ(judge(reset()), PathVerdict::kAwaitRedial);
  PathEnd ended = reset();
  ended.error.sys_errno = ECONNABORTED;
  EXPECT_EQ(judge(ended), PathVerdict::kAwaitRedial);
  ended.may_redial = false;
  EXPECT_EQ(judge(ended), PathVerdict::kDied);
}

TEST(PathEnds, ResetAfterALongSilenceProvesNothing) {
  PathEnd ended = reset();
  ended.silence = seconds(15);
  EXPECT_EQ(judge(ended), PathVerdict::kSilent);
  ended.silence = milliseconds(14'999);
  EXPECT_EQ(judge(ended), PathVerdict::kAwaitRedial);
}

TEST(PathEnds, TimeoutAndCutPathProveNothing) {
  PathEnd ended = closed();
  ended.error = {Errc::kTimedOut, ETIMEDOUT, "the exchange"};
  EXPECT_EQ(judge(ended), PathVerdict::kSilent);
  ended = closed();
  ended.is_cut = true;
  EXPECT_EQ(judge(ended), PathVerdict::kSilent);
}

// A full listener drops pending connections; nobody listens for a dead process.
TEST(PathEnds, PathThatIsNotJoinedIsTheEndOnlyIfRefused) {
  PathEnd ended = closed();
  ended.is_joined = false;
  EXPECT_EQ(judge(ended), PathVerdict::kSilent);
  ended.error = {Errc::kRefused, ECONNREFUSED, "connect"};
  EXPECT_EQ(judge(ended), PathVerdict::kDied);
  ended.error = {Errc::kProtocol, 0, "the exchange"};
  EXPECT_EQ(judge(ended), PathVerdict::kDied);
}

TEST(PeerStatus, FirstFinalEventIsKept) {
  PeerStatus peer;
  EXPECT_FALSE(peer.has_ended());
  peer.set_silent(true);
  EXPECT_EQ(peer.event(), PeerEvent::kSilent);
  EXPECT_FALSE(peer.has_ended());
  peer.report(PeerEvent::kGivenUp, Errc::kTruncated, "why");
  peer.report(PeerEvent::kDied, Errc::kPeerClosed, "later");
  peer.set_silent(true);
  EXPECT_EQ(peer.event(), PeerEvent::kGivenUp);
  EXPECT_EQ(peer.code(), Errc::kTruncated);
  EXPECT_EQ(peer.text(), "why");
  EXPECT_STREQ(peer.subject(), "the peer");
}

TEST(PeerStatus, SilenceEndsWhenThePeerIsHeardAgain) {
  PeerStatus peer;
  peer.set_silent(true);
  EXPECT_EQ(peer.advise(true, false, TimePoint()), Advice::kProbe);
  peer.set_silent(false);
  EXPECT_EQ(peer.event(), PeerEvent::kNone);
  EXPECT_EQ(peer.advise(true, false, TimePoint()), Advice::kContinue);
}

TEST(PeerStatus, WorkOfTheNicMayEndForAWhileAfterThePeerDied) {
  const TimePoint seen(seconds(5));
  PeerStatus peer;
  peer.report(PeerEvent::kDied, Errc::kPeerClosed, "why");
  EXPECT_EQ(peer.advise(true, false, seen), Advice::kContinue);
  EXPECT_EQ(peer.advise(true, false, seen + milliseconds(49)), Advice::kContinue);
  EXPECT_EQ(peer.advise(true, false, seen + milliseconds(50)), Advice::kFail);
}

TEST(PeerStatus, PeerThatClosedFailsNobodyWhoDoesNotWaitForIt) {
  const TimePoint seen(seconds(5));
  PeerStatus peer;
  peer.report(PeerEvent::kClosed, Errc::kPeerClosed, "");
  EXPECT_EQ(peer.advise(false, false, seen), Advice::kContinue);
  EXPECT_EQ(peer.advise(false, false, seen + seconds(60)), Advice::kContinue);
  EXPECT_EQ(peer.text(), "it has closed the connection");
}

TEST(PeerStatus, BytesOfIwarpMayArriveLate) {
  const TimePoint seen(seconds(5));
  PeerStatus peer;
  peer.report(PeerEvent::kClosed, Errc::kPeerClosed, "");
  EXPECT_EQ(peer.advise(true, true, seen), Advice::kContinue);
  EXPECT_EQ(peer.advise(true, true, seen + milliseconds(9'999)), Advice::kContinue);
  EXPECT_EQ(peer.advise(true, true, seen + seconds(10)), Advice::kFail);
}

TEST(PeerStatus, LostDeviceFailsAtOnce) {
  PeerStatus peer;
  peer.report(PeerEvent::kDeviceLost, Errc::kNoDevice, "it is gone");
  EXPECT_EQ(peer.advise(false, false, TimePoint()), Advice::kFail);
  EXPECT_STREQ(peer.subject(), "our device");
}

}  // namespace
}  // namespace ztcp::verbs
