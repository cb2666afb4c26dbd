// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory that AF_XDP links lock, for several queues and lanes, below the limit of a user.
#include "transport/link/xdp/locked_memory.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/link/xdp/xdp_link_fixture.h"

namespace ztcp::link {
namespace {

using test::Outgoing;
using test::segment;
using test::XdpLinkTest;
using testing::HasSubstr;

// The limit of locked memory holds for root, too, while it lacks CAP_IPC_LOCK.
class LockedMemoryLimit {
 public:
  explicit LockedMemoryLimit(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before_), 0);
    const rlimit low{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
    EXPECT_EQ(::syscall(SYS_capget, &header_, data_), 0);
    data_[0].effective &= ~(1U << CAP_IPC_LOCK);
    EXPECT_EQ(::syscall(SYS_capset, &header_, data_), 0);
  }
  ~LockedMemoryLimit() {
    data_[0].effective = data_[0].permitted;
    EXPECT_EQ(::syscall(SYS_capset, &header_, data_), 0);
    EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before_), 0);
  }
  LockedMemoryLimit(const LockedMemoryLimit&) = delete;
  LockedMemoryLimit& operator=(const LockedMemoryLimit&) = delete;

 private:
  rlimit before_{};
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data_[2]{};
};

TEST_F(XdpLinkTest, LockedMemoryLimitIsNamedBeforeAnyMemoryIsTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has rights to give up";
  const LockedMemoryLimit limit(1U << 20U);
  EXPECT_THAT(refusal(config()),
              HasSubstr("1 queue locks 10240 KiB of memory, and this process may lock 1024 KiB "
                        "(ulimit -l): run ulimit -l unlimited"));
}

class XdpLinkOfSeveralQueues : public XdpLinkTest {
 protected:
  XdpLinkOfSeveralQueues() { queues_ = 4; }
  // 1 MiB for each queue, and 2 MiB for each sender.
  static XdpConfig small() {
    XdpConfig out = config();
    out.rx_frames = 512;
    return out;
  }
  void expect_it_carries_frames() {
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
      const auto frame = segment(seed, 1000);
      inject(frame);
      EXPECT_EQ(receive_one(), frame);
      Outgoing out(segment(100 + seed, 1000), 1);
      ASSERT_EQ(link().transmit({&out.frame, 1}), 1U);
      EXPECT_EQ(sent_one(), out.bytes);
    }
  }
};

TEST_F(XdpLinkOfSeveralQueues, OnlyTheSenderOfALaneHasMemoryToSend) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has rights to give up";
  const LockedMemoryLimit limit(6U << 20U);
  ASSERT_NO_FATAL_FAILURE(open(small()));
  EXPECT_THAT(link().describe(), HasSubstr("4 queues"));
  expect_it_carries_frames();
}

TEST_F(XdpLinkOfSeveralQueues, EachLaneHasMemoryToSend) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has rights to give up";
  XdpConfig wanted = small();
  wanted.lanes = 4;
  {
    const LockedMemoryLimit limit(6U << 20U);
    EXPECT_THAT(refusal(wanted), HasSubstr("4 queues lock 12288 KiB of memory"));
  }
  ASSERT_NO_FATAL_FAILURE(open(wanted));
  ASSERT_EQ(links_.size(), 4U);
  for (const auto& lane : links_) {
    Outgoing out(segment(9, 1000), 1);
    ASSERT_EQ(lane->transmit({&out.frame, 1}), 1U);
    EXPECT_EQ(sent_one(), out.bytes);
  }
}

}  // namespace
}  // namespace ztcp::link
