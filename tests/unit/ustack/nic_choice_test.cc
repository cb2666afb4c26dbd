// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_choice.h"

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

using Indices = std::vector<std::size_t>;

config::Nic nic(std::string gpu_pci, std::string gpu_uuid = {}) {
  config::Nic out;
  out.gpu_pci = std::move(gpu_pci);
  out.gpu_uuid = std::move(gpu_uuid);
  return out;
}

TEST(ClaimCandidates, PairedByPciAddressInEitherCase) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:3B:00.0")};
  EXPECT_EQ(claim_candidates(nics, {.pci = "0000:3b:00.0"}), Indices{1});
}

TEST(ClaimCandidates, PairedByUuid) {
  const std::vector nics = {nic("", "GPU-aa"), nic("", "GPU-bb")};
  EXPECT_EQ(claim_candidates(nics, {.uuid = "gpu-bb"}), Indices{1});
}

TEST(ClaimCandidates, PairingBeatsLocalRank) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:3b:00.0")};
  EXPECT_EQ(claim_candidates(nics, {.pci = "0000:3b:00.0", .local_rank = 0}), Indices{1});
}

TEST(ClaimCandidates, NeverTakesTheNicOfAnotherGpu) {
  const std::vector nics = {nic("0000:17:00.0"), nic(""), nic("0000:3b:00.0")};
  EXPECT_EQ(claim_candidates(nics, {.pci = "0000:99:00.0"}), Indices{1});
}

TEST(ClaimCandidates, LocalRankWithoutGpu) {
  const std::vector nics = {nic(""), nic(""), nic("")};
  EXPECT_EQ(claim_candidates(nics, {.local_rank = 2}), Indices{2});
}

TEST(ClaimCandidates, AnyNicWhenNothingIsKnown) {
  const std::vector nics = {nic("0000:17:00.0"), nic("")};
  EXPECT_EQ(claim_candidates(nics, {}), (Indices{0, 1}));
}

TEST(HasRoute, OnLinkOrThroughAGateway) {
  config::Nic n;
  n.address = *parse_ipv4_prefix("10.77.1.10/24");
  EXPECT_TRUE(has_route(n, *parse_ipv4("10.77.1.200")));
  EXPECT_FALSE(has_route(n, *parse_ipv4("10.77.2.1")));
  n.gateway = *parse_ipv4("10.77.1.1");
  EXPECT_TRUE(has_route(n, *parse_ipv4("10.77.2.1")));
}

TEST(CanStandIn, OnlyEqualNics) {
  config::Nic a;
  config::Nic b;
  EXPECT_TRUE(can_stand_in(a, b));
  b.speed_mbps = 25000;
  EXPECT_FALSE(can_stand_in(a, b));
  b.speed_mbps = a.speed_mbps;
  b.driver = config::NicDriver::kPci;
  EXPECT_FALSE(can_stand_in(a, b));
}

}  // namespace
}  // namespace ztcp::ustack
