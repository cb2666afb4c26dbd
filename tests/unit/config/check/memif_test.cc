// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks of NICs in shared memory.
#include <sys/socket.h>
#include <sys/un.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(CheckMemif, AStoppedSwitchIsNoFault) {
  const CheckedSoftware machine(NicDriver::kMemif);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckMemif, AMeshPeerCountsOnceForAllItsQueues) {
  CheckedSoftware machine(NicDriver::kMemif);
  machine.nic().memif_role = MemifRole::kMesh;
  machine.nic().queues = 3;
  for (const char* name : {"second", "third"}) {
    machine.fabric.nics.push_back(machine.nic());
    machine.fabric.nics.back().name = name;
  }
  std::string all;
  for (const config::Check& good : machine.of_severity(Severity::kGood)) all += good.problem.what;
  EXPECT_THAT(all, HasSubstr("mesh /sockets/a.sock, 2 peers"));
}

TEST(CheckMemif, AMissingFolderIsAFault) {
  CheckedSoftware machine(NicDriver::kMemif);
  machine.nic().memif_socket = "/nowhere/a.sock";
  EXPECT_THAT(machine.fault("memif").mend, HasSubstr("mkdir -p /nowhere"));
}

TEST(CheckMemif, AnUnwritableFolderIsAFault) {
  for (const MemifRole role : {MemifRole::kServer, MemifRole::kClient}) {
    CheckedSoftware machine(NicDriver::kMemif);
    machine.nic().memif_role = role;
    ::chmod(machine.tree.path("sockets").c_str(), ::geteuid() == 0 ? 0755 : 0555);
    EXPECT_THAT(as_nobody([&] { return machine.fault("memif"); }).what,
                HasSubstr("may not write to"));
  }
}

// The config is beside the sockets: a folder open to all users would expose it.
TEST(CheckMemif, NoMendOpensAFolderToAll) {
  CheckedSoftware machine(NicDriver::kMemif);
  ::chmod(machine.tree.path("sockets").c_str(), ::geteuid() == 0 ? 0755 : 0555);
  const Problem problem = as_nobody([&] { return machine.fault("memif"); });
  EXPECT_THAT(problem.mend, testing::Not(HasSubstr("chmod")));
  EXPECT_THAT(problem.mend, HasSubstr("ztcp_setup --local N --dir FOLDER"));
}

TEST(CheckMemif, AnotherFileAtTheSocketsPathIsAFault) {
  for (const MemifRole role : {MemifRole::kServer, MemifRole::kClient}) {
    CheckedSoftware machine(NicDriver::kMemif);
    machine.nic().memif_role = role;
    machine.tree.add_file("sockets/a.sock", "precious");
    EXPECT_THAT(machine.fault("memif").what, HasSubstr("exists and is not a socket"));
  }
}

TEST(CheckMemif, ASocketWithoutAccessIsAFault) {
  CheckedSoftware machine(NicDriver::kMemif);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  machine.tree.path("sockets/a.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  ::chmod(machine.tree.path("sockets").c_str(), 0777);
  ::chmod(machine.tree.path("sockets/a.sock").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  EXPECT_THAT(as_nobody([&] { return machine.fault("memif"); }).what,
              HasSubstr("may not open " + machine.nic().memif_socket));
}

TEST(CheckMemif, APathTooLongForASocketIsAFault) {
  CheckedSoftware machine(NicDriver::kMemif);
  machine.nic().memif_socket = "/" + std::string(107, 'x');
  EXPECT_THAT(machine.fault("memif").what, HasSubstr("has 108 characters, the kernel takes 107"));
}

TEST(CheckMemif, EachSocketOfAMeshIsChecked) {
  CheckedSoftware machine(NicDriver::kMemif);
  machine.nic().memif_role = MemifRole::kMesh;
  Nic peer = machine.nic();
  peer.name = "ztcp1";
  machine.fabric.nics.push_back(peer);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  const std::string socket = machine.nic().memif_socket + "+ztcp0+ztcp1+0";
  machine.tree.add_file("sockets/a.sock+ztcp0+ztcp1+0", "");
  for (const Check& check : machine.of_severity(Severity::kFault))
    EXPECT_THAT(check.problem.what, HasSubstr(socket + " exists and is not a socket"));
  EXPECT_EQ(machine.of_severity(Severity::kFault).size(), 2U) << "one on each side";
  for (Nic& nic : machine.fabric.nics) nic.memif_socket = "/" + std::string(93, 'x');
  for (const Check& check : machine.of_severity(Severity::kFault))
    EXPECT_THAT(check.problem.what, HasSubstr("has 108 characters, the kernel takes 107"));
  EXPECT_EQ(machine.of_severity(Severity::kFault).size(), 2U);
}

}  // namespace
}  // namespace ztcp::config
