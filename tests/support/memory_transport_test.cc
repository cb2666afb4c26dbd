// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Properties of the in-memory transport that other tests rely on.
#include "tests/support/memory_transport.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp::test {
namespace {

DeviceProperties gpu_device() {
  DeviceProperties device;
  device.name = "memory0";
  device.max_receives = kMaxReceives;
  device.cuda_pointers = true;
  device.dmabuf = true;
  return device;
}

// Pages that only a transport reaches, and the "GPU's" own mapping of them.
class GpuMemory {
 public:
  GpuMemory() : fd_(memfd_create("gpu", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, kBytes), 0);
    pointer = map(PROT_NONE);
    seen = map(PROT_READ | PROT_WRITE);
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() {
    munmap(pointer, kBytes);
    munmap(seen, kBytes);
    ::close(fd_);
  }
  Region region() const {
    return {.address = pointer, .size_bytes = kBytes, .kind = MemoryKind::kCuda};
  }
  Region dmabuf(std::uint64_t offset) const {
    Region by_fd = region();
    by_fd.size_bytes -= offset;
    by_fd.dmabuf_fd = fd_;
    by_fd.offset = offset;
    return by_fd;
  }

  static constexpr std::size_t kBytes = 1U << 18U;
  std::byte* pointer = nullptr;
  std::byte* seen = nullptr;

 private:
  std::byte* map(int protection) const {
    return static_cast<std::byte*>(mmap(nullptr, kBytes, protection, MAP_SHARED, fd_, 0));
  }
  int fd_;
};

class MemoryTransportTest : public testing::Test {
 protected:
  MemoryTransportTest() : MemoryTransportTest(gpu_device()) {}
  explicit MemoryTransportTest(const DeviceProperties& device) : transport_({device}) {
    listener_ = std::move(*transport_.listen(0, {}));
    sender_ = std::move(*transport_.begin_connect(0, listener_->handle(), {}));
    receiver_ = std::move(*listener_->accept());
  }

  Request* receive(std::span<const RecvBuffer> buffers) {
    const Result<Request*> posted = receiver_->post_recv(buffers);
    EXPECT_TRUE(posted && *posted != nullptr);
    return posted ? *posted : nullptr;
  }
  void send(std::span<const std::byte> bytes, int tag, MemoryKey* key = nullptr) {
    const Result<Request*> posted = sender_->post_send(bytes, tag, key);
    ASSERT_TRUE(posted && *posted != nullptr);
  }

