// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/registrations.h"

#include <memory>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

class RegistrationsTest : public testing::Test {
 protected:
  static constexpr std::size_t kPage = 4096;

  RegistrationsTest() {
    std::vector<PageRegistrations*> rails;
    for (const Device& device : host_.list())
      rails.push_back(devices_.emplace_back(std::make_unique<PageRegistrations>(device)).get());
    registrations_.emplace(std::vector(rails.begin(), rails.begin() + 1));
    on_both_.emplace(std::move(rails));
  }

  const RegisteredMemory* add(std::size_t offset, std::size_t size) {
    const auto key = registrations_->add({.address = memory_.data() + offset, .size_bytes = size});
    EXPECT_TRUE(key);
    return key ? static_cast<const RegisteredMemory*>(*key) : nullptr;
  }
  void remove(const RegisteredMemory* key) {
    EXPECT_TRUE(registrations_->remove(const_cast<RegisteredMemory*>(key)));
  }
  int registered() const { return host_.devices.live("mr"); }

  FakeHost host_;
  std::vector<std::unique_ptr<PageRegistrations>> devices_;
  std::optional<Registrations> registrations_;
  std::optional<Registrations> on_both_;
  alignas(4096) std::array<std::byte, 8 * kPage> memory_{};
};

TEST_F(RegistrationsTest, TheSamePagesAreRegisteredOnce) {
  const auto* const first = add(100, 5000);
  const auto* const same = add(100, 5000);
  const auto* const inside = add(kPage, 10);
  EXPECT_EQ(registered(), 1);
  EXPECT_EQ(first->rkeys[0], same->rkeys[0]);
  EXPECT_EQ(first->rkeys[0], inside->rkeys[0]);
  EXPECT_NE(first, same) << "each call has a handle of its own";
  const auto* const beyond = add(kPage, 2 * kPage);
  EXPECT_EQ(registered(), 2);
  EXPECT_NE(beyond->rkeys[0], first->rkeys[0]);
  remove(first);
  remove(inside);
  EXPECT_EQ(registered(), 2);
  remove(same);
  remove(beyond);
  EXPECT_EQ(registered(), 0);
}

// The memory that is mapped at the address by then is another one.
TEST_F(RegistrationsTest, AKeyThatWasGivenBackNeverComesBack) {
  const auto* const first = add(0, kPage);
  const std::uint32_t stale = first->rkeys[0];
  remove(first);
  EXPECT_NE(add(0, kPage)->rkeys[0], stale);
}

// A rail shares its registrations alone and merged; a handle has the keys of all its rails.
TEST_F(RegistrationsTest, WithSeveralRailsItIsRegisteredOnAllOrNone) {
  const auto* const alone = add(0, kPage);
  const auto key = on_both_->add({.address = memory_.data(), .size_bytes = kPage});
  ASSERT_TRUE(key);
  EXPECT_EQ(registered(), 2);
  const auto* const both = static_cast<const RegisteredMemory*>(*key);
  EXPECT_EQ(both->rkeys[0], alone->rkeys[0]);
  EXPECT_NE(both->rkeys[1], 0U);
  EXPECT_NE(both->rkeys[1], both->rkeys[0]);
  remove(alone);
  EXPECT_EQ(registered(), 2);
  EXPECT_TRUE(on_both_->remove(*key));
  EXPECT_EQ(registered(), 0);

  const auto there = on_both_->add({.address = memory_.data(), .size_bytes = 1});
  remove(add(0, 1));  // The first rail's stay with their other user.
  EXPECT_EQ(registered(), 2);
  host_.devices.refuse("ibv_reg_mr", ENOMEM);
  EXPECT_FALSE(on_both_->add({.address = memory_.data() + kPage, .size_bytes = 1}));
  EXPECT_EQ(registered(), 2);
  EXPECT_TRUE(on_both_->remove(*there));
  EXPECT_EQ(registered(), 0);
}

TEST_F(RegistrationsTest, UnknownKeyIsRefused) {
  const auto* const key = add(0, 10);
  remove(key);
  EXPECT_FALSE(registrations_->remove(const_cast<RegisteredMemory*>(key)));
  EXPECT_FALSE(registrations_->add({.address = memory_.data(), .size_bytes = 0}));
}

TEST_F(RegistrationsTest, OfADmaBufTheOffsetIsTheAddressesAndTheDescriptorTheCallers) {
  const int fd = memfd_create("gpu", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 8 * kPage), 0);
  void* const gpu = mmap(nullptr, 8 * kPage, PROT_NONE, MAP_SHARED, fd, 0);
  const auto region = [&](std::size_t at, std::uint64_t offset) {
    return Region{.address = static_cast<std::byte*>(gpu) + at,
                  .size_bytes = kPage,
                  .kind = MemoryKind::kCuda,
                  .dmabuf_fd = fd,
                  .offset = offset};
  };
  const auto key = registrations_->add(region(2 * kPage + 24, 2 * kPage + 24));
  ASSERT_TRUE(key);
  EXPECT_FALSE(static_cast<RegisteredMemory*>(*key)->is_host);
  EXPECT_FALSE(registrations_->add(region(kPage, kPage + 24))) << "of another place in its page";
  EXPECT_FALSE(registrations_->add(region(7 * kPage, 8 * kPage))) << "beyond the buffer's end";
  close(fd);
  EXPECT_TRUE(registrations_->remove(*key));
  munmap(gpu, 8 * kPage);
}

TEST_F(RegistrationsTest, GpuMemoryIsRefusedWhereTheDeviceReachesNone) {
  const auto outcome = registrations_->add(
      {.address = memory_.data(), .size_bytes = kPage, .kind = MemoryKind::kCuda});
  ASSERT_FALSE(outcome) << "there is no module for it";
  EXPECT_EQ(outcome.error().code, Errc::kInvalidArgument);
}

// Only flushes read, and only GPU memory is flushed.
TEST_F(RegistrationsTest, HostMemory_IsNotReadableByPeers) {
  static unsigned told;
  static ibv_mr* (*real)(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned);
  Api api = *host_.devices.api();
  real = api.reg_mr_iova2;
  api.reg_mr_iova2 = [](ibv_pd* pd, void* address, std::size_t size, std::uint64_t iova,
                        unsigned access) {
    told = access;
    return real(pd, address, size, iova, access);
  };
  std::vector<Device> devices = host_.list();
  devices[0].opened->api = &api;
  {
    PageRegistrations pages(devices[0]);
    auto made = pages.take({.address = memory_.data(), .size_bytes = kPage});
    ASSERT_TRUE(made);
    EXPECT_EQ(told & IBV_ACCESS_REMOTE_READ, 0U);
    EXPECT_NE(told & IBV_ACCESS_REMOTE_WRITE, 0U);
    pages.give_back(*made);
  }
  devices[0].opened->api = host_.devices.api();
}

TEST_F(RegistrationsTest, ADeadDeviceOfSeveralHasNoKey) {
  host_.devices.kill("fake1", /*tells=*/false);
  const auto key = on_both_->add({.address = memory_.data(), .size_bytes = kPage});
  ASSERT_TRUE(key);
  const auto* const memory = static_cast<const RegisteredMemory*>(*key);
  EXPECT_NE(memory->lkeys[0], 0U);
  EXPECT_EQ(memory->lkeys[1], 0U);
  EXPECT_TRUE(on_both_->remove(*key));
  host_.devices.kill("fake0", /*tells=*/false);
  const auto none = on_both_->add({.address = memory_.data(), .size_bytes = kPage});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().sys_errno, EIO);
}

}  // namespace
}  // namespace ztcp::verbs
