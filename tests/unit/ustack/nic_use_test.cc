// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The NICs that a process uses for the devices that NCCL asks for, and the log lines about them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cpu_share.h"
#include "tests/support/log_capture.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

ProcessGpus g_gpus;
ProcessGpus gpus_of_process() { return g_gpus; }

constexpr const char* kGpuA = "0000:17:00.0";
constexpr const char* kGpuB = "0000:3b:00.0";

class NicUse : public testing::Test {
 protected:
  // Builds a host with a NIC for each of `gpus`, each in its own network.
  void build(const std::vector<std::string>& gpus, const std::vector<std::uint32_t>& mbps = {}) {
    fabric_ = one_nic_fabric(0);
    const config::Nic first = fabric_.nics.front();
    fabric_.nics.clear();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      config::Nic nic = first;
      nic.name = "mem" + std::to_string(i);
      nic.address = Ipv4Prefix{{0x0a000001U + (static_cast<std::uint32_t>(i) << 16U)}, 24};
      nic.gpu_pci = gpus[i];
      if (i < mbps.size()) nic.speed_mbps = mbps[i];
      auto [ours, theirs] = link::make_memory_links({.mtu_bytes = 9000});
      source_->add(nic.name, std::move(ours));
      far_ends_.push_back(std::move(theirs));
      fabric_.nics.push_back(nic);
    }
    transport_ = *create(fabric_, test::cpus_of_this_process(), gpus_of_process, source_);
  }
  static void drive(const std::string& gpu) {
    g_gpus = {.current = GpuIdentity{gpu}, .driven = {{gpu}}};
  }

  // Index of the NIC that a listener on `device` uses; nothing: listen() failed.
  std::optional<std::size_t> used_for(int device) {
    auto listener = transport_->listen(device, {});
    if (!listener) return std::nullopt;
    return std::to_integer<std::size_t>((*listener)->handle().bytes[kSecondByte]);
  }
  // Offset in a handle of the address byte that distinguishes the networks: N in 10.N.0.1.
  static constexpr std::size_t kSecondByte = 13;

  static bool says(const std::vector<std::string>& lines, std::string_view part) {
    for (const std::string& line : lines)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }

  config::Fabric fabric_;
  std::shared_ptr<MemoryNics> source_ = std::make_shared<MemoryNics>();
  std::vector<std::unique_ptr<link::Link>> far_ends_;
  std::unique_ptr<Transport> transport_;
  test::LogCapture log_;
};

TEST_F(NicUse, UsesAllNicsOfAGpu) {
  build({kGpuA, kGpuA, kGpuB, kGpuB});
  drive(kGpuB);
  EXPECT_EQ(used_for(2), 2U);
  EXPECT_EQ(used_for(3), 3U);
  EXPECT_FALSE(says(log_.infos(), "NCCL asked for")) << "both are this process's";
  EXPECT_EQ(used_for(0), 2U);
  EXPECT_EQ(used_for(1), 3U);
  EXPECT_TRUE(says(log_.infos(), "mem3: NCCL asked for mem1, which is not this process's"));
}

TEST_F(NicUse, LogsThatAnotherProcessHasTheRequestedNic) {
  build({kGpuA, kGpuA});
  drive(kGpuA);
  source_->take("mem1");
  EXPECT_EQ(used_for(1), 0U);
  EXPECT_TRUE(says(log_.infos(), "NCCL asked for mem1, which is taken by somebody"));
}

TEST_F(NicUse, WarnsOnceWhenTheRequestedNicIsFaster) {
  build({kGpuA, kGpuB}, {25000, 100000});
  drive(kGpuA);
  EXPECT_EQ(used_for(1), 0U);
  EXPECT_TRUE(
      says(log_.warnings(), "mem0 (25000 Mb/s) carries the traffic that NCCL planned for mem1"))
      << log_.warned();
  EXPECT_EQ(used_for(1), 0U);
  EXPECT_EQ(log_.warnings().size(), 1U) << "only once";
}

TEST_F(NicUse, UsesTheNicsOfAllGpusOfAProcess) {
  build({kGpuA, kGpuB});
  drive(kGpuA);
  EXPECT_EQ(used_for(0), 0U);
  // The current GPU is unknown: older plugin tables, CUDA before 12.
  g_gpus = {.driven = {{kGpuA}, {kGpuB}}};
  EXPECT_EQ(used_for(1), 1U);
  EXPECT_EQ(used_for(0), 0U);
  EXPECT_FALSE(says(log_.infos(), "NCCL asked for"));
}

// The peer may have used a substitute, too, so its NIC may be in another NIC's network.
TEST_F(NicUse, ConnectUsesTheNicWithARoute) {
  build({kGpuA, kGpuA});
  drive(kGpuA);
  auto listener = transport_->listen(1, {});
  ASSERT_TRUE(listener);
  PeerHandle peer = (*listener)->handle();
  peer.bytes[kSecondByte + 2] = std::byte{9};  // 10.1.0.9
  EXPECT_TRUE(transport_->begin_connect(0, peer, {}));
  EXPECT_TRUE(says(log_.infos(), "NCCL asked for mem0, which has no route to 10.1.0.9"));
}

TEST_F(NicUse, KeepsToOneOfTheUnpairedNics) {
  build({"", ""});
  g_gpus = {};
  EXPECT_EQ(used_for(1), 1U);
  EXPECT_EQ(used_for(0), 1U) << "the other NIC is left to another process";
  EXPECT_TRUE(says(log_.infos(), "NCCL asked for mem0, which is not this process's"));
}

TEST_F(NicUse, LogsTheReasonWhenTheGpuHasNoNic) {
  build({kGpuA, kGpuA});
  drive(kGpuB);
  EXPECT_FALSE(used_for(0));
  EXPECT_TRUE(says(log_.warnings(), "(GPU 0000:3b:00.0)")) << log_.warned();
  EXPECT_TRUE(says(log_.warnings(), "each is paired with another GPU in test.conf"));
}

}  // namespace
}  // namespace ztcp::ustack
