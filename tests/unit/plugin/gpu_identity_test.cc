// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/gpu_identity.h"

#include <cstdlib>
#include <dlfcn.h>

#include <gtest/gtest.h>

namespace ztcp::plugin {
namespace {

// The order of these tests is part of them: the first needs a process without CUDA, and what
// remember_current_gpu() noted stays.
TEST(GpuIdentity, FollowsWhatCudaSaysAndNeverInitialisesIt) {
  // No CUDA in the process.
  EXPECT_TRUE(visible_gpus().empty());
  EXPECT_TRUE(probe_gpu().pci.empty());
  remember_current_gpu();

  void* const cuda = dlopen(FAKE_CUDA_PATH, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(cuda, nullptr) << dlerror();
  auto& count = *static_cast<int*>(dlsym(cuda, "fake_cuda_count"));
  auto& initialised = *static_cast<int*>(dlsym(cuda, "fake_cuda_initialised"));
  auto& current = *static_cast<int*>(dlsym(cuda, "fake_cuda_current"));
  auto& active = *static_cast<int*>(dlsym(cuda, "fake_cuda_active"));
  const auto& inits = *static_cast<int*>(dlsym(cuda, "fake_cuda_inits"));

  initialised = 0;
  EXPECT_TRUE(visible_gpus().empty()) << "CUDA loaded, not initialised";
  EXPECT_TRUE(probe_gpu().pci.empty());
  initialised = 1;

  EXPECT_EQ(visible_gpus(), (config::GpuList{"0000:3b:00.0", "0000:3c:00.0"}));
  EXPECT_TRUE(probe_gpu().pci.empty()) << "two GPUs, none current: unknown";

  active = 0b10;
  EXPECT_EQ(probe_gpu().pci, "0000:3c:00.0") << "the only active context";
  active = 0b11;
  EXPECT_TRUE(probe_gpu().pci.empty());
  active = 0;
  count = 1;
  EXPECT_EQ(probe_gpu().pci, "0000:3b:00.0") << "the only visible GPU";
  count = 2;

  current = 1;
  const ustack::GpuIdentity identity = probe_gpu();
  EXPECT_EQ(identity.pci, "0000:3c:00.0");
  EXPECT_EQ(identity.uuid, "GPU-11111111-1111-1111-1111-111111111111");
  remember_current_gpu();
  current = -1;
  EXPECT_EQ(probe_gpu().pci, "0000:3c:00.0") << "noted at init";
  current = 0;
  EXPECT_EQ(probe_gpu().pci, "0000:3b:00.0") << "the calling thread's goes first";

  EXPECT_EQ(inits, 0);
  dlclose(cuda);
}

TEST(GpuIdentity, TheLocalRankIsThatOfTheStart) {
  EXPECT_EQ(probe_gpu().local_rank, -1);
  remember_local_rank(5);
  ::setenv("ZTCP_LOCAL_RANK", "7", 1);  // Another thread may be at it right now.
  EXPECT_EQ(probe_gpu().local_rank, 5);
  ::unsetenv("ZTCP_LOCAL_RANK");
}

}  // namespace
}  // namespace ztcp::plugin
