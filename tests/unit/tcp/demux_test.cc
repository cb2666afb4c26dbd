// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/demux.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

TEST(Demux, TellsBothEndsOfAConnectionToItselfApart) {
  const Ipv4Address self{0x0a000001};
  EXPECT_NE(Demux::key({self, 40000}, 7471), Demux::key({self, 7471}, 40000));
}

TEST(Demux, BehavesLikeAMapUpToItsSize) {
  constexpr std::size_t kMax = 100;
  Demux demux(kMax, {0x1234, 0x5678});
  std::map<Demux::Key, std::uint32_t> model;
  std::mt19937 random(3);
  for (int step = 0; step < 200'000; ++step) {
    // Few keys, so that they collide.
    const IpAddress address(random() % 2, random() % 4);
    const Demux::Key key = Demux::key({address, 80}, static_cast<std::uint16_t>(random() % 32));
    const auto known = model.find(key);
    ASSERT_EQ(demux.find(key), known == model.end() ? Demux::kNone : known->second);
    if (known != model.end()) {
      demux.remove(key);
      model.erase(known);
    } else if (model.size() < kMax) {
      const auto value = static_cast<std::uint32_t>(random() % 1000);
      demux.insert(key, value);
      model[key] = value;
    }
    ASSERT_EQ(demux.size(), model.size());
  }
}

}  // namespace
}  // namespace ztcp::tcp
