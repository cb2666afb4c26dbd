// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The way between an RDMA device and a GPU: ACS of the bridges, GPU memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "tests/unit/config/check/verbs_host.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CheckVerbs, AcsBetweenNicAndGpuIsAWarning) {
  tree_.add_file(kGpuBridge, config_space(0x1d));
  const Problem said = warning("rdma_acs");
  EXPECT_THAT(said.what, StartsWith("ACS is on at 0000:18:00.0, between 0000:1b:00.0 and its"));
  EXPECT_THAT(said.mend, HasSubstr("for d in 0000:18:00.0; do sudo setpci -s $d"));
  tree_.add_file(kGpuBridge, config_space(0x01));  // Source validation alone redirects nothing.
  EXPECT_THAT(good("rdma_acs"), StartsWith("off at"));
}

TEST_F(CheckVerbs, AcsThatOnlyRootCanReadIsUnknown) {
  tree_.add_file(kGpuBridge, config_space(0x1d).substr(0, 64));
  EXPECT_EQ(good("rdma_acs"),
            "only root can read whether ACS is on at 0000:18:00.0: sudo ztcp_setup --check");
}

TEST_F(CheckVerbs, ReportsWhyGpuMemoryIsNotReached) {
  tree_.add_file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n");
  tree_.add_file("proc/sys/kernel/osrelease", "6.1.0\n");
  Problem said = warning("rdma_gpu");
  EXPECT_THAT(said.what, HasSubstr("off: DMA-BUFs need NVIDIA's open kernel module, and "
                                   "nvidia_peermem is not loaded"));
  EXPECT_THAT(said.mend, HasSubstr("NVIDIA's open kernel module"));
  tree_.add_file("lib/modules/6.1.0/modules.dep", "updates/dkms/nvidia-peermem.ko: nvidia.ko\n");
  tree_.add_file("lib/modules/6.1.0/modules.symbols",
                 "alias symbol:ib_register_peer_memory_client ib_core\n");
  EXPECT_EQ(warning("rdma_gpu").mend, "sudo modprobe nvidia_peermem");
  tree_.add_file("sys/module/nvidia_peermem/version", "550\n");
  EXPECT_EQ(good("rdma_gpu"), "GPUDirect RDMA by nvidia_peermem");
  tree_.remove("sys/module/nvidia_peermem");
  tree_.add_file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module\n");
  EXPECT_EQ(good("rdma_gpu"), "GPUDirect RDMA by DMA-BUF where the NIC's driver takes it");
  tree_.add_file("proc/sys/kernel/osrelease", "5.4.0\n");
  EXPECT_THAT(warning("rdma_gpu").what, HasSubstr("DMA-BUFs need Linux 5.12 and this is 5.4.0"));
}

}  // namespace
}  // namespace ztcp::config
