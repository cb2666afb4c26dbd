// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_choice.h"

#include <gmock/gmock.h>
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

ProcessGpus driving(GpuIdentity gpu, int local_rank = -1) {
  return {.current = gpu, .driven = {gpu}, .local_rank = local_rank};
}

Indices order_of(const std::vector<config::Nic>& nics, const ProcessGpus& gpus,
                 std::size_t wanted = 0) {
  return choose_nics(nics, gpus, wanted).order;
}

TEST(ChooseNics, PairedByPciAddressInEitherCase) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:3B:00.0")};
  EXPECT_EQ(order_of(nics, driving({.pci = "0000:3b:00.0"})), Indices{1});
}

TEST(ChooseNics, PairedByUuid) {
  const std::vector nics = {nic("", "GPU-aa"), nic("", "GPU-bb")};
  EXPECT_EQ(order_of(nics, driving({.uuid = "gpu-bb"})), Indices{1});
}

TEST(ChooseNics, PairingBeatsLocalRank) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:3b:00.0")};
  EXPECT_EQ(order_of(nics, driving({.pci = "0000:3b:00.0"}, 0)), Indices{1});
}

TEST(ChooseNics, NeverTakesTheNicOfAnotherGpu) {
  const std::vector nics = {nic("0000:17:00.0"), nic(""), nic("0000:3b:00.0")};
  EXPECT_EQ(order_of(nics, driving({.pci = "0000:99:00.0"})), Indices{1});
}

TEST(ChooseNics, UsesTheLocalRankWithoutAGpu) {
  const std::vector nics = {nic(""), nic(""), nic("")};
  EXPECT_EQ(order_of(nics, {.local_rank = 2}), Indices{2});
}

TEST(ChooseNics, AnyNicWhenNothingIsKnown) {
  const std::vector nics = {nic("0000:17:00.0"), nic("")};
  EXPECT_EQ(order_of(nics, {}), (Indices{0, 1}));
  EXPECT_EQ(order_of(nics, {}, 1), (Indices{1, 0}));
  EXPECT_FALSE(choose_nics(nics, {}, 0).all_are_ours);
}

TEST(ChooseNics, RequestedNicOfTheGpuComesFirst) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:17:00.0"), nic("0000:3b:00.0")};
  const ProcessGpus gpus = driving({.pci = "0000:17:00.0"});
  EXPECT_EQ(order_of(nics, gpus, 0), (Indices{0, 1}));
  EXPECT_EQ(order_of(nics, gpus, 1), (Indices{1, 0}));
  EXPECT_TRUE(choose_nics(nics, gpus, 1).all_are_ours);
}

// On a flat PCI tree NCCL asks for all NICs on behalf of every GPU.
TEST(ChooseNics, RequestsForOtherNicsSpreadOverTheNicsOfTheGpu) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:17:00.0"), nic("0000:3b:00.0"),
                            nic("0000:3b:00.0")};
  const ProcessGpus gpus = driving({.pci = "0000:3b:00.0"});
  EXPECT_EQ(order_of(nics, gpus, 0).front(), 2U);
  EXPECT_EQ(order_of(nics, gpus, 1).front(), 3U);
}

TEST(ChooseNics, ASubstituteOfEqualSpeedComesFirst) {
  std::vector nics = {nic("0000:17:00.0"), nic("0000:3b:00.0"), nic("0000:3b:00.0")};
  nics[0].speed_mbps = 100000;
  nics[1].speed_mbps = 25000;
  nics[2].speed_mbps = 100000;
  EXPECT_EQ(order_of(nics, driving({.pci = "0000:3b:00.0"}), 0), (Indices{2, 1}));
}

// With CUDA before 12 the current GPU is not known; or NCCL asks for the NIC of another of the
// process's GPUs.
TEST(ChooseNics, RequestedNicOfAnyGpuOfTheProcessComesFirst) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:3b:00.0"), nic("0000:99:00.0")};
  ProcessGpus gpus{.driven = {{.pci = "0000:17:00.0"}, {.pci = "0000:3b:00.0"}}};
  EXPECT_EQ(order_of(nics, gpus, 0), (Indices{0, 1}));
  EXPECT_EQ(order_of(nics, gpus, 1), (Indices{1, 0}));
  gpus.current = gpus.driven[1];
  EXPECT_EQ(order_of(nics, gpus, 0), (Indices{0, 1}));
  EXPECT_EQ(order_of(nics, gpus, 2), (Indices{1, 0})) << "the current GPU's NIC first";
}

