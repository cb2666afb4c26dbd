// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/socket.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

// For this thread alone, until it ends.
void forbid_accepting(std::uint32_t sys_errno) {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | sys_errno),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), filter.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

// As a container's seccomp profile does. A turn that retried for ever would hang the training.
TEST(Accept, ForbiddenByAFilterIsAnError) {
  Device device;
  device.address = Ipv4Address{0x7f000001};
  const Listening listening = *open_listener(device);
  for (const int sys_errno : {EPERM, ENOSYS}) {
    std::thread([&] {
      forbid_accepting(static_cast<std::uint32_t>(sys_errno));
      const auto accepted = accept(listening.fd, {});
      ASSERT_FALSE(accepted);
      EXPECT_EQ(accepted.error().sys_errno, sys_errno);
    }).join();
  }
  EXPECT_TRUE(accept(listening.fd, {})) << "an empty accept queue is no error";
}

// Like a kernel without busy polling; for this thread alone, until it ends.
void forget_napi_instances() {
  std::array<sock_filter, 6> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_INCOMING_NAPI_ID, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), filter.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

// A connection of this host with itself.
struct SocketPair {
  explicit SocketPair(std::uint32_t segment_bytes = 0) {
    Device device;
    device.address = Ipv4Address{0x7f000001};
    const Listening listening = *open_listener(device);
    dialled = std::move(*dial(device, {}, listening.endpoint, {.segment_bytes = segment_bytes}));
    for (;;)
      if (auto got = *sockets::accept(listening.fd, {}); got) {
        accepted = std::move(got->fd);
        break;
      }
  }
  Fd dialled;
  Fd accepted;
};

int tcp_option(const Fd& fd, int number) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd.get(), IPPROTO_TCP, number, &value, &size), 0);
  return value;
}

// The peer's kernel answers window probes, so no timeout counts.
TEST(Stall, PeerThatDoesNotRead_IsAClosedWindowAndNoTimeout) {
  const SocketPair pair;
  EXPECT_TRUE(stall(pair.dialled).is_acked);
  const std::vector<std::byte> bytes(1U << 20);
  const auto fill = [&] {
    while (send(pair.dialled.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    return stall(pair.dialled);
  };
  const auto ends = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  StreamStall found = fill();
  while (!found.is_shut && std::chrono::steady_clock::now() < ends) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    found = fill();
  }
  EXPECT_TRUE(found.is_shut);
  EXPECT_FALSE(found.is_acked);
  EXPECT_EQ(found.timeouts, 0U);
}

TEST(LimitSilence, ClosedWindow_AddsItsTimeToTheLimit) {
  const SocketPair pair;
  const SocketTimes times{.user_timeout = std::chrono::seconds(8)};
  limit_silence(pair.dialled, times, std::chrono::seconds(5));
  EXPECT_EQ(tcp_option(pair.dialled, TCP_USER_TIMEOUT), 13'000);
  limit_silence(pair.dialled, times);
  EXPECT_EQ(tcp_option(pair.dialled, TCP_USER_TIMEOUT), 8'000);
}

TEST(Dial, SmallSegments_ApplyToBothDirections) {
  const SocketPair pair(1024);
  EXPECT_LE(tcp_option(pair.dialled, TCP_MAXSEG), 1024);
  EXPECT_LE(tcp_option(pair.accepted, TCP_MAXSEG), 1024);
  EXPECT_GT(tcp_option(SocketPair().dialled, TCP_MAXSEG), 1400);
}

// A blackhole route gives the same error, but only root can add one.
TEST(Dial, AnInvalidDestinationIsNoRoute) {
  Device device;
  device.address = *parse_ip("::1");
  const auto dialled = dial(device, {}, {*parse_ip("fe80::1"), 9});
  ASSERT_FALSE(dialled);
  if (std::string_view(dialled.error().where) != "connect") GTEST_SKIP() << "no IPv6";
  EXPECT_EQ(dialled.error().sys_errno, EINVAL);
  EXPECT_EQ(dialled.error().code, Errc::kNoRoute);
}

TEST(InterfaceState, MissingInterfaceIsToldFromOneThatIsUp) {
  const SocketPair pair;
  EXPECT_EQ(interface_state(pair.dialled.get(), "lo"), InterfaceState::kUp);
  EXPECT_EQ(interface_state(pair.dialled.get(), "nosuch0"), InterfaceState::kMissing);
  EXPECT_EQ(interface_state(pair.dialled.get(), "a-name-that-is-far-too-long"),
            InterfaceState::kUp);
}

TEST(RxQueue, IsTheNapiInstanceElseTheCpuElseUnknown) {
  Device device;
  device.address = Ipv4Address{0x7f000001};
  const Listening listening = *open_listener(device);
  const auto dialled = dial(device, {}, listening.endpoint);
  ASSERT_TRUE(dialled);
  auto accepted = accept(listening.fd, {});
  while (accepted && !*accepted) accepted = accept(listening.fd, {});
  ASSERT_TRUE(accepted);
  const Fd& fd = (*accepted)->fd;
  EXPECT_FALSE(rx_queue(fd)) << "the kernel reports that there is no NIC";
  EXPECT_FALSE(rx_queue(Fd()));
  std::thread([&] {
    forget_napi_instances();
    const auto cpu = rx_queue(fd);
    ASSERT_TRUE(cpu);
    EXPECT_LT(*cpu, static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_CONF)));
  }).join();
}

}  // namespace
}  // namespace ztcp::sockets
