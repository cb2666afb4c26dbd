// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/choose.h"

#include <gtest/gtest.h>

namespace ztcp::capture {
namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

config::Fabric fabric() {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  fabric.nics.resize(3);
  fabric.nics[0].name = "ztcp0";
  fabric.nics[1].name = "ztcp1";
  fabric.nics[1].driver = config::NicDriver::kSocket;
  fabric.nics[1].interface = "eth1";
  fabric.nics[2].name = "ztcp2";
  fabric.nics[2].driver = config::NicDriver::kVerbs;
  fabric.nics[2].device = "mlx5_0";
  return fabric;
}

TEST(Obstacle, KernelDevicesGetTheCommandOfTheKernelsTools) {
  EXPECT_EQ(obstacle(fabric(), "ztcp0"), "");
  EXPECT_EQ(obstacle(fabric(), ""), "");
  EXPECT_TRUE(says(obstacle(fabric(), "ztcp1"), "tcpdump -i eth1 'tcp portrange 7472-7535'"));
  EXPECT_TRUE(says(obstacle(fabric(), "ztcp1"), "ss -tin"));
  EXPECT_TRUE(says(obstacle(fabric(), "ztcp2"), "tcpdump -i mlx5_0"));
  EXPECT_TRUE(says(obstacle(fabric(), "ztcp9"), "it has ztcp0, ztcp1, ztcp2"));
}

TEST(Choose, TakesTheOnlyProcessThatFits) {
  const Jobs jobs{{{"a", 7, "python3", {"ztcp0"}}, {"b", 8, "python3", {"ztcp1"}}}, {}};
  CaptureOptions options;
  EXPECT_TRUE(says(choose(options, jobs, "/run").error(), "ztcp1 of process 8 (python3)"));
  options.device = "ztcp1";
  ASSERT_TRUE(choose(options, jobs, "/run"));
  EXPECT_EQ(choose(options, jobs, "/run")->job.pid, 8);
  options.device.clear();
  options.pid = 7;
  ASSERT_TRUE(choose(options, jobs, "/run"));
  EXPECT_EQ(choose(options, jobs, "/run")->device, "ztcp0");
}

TEST(Choose, TellsWhyNoProcessFits) {
  const Jobs jobs{{}, {"process 9: Permission denied; run as its user, or root"}};
  CaptureOptions options;
  options.device = "ztcp0";
  const std::string text = choose(options, jobs, "/run").error();
  EXPECT_TRUE(says(text, "no process drives ztcp0 now")) << text;
  EXPECT_TRUE(says(text, "run as its user, or root")) << text;
}

}  // namespace
}  // namespace ztcp::capture
