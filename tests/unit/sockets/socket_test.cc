// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/socket.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

// Of this thread alone, to its end.
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

// Containers do that; a turn that tried for ever would hang the training.
TEST(Accept, WhereItIsForbiddenEndsAndSaysSo) {
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
  EXPECT_TRUE(accept(listening.fd, {})) << "and nobody waits";
}

// Of this thread alone, to its end: as kernels that can't poll busily.
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

TEST(RxQueue, IsTheNicsElseACpuElseNotKnown) {
  Device device;
  device.address = Ipv4Address{0x7f000001};
  const Listening listening = *open_listener(device);
  const auto dialled = dial(device, {}, listening.endpoint);
  ASSERT_TRUE(dialled);
  auto accepted = accept(listening.fd, {});
  while (accepted && !*accepted) accepted = accept(listening.fd, {});
  ASSERT_TRUE(accepted);
  const link::Fd& fd = (*accepted)->fd;
  EXPECT_FALSE(rx_queue(fd)) << "no NIC, and the kernel says so";
  EXPECT_FALSE(rx_queue(link::Fd()));
  std::thread([&] {
    forget_napi_instances();
    const auto cpu = rx_queue(fd);
    ASSERT_TRUE(cpu);
    EXPECT_LT(*cpu, static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_CONF)));
  }).join();
}

}  // namespace
}  // namespace ztcp::sockets
