// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection.h"

#include <array>
#include <utility>
#include <vector>

#include "tests/unit/verbs/fake_host.h"
#include "transport/verbs/peer_probe.h"

namespace ztcp::verbs {
namespace {

std::shared_ptr<RailSet> alone(Device device) {
  return std::make_shared<RailSet>("alone", Rails{std::make_shared<Rail>(std::move(device))});
}

// A receiver's own ring holds its posts, and the destination of bytes that arrive over TCP: a peer
// that could write there could write to any memory of the process.
TEST(Connection, ReceiversRing_IsNotWritableByThePeer) {
  FakeHost host;
  std::vector<Device> devices = host.list();
  Connection sender(alone(std::move(devices[0])), Direction::kSend, {});
  Connection receiver(alone(std::move(devices[1])), Direction::kReceive, {});
  ASSERT_TRUE(sender.prepare(-1));
  const EndFacts hello = sender.facts();
  ASSERT_TRUE(receiver.prepare(-1, &hello));
  const EndFacts answer = receiver.facts();
  ASSERT_TRUE(receiver.join(hello));
  ASSERT_TRUE(sender.join(answer));

  const std::array<std::byte, 4> forged{std::byte{0xff}};
  const WorkRequest write{.is_signalled = true,
                          .is_inline = true,
                          .local = forged.data(),
                          .size_bytes = forged.size(),
                          .remote = reinterpret_cast<std::uint64_t>(&receiver.memory().ring),
                          .rkey = answer.on[0].memory_rkey};
  ASSERT_TRUE(sender.traffic().post(0, write));
  std::array<ibv_wc, 1> completion;
  while (sender.rail_states().front().queues->poll(completion) == 0) {
  }
  EXPECT_EQ(completion[0].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(receiver.memory().ring[0].address, 0U);
}

// NCCL_IB_TIMEOUT=0 has the NIC wait for ever, of a host that is gone, too.
TEST(Connection, APeerThatNothingAnswersForIsGivenUpWhateverTheNicsTimeout) {
  using std::chrono::minutes;
  const auto limit_with = [](int timeout) {
    FakeHost host;
    host.variables.timeout = timeout;
    std::vector<Device> devices = host.list();
    Connection sender(alone(std::move(devices[0])), Direction::kSend, {});
    Connection receiver(alone(std::move(devices[1])), Direction::kReceive, {});
    EXPECT_TRUE(sender.prepare(-1));
    const EndFacts hello = sender.facts();
    EXPECT_TRUE(receiver.prepare(-1, &hello));
    const EndFacts answer = receiver.facts();
    EXPECT_TRUE(receiver.join(hello));
    EXPECT_TRUE(sender.join(answer));
    host.devices.lose_acknowledgements(true);
    const TimePoint begun(minutes(1000));
    TimePoint now = begun;
    Status asked;
    for (; asked && now < begun + minutes(100); now += minutes(1))
      asked = probe_peer(sender.traffic(), now);
    EXPECT_EQ(asked.error().code, Errc::kTimedOut);
    return now - minutes(1) - begun;
  };
  EXPECT_EQ(limit_with(0), minutes(60));
  EXPECT_EQ(limit_with(31), minutes(60));
  EXPECT_EQ(limit_with(20), minutes(10)) << "the NIC's own timeout has told by then";
}

// The class that queue pairs of the device are given at that end.
std::vector<QueuePairSettings> settings_of(FakeHost& host, Direction direction, int asked) {
  std::vector<QueuePairSettings> out;
  for (Device& device : host.list()) {
    Connection one(alone(std::move(device)), direction, {});
    EXPECT_TRUE(one.prepare(asked));
    out.push_back(one.rail_states().front().settings);
  }
  return out;
}

TEST(Connection, SlotsHaveATrafficClassOfTheirOwnWhereTheyAreGivenOne) {
  FakeHost host;
  host.variables.traffic_class = 106;
  EXPECT_EQ(settings_of(host, Direction::kReceive, 4)[0].traffic_class, 106);
  host.variables.slot_traffic_class = 104;
  EXPECT_EQ(settings_of(host, Direction::kReceive, 4)[0].traffic_class, 104);
  EXPECT_EQ(settings_of(host, Direction::kSend, 4)[0].traffic_class, 106);
}

TEST(Connection, TheCommunicatorsClassIsTheServiceLevelOfInfiniBand) {
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  FakeHost host({spec, roce_device("fake1", 2)}, 1);
  const auto levels = [&](int asked) {
    const auto found = settings_of(host, Direction::kSend, asked);
    return std::vector<int>{found[0].service_level, found[1].service_level};
  };
  EXPECT_EQ(levels(5), (std::vector<int>{5, 0}));
  EXPECT_EQ(levels(-1), (std::vector<int>{0, 0}));
  EXPECT_EQ(levels(106), (std::vector<int>{0, 0})) << "no level";
}

}  // namespace
}  // namespace ztcp::verbs
