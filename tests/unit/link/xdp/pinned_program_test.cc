// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// AF_XDP links over a program that set-up pinned, for one process and for several.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fd.h"
#include "core/netlink.h"
#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "tests/unit/link/within_seconds.h"
#include "tests/unit/link/xdp/xdp_link_fixture.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/bpf.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/program.h"
#include "transport/wire/arp.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/ethernet.h"

namespace ztcp::link {
namespace {

using test::kListenPort;
using test::kOwn;
using test::run;
using test::segment;
using test::within_seconds;
using test::XdpLinkTest;
using testing::HasSubstr;

// A program that was pinned before, as by set-up.
class PinnedXdp : public XdpLinkTest {
 protected:
  static void SetUpTestSuite() {
    XdpLinkTest::SetUpTestSuite();
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return;
    char folder[] = "/tmp/ztcp-bpf.XXXXXX";
    if (::mkdtemp(folder) == nullptr) return;
    mounted_ = folder;
    if (::mount("bpf", folder, "bpf", 0, nullptr) != 0) mounted_.clear();
  }
  static void TearDownTestSuite() {
    if (mounted_.empty()) return;
    ::umount(mounted_.c_str());
    ::rmdir(mounted_.c_str());
  }
  void SetUp() override {
    XdpLinkTest::SetUp();
    if (IsSkipped()) return;
    if (mounted_.empty()) GTEST_SKIP() << "no file system of type bpf can be mounted";
    folder_ = mounted_ + "/zx0";
    ASSERT_EQ(::mkdir(folder_.c_str(), 0755), 0);
    ASSERT_TRUE(xdp::attach_and_pin(interface(), steering(), folder_));
  }
  void TearDown() override {
    links_.clear();
    if (!folder_.empty()) {
      EXPECT_TRUE(xdp::remove_pinned(folder_));
      ::rmdir(folder_.c_str());
    }
    XdpLinkTest::TearDown();
  }

  static xdp::InterfaceFacts interface() {
    auto kernel = netlink::Session::open();
    return **xdp::read_interface(*kernel, std::string("zx0"));
  }
  xdp::Steering steering() const { return {kOwn, kListenPort, 61000, 65535, processes_}; }
  XdpConfig pinned() const {
    XdpConfig out = config();
    out.pin_folder = folder_;
    return out;
  }
  void give_to(uid_t user) const {
    for (const char* file : {"/sockets", "/program", "/steering"})
      ASSERT_EQ(::chown((folder_ + file).c_str(), user, user), 0);
  }

  std::string folder_;

 private:
  static inline std::string mounted_;
};

TEST_F(PinnedXdp, IsUsedAndStaysBehind) {
  ASSERT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
  for (std::uint32_t job = 0; job < 2; ++job) {
    ASSERT_NO_FATAL_FAILURE(open(pinned()));
    EXPECT_THAT(link().describe(), HasSubstr("native mode"));
    const auto frame = segment(job, 100);
    inject(frame);
    EXPECT_EQ(receive_one(), frame);
    links_.clear();
    EXPECT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
  }
  ASSERT_TRUE(xdp::remove_pinned(folder_));
  EXPECT_FALSE(run("ip link show zx0 | grep -q prog/xdp"));
}

// No CAP_BPF and no CAP_NET_ADMIN: only that for raw sockets, and access to the files.
TEST_F(PinnedXdp, OrdinaryUserWithRawSocketsReceives) {
  constexpr uid_t kUser = 65534;
  give_to(kUser);
  const auto frame = segment(7, 100);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_KEEPCAPS, 1);
    if (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0) ::_exit(2);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    data[0].effective = data[0].permitted = 1U << CAP_NET_RAW;
    if (::syscall(SYS_capset, &header, data) != 0) ::_exit(3);
    const ztcp::test::LogCapture log;
    XdpConfig wanted = pinned();
    wanted.rx_frames = 1024;  // Within the usual limit of locked memory.
    auto opened = open_xdp(wanted);
    if (!opened) {
      std::fputs(log.warned().c_str(), stderr);
      ::_exit(4);
    }
    links_ = std::move(*opened);
    if (!within_seconds(5, [&] { return link().is_up(); })) ::_exit(5);
    ::_exit(receive_one() == frame ? 0 : 6);
  }
  // Until the child is ready the frames pass to the kernel.
  int status = 0;
  ASSERT_TRUE(within_seconds(20, [&] {
    inject(frame);
    return ::waitpid(child, &status, WNOHANG) == child;
  }));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PinnedXdp, UserWithoutAccessIsRefusedByName) {
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string said = refusal(pinned());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(said, HasSubstr("this user needs access to its files"));
}

