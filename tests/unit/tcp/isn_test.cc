// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/isn.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr Endpoint kLocal{Ipv4Address{0x0a000001}, 40000};
constexpr Endpoint kRemote{Ipv4Address{0x0a000002}, 7471};

// RFC 6528 section 3: ISN = M + F(4-tuple, secret), M a clock.
TEST(Isn, FollowsTheClockForOneConnectionAndASecretBetweenOthers) {
  const Unguessable numbers({1, 2});
  const TimePoint now{1h};
  const SeqNum first = numbers.initial_sequence(now, kLocal, kRemote);
  EXPECT_EQ(bytes_between(first, numbers.initial_sequence(now + 4096us, kLocal, kRemote)), 1000U);
  Endpoint other = kLocal;
  ++other.port;
  EXPECT_NE(numbers.initial_sequence(now, other, kRemote), first);
  EXPECT_NE(Unguessable({1, 3}).initial_sequence(now, kLocal, kRemote), first);
}

TEST(Isn, PortsDifferFromCallToCall) {
  Unguessable numbers({1, 2});
  EXPECT_NE(numbers.port_offset(kLocal, kRemote), numbers.port_offset(kLocal, kRemote));
}

}  // namespace
}  // namespace ztcp::tcp
