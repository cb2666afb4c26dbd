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
#include <sys/syscall.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

using testing::HasSubstr;

TEST(ListenAdvice, OfPortsNamesTheRangeAndTheFile) {
  Device device;
  device.first_port = 7472;
  device.last_port = 7473;
  EXPECT_THAT(listen_advice({Errc::kBusy, EADDRINUSE, "bind"}, device, "/etc/ztcp.conf"),
              HasSubstr("takes a port of 7472-7473: widen first_port and last_port in "
                        "/etc/ztcp.conf"));
  // Without a config the kernel chooses, and has none left.
  EXPECT_THAT(listen_advice({Errc::kBusy, EADDRINUSE, "bind"}, Device{}, ""),
              HasSubstr("sysctl -w net.ipv4.ip_local_port_range="));
}

// Kernels before 5.7 want a privilege for it.
TEST(ListenAdvice, OfBindingToAnInterfaceNamesThePrivilege) {
  Device device;
  device.interface = "eth1";
  const std::string advice = listen_advice({Errc::kSystem, EPERM, "SO_BINDTODEVICE"}, device, "");
  EXPECT_THAT(advice, HasSubstr("in the network of eth1"));
  EXPECT_THAT(advice, HasSubstr("CAP_NET_RAW"));
  EXPECT_EQ(listen_advice({Errc::kSystem, ENODEV, "SO_BINDTODEVICE"}, device, ""), "");
  EXPECT_EQ(listen_advice({Errc::kSystem, EPERM, "bind"}, device, ""), "");
}

TEST(ResourceAdvice, NamesWhatIsMissing) {
  struct Row {
    int sys_errno;
    const char* advice;
  };
  for (const auto& [sys_errno, advice] :
       {Row{EMFILE, "raise ulimit -n"}, Row{ENFILE, "fs.file-max"}, Row{ENOMEM, "no memory"},
        Row{ENOSPC, "fs.epoll.max_user_watches"}, Row{EAGAIN, "raise ulimit -u"},
        Row{EPERM, "seccomp"}, Row{ENOSYS, "seccomp"}})
    EXPECT_THAT(resource_advice(sys_errno), HasSubstr(advice));
  EXPECT_EQ(resource_advice(EINVAL), "");
  EXPECT_THAT(listen_advice({Errc::kOutOfMemory, EMFILE, "socket"}, {}, ""),
              HasSubstr("raise ulimit -n"));
}

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

}  // namespace
}  // namespace ztcp::sockets