TEST_F(PinnedXdp, MoreProcessesThanQueuesAreRefused) {
  XdpConfig wanted = pinned();
  wanted.slot = {.index = 0, .count = 2};
  EXPECT_THAT(refusal(wanted), HasSubstr("it has 1 queue, fewer than processes = 2 in the config; "
                                         "run: ethtool -L zx0 combined 2"));
}

// Two processes share the interface.
class SharedXdp : public PinnedXdp {
 protected:
  void SetUp() override {
    queues_ = 4;
    processes_ = 2;
    PinnedXdp::SetUp();
  }
  XdpConfig of_slot(std::uint16_t index) const {
    XdpConfig out = pinned();
    out.slot = {.index = index, .count = 2};
    return out;
  }
};

TEST_F(SharedXdp, EachSlotReceivesFromItsQueues) {
  auto first = open_xdp(of_slot(0));
  ASSERT_TRUE(first);
  for (int process = 0; process < 2; ++process) {  // The second one takes the place of the first.
    links_.clear();
    ASSERT_NO_FATAL_FAILURE(open(of_slot(1)));
    EXPECT_THAT(link().describe(),
                HasSubstr("xdp zx0, slot 1 of 0-1 (queues 1, 3), 2 queues, native mode"));
    std::array<int, 2> received{};
    for (std::uint32_t i = 0; i < 32; ++i)
      inject(segment(i, 100, static_cast<std::uint16_t>(kListenPort + i % 2)));
    ASSERT_TRUE(within_seconds(5,
                               [&] {
                                 std::array<RxFrame, 8> frames;
                                 for (std::size_t slot = 0; slot < 2; ++slot) {
                                   Link& one = slot == 0 ? *first->front() : link();
                                   const std::size_t count = one.receive(frames);
                                   received[slot] += static_cast<int>(count);
                                   one.release(std::span(frames).first(count));
                                 }
                                 return received[0] + received[1] == 32;
                               }))
        << received[0] << " and " << received[1];
    EXPECT_GT(received[0], 0);
    EXPECT_GT(received[1], 0);
  }
}

TEST_F(SharedXdp, AnotherNumberOfProcessesIsNamed) {
  XdpConfig wanted = of_slot(0);
  wanted.slot.count = 4;
  EXPECT_THAT(refusal(wanted),
              HasSubstr("steers 10.99.8.1 port 7471-7472 and 61000-65535, the config wants "
                        "10.99.8.1 port 7471-7474 and 61000-65535; run ztcp_setup"));
}

TEST_F(SharedXdp, WithoutAPinnedProgramIsRefused) {
  XdpConfig wanted = of_slot(0);
  wanted.pin_folder += "-other";
  EXPECT_THAT(refusal(wanted), HasSubstr("processes share a program that set-up pinned"));
}

TEST_F(PinnedXdp, OtherPortsThanTheConfigsAreNamed) {
  XdpConfig wanted = pinned();
  wanted.last_port = 65000;
  EXPECT_THAT(refusal(wanted), HasSubstr("steers 10.99.8.1 port 7471 and 61000-65535, the config "
                                         "wants 10.99.8.1 port 7471 and 61000-65000"));
}

}  // namespace
}  // namespace ztcp::link
