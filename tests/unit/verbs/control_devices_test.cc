// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Events of devices and ports that connections use, and calls that the library refuses.
#include <thread>

#include <gmock/gmock.h>

#include "tests/unit/verbs/connections.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;
using testing::Not;

class DeviceEvents : public Connections {
 protected:
  DeviceEvents() : Connections({roce_device("fake0", 1), roce_device("fake1", 2)}) {}

  void wait_for(const std::string& words, bool is_warning = true) {
    const auto is_said = [&] {
      const auto lines = is_warning ? log_.warnings() : log_.infos();
      return std::ranges::any_of(
          lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
    };
    while (!is_said()) std::this_thread::yield();
  }
  // The error of the receiving end, with a receive in flight.
  Error end_of(Pair& pair) {
    Bytes to(100);
    MemoryKey* const key = register_host(*pair.receiver, to);
    const auto receive = test::post_recv(*pair.receiver, to, key);
    if (!receive) return receive.error();
    const auto received = test::finish(**receive);
    EXPECT_FALSE(received);
    return received ? Error{} : received.error();
  }
  Error refused_connection() {
    auto listener = std::move(*transport_->listen(1, {}));
    auto sender = transport_->begin_connect(0, listener->handle(), {});
    if (!sender) return sender.error();
    Result<bool> ready = false;
    while (ready && !*ready) ready = (*sender)->is_ready();
    EXPECT_FALSE(ready) << "it is connected";
    return ready ? Error{} : ready.error();
  }
};

TEST_F(DeviceEvents, OfACompletionQueueEndItsConnectionAlone) {
  const auto before = host_.devices.pairs_of("fake1");
  Pair lost = pair();
  const auto after = host_.devices.pairs_of("fake1");
  ASSERT_GT(after.size(), before.size());
  Pair other = pair();
  host_.devices.raise_of_pair(after.at(before.size()), IBV_EVENT_CQ_ERR);
  EXPECT_EQ(end_of(lost).code, Errc::kSystem);
  EXPECT_THAT(log_.warned(), HasSubstr("fake1 tells of a CQ error"));
  exchange(other, 100'000, 1);
}

TEST_F(DeviceEvents, OfAQueuePairEndItsConnectionAlone) {
  Pair lost = pair();
  const std::uint32_t number = host_.devices.pairs_of("fake1").front();
  Pair other = pair();
  host_.devices.raise_of_pair(number, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(end_of(lost).code, Errc::kSystem);
  EXPECT_THAT(log_.warned(), HasSubstr("fake1 tells of a local work queue catastrophic error"));
  exchange(other, 100'000, 1);
}

TEST_F(DeviceEvents, OfOtherKindsEndNothing) {
  Pair both = pair();
  host_.devices.raise("fake1", IBV_EVENT_SM_CHANGE);
  wait_for("no connection is lost by that alone", false);
  host_.devices.raise("fake1", IBV_EVENT_PKEY_CHANGE);
  wait_for("the partition keys of fake1 port 1 have changed (P_Key table change)");
  exchange(both, 100'000, 1);
}

// Its interface's address goes and comes back, at another place of the table.
TEST_F(DeviceEvents, AGidThatMovesIsFollowed) {
  Pair before = pair();
  const ibv_gid local = gid_of(0xfe80'0000'0000'0000, 2);
  host_.devices.set_address("fake1", {local, local, {}, {}});
  wait_for("GID 10.0.0.2 of fake1 port 1 is gone (GID table change); new connections use fe80::2");
  {
    Pair meanwhile = pair();
    exchange(meanwhile, 1000, 1);
  }
  host_.devices.set_address("fake1", {local, local, {}, ipv4_gid(2)});
  wait_for("GID fe80::2 of fake1 port 1 is gone");
  Pair after = pair();
  exchange(after, 1000, 2);
  exchange(before, 1000, 3);
}

TEST_F(DeviceEvents, APortWithoutAnyGidIsToldAndServesAgainWithOne) {
  Pair both = pair();
  host_.devices.set_address("fake1", {});
  wait_for(
      "port 1 of fake1 has no GID that can be used; has its interface an address?; new "
      "connections fail until it is back");
  host_.devices.set_address("fake1", {{}, ipv4_gid(2)});
  exchange(both, 1000, 1);
  Pair after = pair();
  exchange(after, 1000, 2);
}

TEST_F(DeviceEvents, AnotherLidIsTold) {
  host_.devices.set_address("fake1", {{}, {}, ipv4_gid(2), ipv4_gid(2)}, 7);
  Pair both = pair();
  host_.devices.set_address("fake1", {{}, {}, ipv4_gid(2), ipv4_gid(2)}, 9);
  wait_for("fake1 port 1 has LID 9 now, and had ");
}

struct RefusalCase {
  const char* call;
  int sys_errno;
  Errc code;
  const char* said;
};
class LibraryRefuses : public DeviceEvents, public testing::WithParamInterface<RefusalCase> {};

TEST_P(LibraryRefuses, TheConnectionIsRefusedByNameAndTheNextOneIsMade) {
  Pair standing = pair();
  host_.devices.refuse(GetParam().call, GetParam().sys_errno);
  const Error error = refused_connection();
  EXPECT_EQ(error.code, GetParam().code) << error.where;
  EXPECT_THAT(log_.warned() + error.where, HasSubstr(GetParam().said));
  host_.devices.refuse(GetParam().call, 0);
  exchange(standing, 100'000, 1);
  Pair again = pair();
  exchange(again, 100'000, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, LibraryRefuses,
    testing::Values(RefusalCase{"ibv_create_cq", ENOMEM, Errc::kSystem, "ibv_create_cq"},
                    RefusalCase{"ibv_create_qp", ENOMEM, Errc::kSystem, "ibv_create_qp"},
                    RefusalCase{"ibv_create_qp", EINVAL, Errc::kSystem, "ibv_create_qp"},
                    RefusalCase{"ibv_modify_qp", EINVAL, Errc::kSystem, "ibv_modify_qp to INIT"},
                    RefusalCase{"ibv_reg_mr", ENOMEM, Errc::kOutOfMemory, "ulimit -l"}),
    [](const auto& row) {
      return std::string(row.param.call) + "_" + std::to_string(row.param.sys_errno);
    });

}  // namespace
}  // namespace ztcp::verbs