  MemoryTransport transport_;
  std::unique_ptr<Listener> listener_;
  SendCommPtr sender_;
  RecvCommPtr receiver_;
};

bool ends(Request* request, std::span<std::size_t> sizes = {}) {
  const Result<bool> done = request->test(sizes);
  return done && *done;
}

TEST_F(MemoryTransportTest, TagsSelectBuffersInAGroup) {
  std::array<std::array<std::byte, 64>, kMaxReceives> to{};
  std::array<RecvBuffer, kMaxReceives> group;
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = {to[i], static_cast<int>(i), nullptr};
  Request* const request = receive(group);
  EXPECT_EQ(request->buffers(), kMaxReceives);
  for (std::size_t i = kMaxReceives; i-- > 0;) {
    EXPECT_FALSE(ends(request)) << "messages " << i << " and before are missing";
    const std::array<std::byte, 64> from{static_cast<std::byte>(i + 1)};
    send(std::span(from).first(i + 1), static_cast<int>(i));
  }
  std::array<std::size_t, kMaxReceives> sizes{};
  ASSERT_TRUE(ends(request, sizes));
  for (std::size_t i = 0; i < kMaxReceives; ++i) {
    EXPECT_EQ(sizes[i], i + 1);
    EXPECT_EQ(to[i][0], static_cast<std::byte>(i + 1));
  }
}

TEST_F(MemoryTransportTest, MessagesOfOneTagArriveInSendingOrder) {
  std::array<std::array<std::byte, 1>, 3> to{};
  const std::array<RecvBuffer, 3> group{{{to[0], 5, nullptr}, {to[1], 4, nullptr}, {to[2], 5, {}}}};
  Request* const request = receive(group);
  constexpr std::array kFrom{std::byte{1}, std::byte{2}, std::byte{3}};
  send(std::span(kFrom).subspan(0, 1), 5);
  send(std::span(kFrom).subspan(1, 1), 5);
  send(std::span(kFrom).subspan(2, 1), 4);
  ASSERT_TRUE(ends(request));
  EXPECT_EQ(to[0][0], std::byte{1});
  EXPECT_EQ(to[1][0], std::byte{3});
  EXPECT_EQ(to[2][0], std::byte{2});
}

TEST_F(MemoryTransportTest, ATagDoesNotWaitForOtherTags) {
  std::array<std::array<std::byte, 1>, 3> to{};
  const std::array<RecvBuffer, 2> group{{{to[0], 1, nullptr}, {to[1], 2, nullptr}}};
  const RecvBuffer alone{to[2], 2, nullptr};
  Request* const first = receive(group);
  Request* const second = receive({&alone, 1});
  constexpr std::array kFrom{std::byte{1}, std::byte{2}, std::byte{3}};
  send(std::span(kFrom).subspan(0, 1), 2);
  send(std::span(kFrom).subspan(1, 1), 2);
  EXPECT_FALSE(ends(first));
  EXPECT_TRUE(ends(second));
  send(std::span(kFrom).subspan(2, 1), 1);
  EXPECT_TRUE(ends(first));
  EXPECT_EQ(to[0][0], std::byte{3});
  EXPECT_EQ(to[1][0], std::byte{1});
  EXPECT_EQ(to[2][0], std::byte{2});
}

TEST_F(MemoryTransportTest, AGroupIsLimitedToTheDevicesMaxRecvs) {
  MemoryTransport plain({DeviceProperties{}});
  const auto listener = std::move(*plain.listen(0, {}));
  const auto sender = std::move(*plain.begin_connect(0, listener->handle(), {}));
  const auto receiver = std::move(*listener->accept());
  EXPECT_FALSE(receiver->post_recv(std::array<RecvBuffer, 2>{}));
  EXPECT_TRUE(receiver_->post_recv(std::array<RecvBuffer, 2>{}));
}

TEST_F(MemoryTransportTest, GpuMemoryFaultsForTheCpu) {
  GpuMemory gpu;
  ASSERT_TRUE(receiver_->register_memory(gpu.region()));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  EXPECT_EQ(write(ends[1], gpu.pointer, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(MemoryTransportTest, FlushedBytesAreVisibleOnceTheFlushIsDone) {
  for (const bool by_dmabuf : {false, true}) {
    GpuMemory gpu;
    const auto key = receiver_->register_memory(by_dmabuf ? gpu.dmabuf(0) : gpu.region());
    ASSERT_TRUE(key);
    const std::array<std::byte, 16> from{std::byte{7}, std::byte{8}};
    const RecvBuffer buffer{{gpu.pointer + 100, 16}, 0, *key};
    Request* const request = receive({&buffer, 1});
    send(from, 0);
    ASSERT_TRUE(ends(request));
    EXPECT_EQ(gpu.seen[100], std::byte{0}) << "not flushed yet";

    const Result<Request*> flush = receiver_->post_flush({&buffer, 1});
    ASSERT_TRUE(flush && *flush != nullptr);
    EXPECT_EQ((*flush)->buffers(), 0U);
    EXPECT_FALSE(ends(*flush));
    EXPECT_EQ(gpu.seen[100], std::byte{0}) << "the flush is not done yet";
    EXPECT_TRUE(ends(*flush));
    EXPECT_EQ(std::memcmp(gpu.seen + 100, from.data(), from.size()), 0);
    EXPECT_TRUE(receiver_->deregister_memory(*key));
  }
}

TEST_F(MemoryTransportTest, SendsLargeAndSmallMessagesFromGpuMemory) {
  GpuMemory gpu;
  const std::size_t offset = 4096 + 24;
  Region region = gpu.dmabuf(offset);
  region.address = gpu.pointer + offset;
  const auto key = sender_->register_memory(region);
  ASSERT_TRUE(key);
  std::memset(gpu.seen, 0x5a, GpuMemory::kBytes);
  std::vector<std::byte> to(GpuMemory::kBytes);
  for (const std::size_t size : {std::size_t{1}, MemoryTransport::kEagerBytes + 1}) {
    const RecvBuffer buffer{{to.data(), size}, 0, nullptr};
    send({gpu.pointer + offset, size}, 0, *key);
    std::size_t moved = 0;
    ASSERT_TRUE(ends(receive({&buffer, 1}), {&moved, 1}));
    EXPECT_EQ(moved, size);
    EXPECT_EQ(std::memcmp(to.data(), gpu.seen + offset, size), 0);
  }
}

TEST_F(MemoryTransportTest, HostMemoryNeedsNoFlush) {
  std::array<std::byte, 8> to{};
  const auto key = receiver_->register_memory({.address = to.data(), .size_bytes = to.size()});
  ASSERT_TRUE(key);
  const RecvBuffer buffer{to, 0, *key};
  const Result<Request*> flush = receiver_->post_flush({&buffer, 1});
  ASSERT_TRUE(flush);
  EXPECT_EQ(*flush, nullptr);
}

TEST_F(MemoryTransportTest, RegistrationsOutsideTheMemoryAreRefused) {
  GpuMemory gpu;
  Region region = gpu.dmabuf(0);
  region.offset = 1;
  EXPECT_FALSE(receiver_->register_memory(region)) << "the DMA-BUF ends a byte before";
  region = gpu.dmabuf(0);
  region.kind = MemoryKind::kHost;
  EXPECT_FALSE(receiver_->register_memory(region)) << "a DMA-BUF is a GPU's";
  region = gpu.region();
  region.address = gpu.pointer + 1;
  EXPECT_FALSE(receiver_->register_memory(region)) << "inside a page";
}

TEST_F(MemoryTransportTest, PostsOutsideTheirRegistrationAreRefused) {
  std::array<std::byte, 8> bytes{};
  const auto key = receiver_->register_memory({.address = bytes.data(), .size_bytes = 4});
  ASSERT_TRUE(key);
  RecvBuffer buffer{std::span(bytes).first(4), 0, *key};
  EXPECT_TRUE(receiver_->post_recv({&buffer, 1}));
  buffer.bytes = std::span(bytes).subspan(2, 4);
  EXPECT_FALSE(receiver_->post_recv({&buffer, 1}));
  EXPECT_FALSE(sender_->post_send(std::span(bytes).first(4), 0, *key)) << "the receiver's key";
}

}  // namespace
}  // namespace ztcp::test
