// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The buffers of a receive as the transport gets them: whether the GPU may poll flags in them.
#include <array>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "plugin/abi/common.h"
#include "plugin/receive_hints.h"
#include "transport/transport.h"

namespace ztcp::plugin::abi {
namespace {

class Receiver final : public RecvComm {
 public:
  void close() override {}
  Result<MemoryKey*> register_memory(const Region&) override { return nullptr; }
  Status deregister_memory(MemoryKey*) override { return {}; }
  std::string describe_peer() const override { return "nobody"; }
  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override {
    polled = 0;
    for (const RecvBuffer& buffer : buffers) polled += buffer.is_polled ? 1U : 0U;
    return nullptr;
  }
  Result<Request*> post_flush(std::span<const RecvBuffer>) override { return nullptr; }

  unsigned polled = 0;
};

class Irecv : public testing::Test {
 protected:
  void* comm() { return static_cast<Comm*>(&receiver_); }
  unsigned v5(int n, void* request) {
    std::array<int, 2> sizes{64, 64};
    EXPECT_EQ(
        irecv_v5(comm(), n, data_.data(), sizes.data(), tags_.data(), mhandles_.data(), &request),
        ncclSuccess);
    return receiver_.polled;
  }
  unsigned v9(int n, void* request) {
    std::array<std::size_t, 2> sizes{64, 64};
    EXPECT_EQ(
        irecv_v9(comm(), n, data_.data(), sizes.data(), tags_.data(), mhandles_.data(), &request),
        ncclSuccess);
    return receiver_.polled;
  }
  unsigned v10(int n, void* request) {
    std::array<std::size_t, 2> sizes{64, 64};
    EXPECT_EQ(irecv_v10(comm(), n, data_.data(), sizes.data(), tags_.data(), mhandles_.data(),
                        nullptr, &request),
              ncclSuccess);
    return receiver_.polled;
  }

  // The hint of NCCL 2.24 and later for a receive of LL or LL128.
  void* const hint_ = reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION);
  std::array<std::byte, 64> memory_{};
  std::array<void*, 2> data_{memory_.data(), memory_.data()};
  std::array<void*, 2> mhandles_{};
  std::array<int, 2> tags_{};
  Receiver receiver_;
};

TEST_F(Irecv, OneBufferWithoutTheHintIsNotPolled) {
  EXPECT_EQ(v9(1, nullptr), 0U);
  EXPECT_EQ(v10(1, nullptr), 0U);
}

TEST_F(Irecv, OneBufferWithTheHintMayBePolled) {
  EXPECT_EQ(v9(1, hint_), 1U);
  EXPECT_EQ(v10(1, hint_), 1U);
}

// Then NCCL gives the same hint for all.
TEST_F(Irecv, EveryBufferMayBePolledWithoutNcclsHints) {
  remember_receive_hints(false);
  EXPECT_EQ(v9(1, nullptr), 1U);
  remember_receive_hints(true);
}

// NCCL gives no hint for groups.
TEST_F(Irecv, GroupedBuffersMayBePolled) {
  EXPECT_EQ(v9(2, nullptr), 2U);
  EXPECT_EQ(v10(2, nullptr), 2U);
}

// These tables have no hint, independent of the bytes at its place.
TEST_F(Irecv, BuffersOfOldTablesMayBePolled) {
  EXPECT_EQ(v5(1, nullptr), 1U);
  EXPECT_EQ(v5(2, nullptr), 2U);
  void* request = nullptr;
  EXPECT_EQ(irecv_v3(comm(), memory_.data(), 64, nullptr, &request), ncclSuccess);
  EXPECT_EQ(receiver_.polled, 1U);
}

}  // namespace
}  // namespace ztcp::plugin::abi
