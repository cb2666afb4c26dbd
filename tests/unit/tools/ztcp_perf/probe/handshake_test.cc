// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::probe {
namespace {

using testing::HasSubstr;

constexpr const char* kSecret = "0123456789abcdef";

class ProbeHandshake : public testing::Test {
 protected:
  Json answer(const std::string& secret, int rank = 2, int ranks = 4) {
    return answer_challenge(line_, secret, rank, ranks, "gpu2", nonce_);
  }
  std::string refusal(const Json& json) {
    return judge_answer(json, kSecret, 4, challenge_).refusal;
  }

  const Nonce challenge_{std::byte{7}};
  const Nonce nonce_{std::byte{9}};
  const Json line_ = make_challenge(challenge_);
};

TEST_F(ProbeHandshake, ARankWithTheSecretIsAdmitted) {
  const Caller caller = judge_answer(answer(kSecret), kSecret, 4, challenge_);
  EXPECT_EQ(caller.refusal, "");
  EXPECT_EQ(caller.rank, 2);
  EXPECT_EQ(caller.host, "gpu2");
  EXPECT_NO_THROW(check_admission(caller.admission, kSecret, line_, nonce_));
}

TEST_F(ProbeHandshake, AnotherSecretIsRefused) {
  const Caller caller = judge_answer(answer("another secret!!"), kSecret, 4, challenge_);
  EXPECT_THAT(caller.refusal, HasSubstr("rank 2 (gpu2) and rank 0 have different secrets"));
  EXPECT_THROW(check_admission(caller.admission, kSecret, line_, nonce_), Failure);
}

TEST_F(ProbeHandshake, AProofHoldsForItsChallengeAndItsTextsOnly) {
  const Json good = answer(kSecret);
  EXPECT_NE(judge_answer(good, kSecret, 4, Nonce{std::byte{8}}).refusal, "");
  for (const char* name : {"rank", "ranks"}) {
    Json changed = good;
    changed[name] = 3;
    EXPECT_THAT(refusal(changed), HasSubstr("different secrets")) << name;
  }
  Json changed = good;
  changed["host"] = "gpu3";
  EXPECT_THAT(refusal(changed), HasSubstr("different secrets"));
}

TEST_F(ProbeHandshake, ARankOfAnotherRunIsRefused) {
  EXPECT_THAT(refusal(answer(kSecret, 2, 5)), HasSubstr("does not belong to 4 ranks"));
  EXPECT_THAT(refusal(answer(kSecret, 4)), HasSubstr("does not belong to 4 ranks"));
  EXPECT_THAT(refusal(answer(kSecret, 0)), HasSubstr("does not belong to 4 ranks"));
}

TEST_F(ProbeHandshake, MalformedLinesAreRefused) {
  EXPECT_NE(refusal(Json::object()), "");
  Json changed = answer(kSecret);
  changed["proof"] = "xyz";
  EXPECT_NE(refusal(changed), "");
  EXPECT_THROW(answer_challenge(Json::object(), kSecret, 1, 2, "h", nonce_), Failure);
  EXPECT_THROW(check_admission({{"admit", "00"}}, kSecret, line_, nonce_), Failure);
}

}  // namespace
}  // namespace ztcp::perf::probe