TEST(ExpectedNics, AreThoseOfGpusWithACommunicatorOrContext) {
  const std::vector nics = {nic("0000:17:00.0"), nic("0000:3b:00.0"), nic("0000:99:00.0")};
  ProcessGpus gpus = driving({.pci = "0000:3b:00.0"});
  EXPECT_EQ(expected_nics(nics, gpus), Indices{1});
  gpus.active = {{.pci = "0000:3b:00.0"}, {.pci = "0000:99:00.0"}};
  EXPECT_EQ(expected_nics(nics, gpus), (Indices{1, 2}));
  EXPECT_EQ(expected_nics(nics, {.local_rank = 4}), Indices{1});
  EXPECT_TRUE(expected_nics(nics, {}).empty());
}

ListenAddress at(const char* address, bool in_shared_memory = false) {
  return {
      .endpoint = {*parse_ip(address), 7471}, .watch = {}, .in_shared_memory = in_shared_memory};
}

TEST(Obstacle, IsAbsentInTheSubnetOrWithAGateway) {
  config::Nic n;
  n.address = *parse_ipv4_prefix("10.77.1.10/24");
  EXPECT_EQ(obstacle(n, at("10.77.1.200")), "");
  EXPECT_EQ(obstacle(n, at("10.77.2.1")), "has no route to 10.77.2.1");
  n.gateway = *parse_ipv4("10.77.1.1");
  EXPECT_EQ(obstacle(n, at("10.77.2.1")), "");
}

TEST(Obstacle, OfIpv6IsTheFamilyOrAMissingGateway) {
  config::Nic n;
  n.address = *parse_ip_prefix("fd00::1/64");
  EXPECT_EQ(obstacle(n, at("fd00::2")), "");
  EXPECT_EQ(obstacle(n, at("fe80::2")), "") << "on this link";
  EXPECT_EQ(obstacle(n, at("fd01::2")), "has no route to fd01::2");
  n.gateway = *parse_ip("fe80::1");
  EXPECT_EQ(obstacle(n, at("fd01::2")), "");
  EXPECT_EQ(obstacle(n, at("10.77.1.1")), "has no route to 10.77.1.1");
  n.address = *parse_ip_prefix("fe80::5/64");
  EXPECT_EQ(obstacle(n, at("fd01::2")), "has no route to fd01::2") << "no router forwards it";
}

TEST(Obstacle, IsUnknownBeforeARouterGaveTheAddress) {
  config::Nic n;
  n.address = config::kAutoAddress;
  EXPECT_EQ(obstacle(n, at("2001:db8::2")), "");
  EXPECT_EQ(obstacle(n, at("10.77.1.1")), "has no route to 10.77.1.1") << "it will be IPv6";
}

TEST(Obstacle, IsPresentBetweenSharedMemoryAndANetwork) {
  config::Nic n;
  n.address = *parse_ipv4_prefix("10.77.1.10/24");
  EXPECT_THAT(obstacle(n, at("10.77.1.200", true)), testing::HasSubstr("peer's is shared memory"));
  n.driver = config::NicDriver::kMemif;
  n.memif_role = config::MemifRole::kMesh;
  EXPECT_EQ(obstacle(n, at("10.77.1.200", true)), "");
  EXPECT_THAT(obstacle(n, at("10.77.1.200")), testing::HasSubstr("shared memory between"));
}

TEST(CanStandIn, NicOfTheSameDriverAndAnotherSpeed) {
  config::Nic a;
  config::Nic b;
  EXPECT_TRUE(can_stand_in(a, b));
  b.speed_mbps = 25000;
  EXPECT_TRUE(can_stand_in(a, b));
  b.driver = config::NicDriver::kPci;
  EXPECT_FALSE(can_stand_in(a, b));
}

}  // namespace
}  // namespace ztcp::ustack
