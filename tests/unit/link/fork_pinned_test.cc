// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The basis of zero-copy sending when the trainer forks its data loaders: this kernel leaves a
// pinned page with the parent and gives the child a copy. vfio needs an IOMMU, so io_uring stands
// in for the NIC: its registered buffers are pinned in the same way (FOLL_PIN | FOLL_LONGTERM) and
// read through the pin, independent of the page tables.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/io_uring.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/fd.h"
#include "transport/link/dma_map.h"

namespace ztcp::link {
namespace {

constexpr std::size_t kHugePage = 2U << 20U;

// The parts of io_uring that resemble a device: memory pinned once, read later.
class PinningDevice {
 public:
  PinningDevice() {
    ring_ = Fd(static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters_)));
    if (!ring_) return;
    entries_ = map(4096, IORING_OFF_SQES);
    queue_ = map(4096, IORING_OFF_SQ_RING);
  }
  bool exists() const { return static_cast<bool>(ring_); }
  bool pin(void* address, std::size_t size_bytes) {
    const iovec range{address, size_bytes};
    return syscall(SYS_io_uring_register, ring_.get(), IORING_REGISTER_BUFFERS, &range, 1) == 0;
  }
  // Reads pinned memory into `fd`.
  bool send(int fd, const void* address, std::size_t size_bytes) {
    auto& entry = *static_cast<io_uring_sqe*>(entries_);
    entry = {};
    entry.opcode = IORING_OP_WRITE_FIXED;
    entry.fd = fd;
    entry.addr = reinterpret_cast<std::uintptr_t>(address);
    entry.len = static_cast<std::uint32_t>(size_bytes);
    auto* queue = static_cast<std::byte*>(queue_);
    auto& tail = *reinterpret_cast<std::uint32_t*>(queue + parameters_.sq_off.tail);
    auto* slots = reinterpret_cast<std::uint32_t*>(queue + parameters_.sq_off.array);
    slots[tail & (parameters_.sq_entries - 1)] = 0;
    __atomic_store_n(&tail, tail + 1, __ATOMIC_RELEASE);
    return syscall(SYS_io_uring_enter, ring_.get(), 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) == 1;
  }

 private:
  void* map(std::size_t size_bytes, off_t what) const {
    return mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_.get(), what);
  }
  io_uring_params parameters_{};
  Fd ring_;
  void* entries_ = nullptr;
  void* queue_ = nullptr;
};

std::string kernel_release() {
  utsname name{};
  uname(&name);
  return name.release;
}

class ForkPinned : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Pages, ForkPinned, testing::Values(MADV_NOHUGEPAGE, MADV_HUGEPAGE),
                         [](const auto& row) {
                           return row.param == MADV_HUGEPAGE ? "huge" : "small";
                         });

TEST_P(ForkPinned, TheDeviceKeepsReadingTheParentsBytes) {
  PinningDevice device;
  if (!device.exists()) GTEST_SKIP() << "io_uring is not allowed here";
  if (!forks_copy_pinned_pages(kernel_release())) GTEST_SKIP() << "sends are copied here";

  void* room =
      mmap(nullptr, 2 * kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  const auto at = reinterpret_cast<std::uintptr_t>(room);
  auto* user = reinterpret_cast<std::byte*>((at + kHugePage - 1) / kHugePage * kHugePage);
  madvise(user, kHugePage, GetParam());
  constexpr std::size_t kBytes = 8192;
  std::fill_n(user, kBytes, std::byte{'a'});
  ASSERT_TRUE(device.pin(user, kBytes)) << std::strerror(errno);

  std::array<int, 2> go{};
  ASSERT_EQ(pipe(go.data()), 0);
  const pid_t loader = fork();
  if (loader == 0) {
    char turn = 0;
    const bool told = read(go[0], &turn, 1) == 1;  // The parent has written by now.
    _exit(told && std::all_of(user, user + kBytes, [](std::byte b) { return b == std::byte{'a'}; })
              ? 0
              : 1);
  }
  std::fill_n(user, kBytes, std::byte{'b'});
  ASSERT_EQ(write(go[1], "!", 1), 1);

  std::array<int, 2> wire{};
  ASSERT_EQ(pipe(wire.data()), 0);
  ASSERT_TRUE(device.send(wire[1], user, kBytes)) << std::strerror(errno);
  std::array<std::byte, kBytes> received{};
  ASSERT_EQ(read(wire[0], received.data(), received.size()), static_cast<ssize_t>(kBytes));
  EXPECT_TRUE(std::all_of(received.begin(), received.end(), [](std::byte b) {
    return b == std::byte{'b'};
  })) << "the device reads a page that is no longer the parent's";

  int status = 0;
  ASSERT_EQ(waitpid(loader, &status, 0), loader);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child lost its copy";
  for (const int fd : {go[0], go[1], wire[0], wire[1]}) close(fd);
  munmap(room, 2 * kHugePage);
}

TEST(ForksCopyPinnedPages, SinceLinux5_13) {
  for (const char* release : {"5.13.0", "5.15.0-91-generic", "6.1.0-56-amd64", "6.12", "10.0.1"})
    EXPECT_TRUE(forks_copy_pinned_pages(release)) << release;
  for (const char* release :
       {"5.12.19", "5.4.0-150-generic", "4.18.0-513.el8.x86_64", "4.20", "", "x"})
    EXPECT_FALSE(forks_copy_pinned_pages(release)) << release;
}

}  // namespace
}  // namespace ztcp::link
