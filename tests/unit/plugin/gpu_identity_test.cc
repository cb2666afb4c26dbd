// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/gpu_identity.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plugin/abi/common.h"
#include "plugin/net.h"

namespace ztcp::plugin {
namespace {

constexpr const char* kGpu0 = "0000:3b:00.0";
constexpr const char* kGpu1 = "0000:3c:00.0";
constexpr const char* kGpu2 = "0000:3d:00.0";

using Addresses = std::vector<std::string>;

Addresses pci_of(const std::vector<ustack::GpuIdentity>& gpus) {
  Addresses out;
  for (const auto& gpu : gpus) out.push_back(gpu.pci);
  return out;
}

std::string current_of(const ustack::ProcessGpus& gpus) {
  return gpus.current ? gpus.current->pci : "unknown";
}

// The order of these tests matters: the first needs a process without CUDA, and GPUs recorded by
// remember_current_gpu() stay recorded.
TEST(GpuIdentity, FollowsCudaWithoutInitialisingIt) {
  // No CUDA in the process.
  EXPECT_TRUE(visible_gpus().empty());
  EXPECT_TRUE(view_gpus().driven.empty());
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
  EXPECT_TRUE(view_gpus().driven.empty());
  initialised = 1;

  EXPECT_EQ(visible_gpus(), (config::GpuList{kGpu0, kGpu1}));
  EXPECT_TRUE(view_gpus().driven.empty()) << "two GPUs, none current: unknown";

  active = 0b10;
  EXPECT_EQ(current_of(view_gpus()), kGpu1) << "the only active context";
  active = 0b11;
  EXPECT_TRUE(view_gpus().driven.empty());
  EXPECT_EQ(pci_of(view_gpus().active), (Addresses{kGpu0, kGpu1}));
  active = 0;
  count = 1;
  EXPECT_EQ(current_of(view_gpus()), kGpu0) << "the only visible GPU";
  count = 2;

  current = 1;
  const ustack::ProcessGpus gpus = view_gpus();
  EXPECT_EQ(current_of(gpus), kGpu1);
  ASSERT_EQ(gpus.driven.size(), 1U);
  EXPECT_EQ(gpus.driven[0].uuid, "GPU-11111111-1111-1111-1111-111111111111");
  current = -1;
  EXPECT_TRUE(view_gpus().driven.empty()) << "seen, not noted";
  current = 1;
  remember_current_gpu();
  current = -1;
  EXPECT_EQ(current_of(view_gpus()), kGpu1) << "noted at init";

  // A second communicator, on another GPU: the first one's GPU stays recorded, and a thread without
  // a current GPU may belong to either.
  current = 0;
  EXPECT_EQ(current_of(probe_gpus()), kGpu0) << "the calling thread's";
  current = -1;
  EXPECT_EQ(pci_of(view_gpus().driven), (Addresses{kGpu0, kGpu1}));
  EXPECT_FALSE(view_gpus().current);

  EXPECT_EQ(inits, 0);
  dlclose(cuda);
}

// The tables up to v10 have no init of a communicator, and their proxy threads may have no current
// GPU, but NCCL calls getProperties on the thread that makes the communicator.
TEST(GpuIdentity, GetPropertiesRecordsTheCommunicatorsGpu) {
  void* const cuda = dlopen(FAKE_CUDA_PATH, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(cuda, nullptr) << dlerror();
  auto& count = *static_cast<int*>(dlsym(cuda, "fake_cuda_count"));
  auto& current = *static_cast<int*>(dlsym(cuda, "fake_cuda_current"));
  count = 3;
  current = 2;
  EXPECT_EQ(std::ranges::count(pci_of(view_gpus().driven), kGpu2), 1) << "as the current one";
  current = -1;
  EXPECT_EQ(std::ranges::count(pci_of(view_gpus().driven), kGpu2), 0);
  current = 2;
  ASSERT_TRUE(net().init());
  ncclNetProperties_v5_t properties{};
  EXPECT_EQ(abi::get_properties_v5(0, &properties), ncclSuccess);
  current = -1;
  EXPECT_EQ(std::ranges::count(pci_of(view_gpus().driven), kGpu2), 1);
  dlclose(cuda);
}

TEST(GpuIdentity, TheLocalRankIsTheOneAtStartUp) {
  EXPECT_EQ(view_gpus().local_rank, -1);
  remember_local_rank(5);
  ::setenv("ZTCP_LOCAL_RANK", "7", 1);  // Another thread may change it at any time.
  EXPECT_EQ(view_gpus().local_rank, 5);
  ::unsetenv("ZTCP_LOCAL_RANK");
}

}  // namespace
}  // namespace ztcp::plugin
