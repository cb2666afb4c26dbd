// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/gpu_direct.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

class GpuDirectSigns : public testing::Test {
 protected:
  void add_driver(const std::string& release, const std::string& driver) {
    tree_.add_file("proc/sys/kernel/osrelease", release + "\n");
    tree_.add_file("proc/driver/nvidia/version", "NVRM version: " + driver + "\n");
  }
  GpuDirect found() { return read_gpu_direct(machine_); }

  test::Tree tree_;
  LiveMachine machine_{tree_.root()};
};

constexpr const char* kOpen = "NVIDIA UNIX Open Kernel Module for x86_64  550.54";
constexpr const char* kClosed = "NVIDIA UNIX x86_64 Kernel Module  550.54";

TEST_F(GpuDirectSigns, WithoutNvidiasDriverItIsOff) {
  EXPECT_FALSE(found().is_on());
  EXPECT_EQ(to_string(found()), "off: NVIDIA's driver is not loaded");
}

TEST_F(GpuDirectSigns, TheOpenDriverOnANewKernelExportsDmaBufs) {
  add_driver("6.1.0-18-amd64", kOpen);
  EXPECT_TRUE(found().has_dmabuf);
  EXPECT_EQ(to_string(found()), "by DMA-BUF where the NIC's driver takes it");
}

TEST_F(GpuDirectSigns, ReportsWhyThereAreNoDmaBufs) {
  add_driver("5.4.0-150-generic", kOpen);
  EXPECT_EQ(found().why_no_dmabuf, "DMA-BUFs need Linux 5.12 and this is 5.4.0-150-generic");
  add_driver("5.12.0", kClosed);
  EXPECT_EQ(to_string(found()),
            "off: DMA-BUFs need NVIDIA's open kernel module, and nvidia_peermem is not loaded");
}

TEST_F(GpuDirectSigns, EitherModuleIsEnough) {
  add_driver("5.4.0", kClosed);
  tree_.add_file("sys/kernel/mm/memory_peers/nv_mem/version", "1.3\n");
  EXPECT_EQ(to_string(found()), "by nv_peer_mem");
  tree_.add_file("sys/module/nvidia_peermem/version", "550.54\n");
  EXPECT_EQ(to_string(found()), "by nvidia_peermem");
}

// depmod knows the symbols that the distribution's RDMA core lacks.
TEST_F(GpuDirectSigns, AModuleThatTheKernelCannotLoadIsNotAvailable) {
  add_driver("5.4.0", kClosed);
  EXPECT_FALSE(found().is_module_at_hand);
  tree_.add_file("lib/modules/5.4.0/modules.dep", "updates/dkms/nvidia-peermem.ko: a.ko\n");
  EXPECT_FALSE(found().is_module_at_hand);
  tree_.add_file("lib/modules/5.4.0/modules.symbols",
                 "alias symbol:ib_register_peer_memory_client ib_core\n");
  EXPECT_TRUE(found().is_module_at_hand);
}

}  // namespace
}  // namespace ztcp::config
