// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_settings.h"

#include <algorithm>

#include "plugin/collnet_sizes.h"
#include "tests/unit/plugin/startup_host.h"

namespace ztcp::plugin {
namespace {

using CollnetSettingsTest = StartupTest;

bool says(const test::LogCapture& log, std::string_view part) {
  return std::ranges::any_of(log.infos(),
                             [&](const std::string& line) { return contains(line, part); });
}

TEST_F(CollnetSettingsTest, IsOffByDefaultAndNotMentioned) {
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_FALSE(startup->collnet.is_on);
  EXPECT_FALSE(says(log_, "CollNet"));
}

TEST_F(CollnetSettingsTest, IsSwitchedOnByTheConfig) {
  loaded_.fabric->collnet = {.enabled = true, .wire = config::CollnetWire::kBf16};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->collnet.is_on);
  EXPECT_EQ(startup->collnet.wire, reduce::Wire::kBfloat16);
  EXPECT_TRUE(says(log_, "sums of floats of 64 KiB and more travel as bf16"));
}

TEST_F(CollnetSettingsTest, SaysWhichSumsAreRoundedAsFp8) {
  loaded_.fabric->collnet = {.enabled = true, .wire = config::CollnetWire::kFp8};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->collnet.wire, reduce::Wire::kFloat8);
  EXPECT_TRUE(says(log_, "sums of floats of 16 and 32 bits of 64 KiB and more travel as fp8"));
}

// A host with CollNet over kernel sockets.
class CollnetSizesTest : public StartupTest {
 protected:
  CollnetSizesTest() {
    loaded_.fabric->collnet = {.enabled = true, .wire = config::CollnetWire::kBf16};
    loaded_.fabric->nics.resize(2, loaded_.fabric->nics.front());
    sources_.front().kind = TransportKind::kSockets;
    sources_.front().is_tunable = [](const config::Fabric&) { return true; };
    sources_.front().create = [this](const config::Fabric&) {
      std::vector<DeviceProperties> devices(2);
      devices[0].speed_mbps = first_mbps_;
      devices[0].nccl_devices = 3;
      devices[1].speed_mbps = second_mbps_;
      return Created(std::make_unique<test::MemoryTransport>(devices, TransportKind::kSockets));
    };
  }

  std::uint32_t first_mbps_ = 20'000;
  std::uint32_t second_mbps_ = 5'000;
};

TEST_F(CollnetSizesTest, AreThoseOfTheSpeedOfAllNics) {
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->collnet.speed_mbps, 25'000U);
  EXPECT_EQ(startup->collnet.sizes,
            collnet_rows(TransportKind::kSockets, reduce::Wire::kBfloat16, 25'000));
  EXPECT_TRUE(says(log_,
                   "the tuner offers CollNet for all-reduces of 64 KiB to 128 KiB, 1 MiB and "
                   "more between 2 hosts with a rank each: NICs of 25000 Mb/s together"));
}

TEST_F(CollnetSizesTest, FastNicsHaveNoneAndTheLogSaysWhy) {
  first_mbps_ = second_mbps_ = 100'000;
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->collnet.sizes, 0U);
  EXPECT_TRUE(says(log_,
                   "the tuner offers CollNet for no size: NICs of 200000 Mb/s together, and it was "
                   "measured to be faster up to 100000 Mb/s"));
}

TEST_F(CollnetSizesTest, AFormThatWasNeverFasterHasNone) {
  environment_.collnet_wire = config::CollnetWire::kF32;
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->collnet.sizes, 0U);
  EXPECT_TRUE(
      says(log_, "the tuner offers CollNet for no size: over kernel sockets, with sums in"));
}

TEST_F(CollnetSizesTest, WithoutTheTunerNcclChooses) {
  environment_.untuned_by = "ZTCP_TUNER=off";
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->collnet.sizes, 0U);
  EXPECT_TRUE(says(log_, "NCCL chooses by itself which all-reduces use CollNet"));
}

TEST_F(CollnetSettingsTest, FollowsTheVariablesFirst) {
  loaded_.fabric->collnet = {.enabled = false, .wire = config::CollnetWire::kBf16};
  environment_.collnet = true;
  environment_.collnet_wire = config::CollnetWire::kF32;
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->collnet.is_on);
  EXPECT_EQ(startup->collnet.wire, reduce::Wire::kAsIs);
  EXPECT_TRUE(says(log_, "no sum is rounded for the wire"));
}

TEST_F(CollnetSettingsTest, RefusingHostShowsTheDevicesThatOthersShow) {
  loaded_.fabric->collnet.enabled = true;
  for (TransportSource& source : sources_)
    source.nccl_devices = [](const config::Fabric&, const config::Nic&) { return 3; };
  host_problems_ = {{"hugepages", "too few", "ztcp_setup"}};
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(startup->transports.empty());
  EXPECT_TRUE(startup->collnet.is_on);
  EXPECT_EQ(startup->devices.size(), 3 * loaded_.fabric->nics.size());
}

TEST_F(CollnetSettingsTest, UnknownValueIsRefused) {
  environment_.collnet_fault = "ZTCP_COLLNET=yes is neither on (1) nor off (0)";
  const auto startup = start();
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->devices[0].refusal, environment_.collnet_fault);
  EXPECT_FALSE(startup->collnet.is_on);
}

}  // namespace
}  // namespace ztcp::plugin
