// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whole connections over each kind of device that is met, joined over loopback by the real control
// threads.
#include "tests/unit/verbs/device_profiles.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/unit/verbs/connections.h"
#include "tests/unit/verbs/gpu_memory.h"
#include "transport/verbs/connection.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;

class EachProfile : public Connections, public testing::WithParamInterface<Profile> {
 protected:
  EachProfile()
      : Connections({device_of(GetParam(), "fake0", 1), device_of(GetParam(), "fake1", 2)}) {}
};
INSTANTIATE_TEST_SUITE_P(Of, EachProfile, all_profiles(), name_of_row);

TEST_P(EachProfile, CarriesMessagesOfAllSizes) {
  Pair both = pair();
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 8, 64, 65, 4096, 100'000, 1 << 20})
    exchange(both, size, size + 1);
}

TEST_P(EachProfile, SeveralConnectionsAndADeviceWithItself) {
  Pair first = pair();
  Pair second = pair();
  Pair itself = test::connect(*transport_, *transport_, 0);
  for (std::uint64_t round = 0; round < 3; ++round) {
    exchange(first, 5000, round);
    exchange(itself, 70'000, round);
    exchange(second, 10, round);
  }
}

TEST_P(EachProfile, AGroupIsFilledByItsTags) {
  Pair both = pair();
  Bytes from = test::pattern(800, 3);
  Bytes to(800);
  MemoryKey* const from_key = register_host(*both.sender, from);
  MemoryKey* const to_key = register_host(*both.receiver, to);
  std::vector<RecvBuffer> group;
  for (int i = 0; i < 8; ++i)
    group.push_back({std::span(to).subspan(static_cast<std::size_t>(i) * 100, 100), i, to_key});
  const auto receive = both.receiver->post_recv(group);
  ASSERT_TRUE(receive && *receive != nullptr);
  std::vector<Request*> sends;
  for (int i = 7; i >= 0; --i)
    sends.push_back(test::post_until_taken(
        *both.sender,
        std::span<const std::byte>(from).subspan(static_cast<std::size_t>(i) * 100,
                                                 100 - static_cast<std::size_t>(i)),
        from_key, i));
  std::array<std::size_t, 8> sizes{};
  while (!*(*receive)->test(sizes))
    for (Request*& send : sends)
      if (send != nullptr && *send->test({})) send = nullptr;
  for (Request* const send : sends) EXPECT_TRUE(send == nullptr || test::finish(*send));
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(sizes[i], 100 - i);
    EXPECT_EQ(std::memcmp(from.data() + i * 100, to.data() + i * 100, 100 - i), 0);
  }
}

TEST_P(EachProfile, PostsBeyondWhatIsOutstandingWait) {
  Pair both = pair();
  std::byte byte{};
  MemoryKey* const key = register_host(*both.receiver, {&byte, 1});
  int taken = 0;
  for (int i = 0; i < 40; ++i) {
    const auto posted = test::post_recv(*both.receiver, {&byte, 1}, key);
    ASSERT_TRUE(posted);
    taken += *posted != nullptr ? 1 : 0;
  }
  EXPECT_EQ(taken, 32);
}

TEST_P(EachProfile, AMessageTooLargeEndsBothEndsByName) {
  Pair both = pair();
  Bytes from(101);
  Bytes to(100);
  MemoryKey* const from_key = register_host(*both.sender, from);
  MemoryKey* const to_key = register_host(*both.receiver, to);
  const auto receive = test::post_recv(*both.receiver, to, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  Result<Request*> send = nullptr;
  while (send && *send == nullptr) send = both.sender->post_send(from, 0, from_key);
  ASSERT_FALSE(send);
  EXPECT_EQ(send.error().code, Errc::kTruncated);
  const auto received = test::finish(**receive);
  ASSERT_FALSE(received);
  // Over iWARP the end of the queue pairs may be there before the peer's word.
  if (device_of(GetParam(), "", 1).is_iwarp) {
    EXPECT_THAT(received.error().code, testing::AnyOf(Errc::kTruncated, Errc::kPeerClosed));
  } else {
    EXPECT_EQ(received.error().code, Errc::kTruncated);
  }
  EXPECT_THAT(log_.warned(), HasSubstr("a message of 101 bytes with tag 0 for a buffer of 100"));
}

TEST_P(EachProfile, AReceiverWhosePeerClosedHearsIt) {
  Pair both = pair();
  Bytes to(100);
  MemoryKey* const to_key = register_host(*both.receiver, to);
  const auto receive = test::post_recv(*both.receiver, to, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  both.sender.reset();
  const auto received = test::finish(**receive);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Errc::kPeerClosed);
  EXPECT_THAT(log_.warned(), HasSubstr("it has closed the connection"));
}

TEST_P(EachProfile, ADeviceThatDiesEndsItsConnections) {
  Pair both = pair();
  Bytes to(100);
  MemoryKey* const to_key = register_host(*both.receiver, to);
  const auto receive = test::post_recv(*both.receiver, to, to_key);
  ASSERT_TRUE(receive && *receive != nullptr);
  host_.devices.raise("fake1", IBV_EVENT_DEVICE_FATAL);
  const auto received = test::finish(**receive);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Errc::kNoDevice);
  EXPECT_THAT(log_.warned(), HasSubstr("fake1 tells of a local catastrophic error"));
}

TEST_P(EachProfile, MemoryThatNobodyRegisteredIsRefused) {
  Pair both = pair();
  Bytes bytes(8);
  EXPECT_FALSE(both.sender->post_send(bytes, 0, nullptr));
  EXPECT_FALSE(test::post_recv(*both.receiver, bytes));
  host_.devices.refuse("ibv_reg_mr", ENOMEM);
  const auto key =
      both.sender->register_memory({.address = bytes.data(), .size_bytes = bytes.size()});
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, Errc::kOutOfMemory);
  EXPECT_THAT(key.error().where, HasSubstr("ulimit -l"));
}

// Devices with writes that the GPU does not see before a flush.
class EachGpuProfile : public EachProfile {};
INSTANTIATE_TEST_SUITE_P(Of, EachGpuProfile, gpu_profiles(), name_of_row);

TEST_P(EachGpuProfile, GpuMemory_BytesAreSeenAfterAFlush) {
  constexpr std::size_t kSize = 100'000;
  Pair both = pair();
  const GpuMemory to(kSize);
  const auto to_key = both.receiver->register_memory(to.region());
  ASSERT_TRUE(to_key) << to_key.error().where;
  for (std::uint64_t round = 0; round < 3; ++round) {
    Bytes from = test::pattern(kSize, round);
    MemoryKey* const from_key = register_host(*both.sender, from);
    const auto receive = test::post_recv(*both.receiver, to.bytes(), *to_key);
    ASSERT_TRUE(receive && *receive != nullptr);
    Request* const send = test::post_until_taken(*both.sender, from, from_key);
    ASSERT_NE(send, nullptr);
    finish_both(**receive, *send, kSize);
    const RecvBuffer buffer{.bytes = to.bytes(), .tag = 0, .key = *to_key};
    const auto flush = both.receiver->post_flush({&buffer, 1});
    ASSERT_TRUE(flush && *flush != nullptr);
    ASSERT_TRUE(test::finish(**flush)) << log_.warned();
    EXPECT_TRUE(test::are_equal(to.seen(), from));
    EXPECT_TRUE(both.sender->deregister_memory(from_key));
  }
  EXPECT_TRUE(both.receiver->deregister_memory(*to_key));
}

// --- What the fakes are to be like ---------------------------------------------------------------

TEST(Profiles, OneWithoutReliableConnectionsIsRefusedByName) {
  const FakeHost host({device_of(Profile::kEfa, "fake0", 1), device_of(Profile::kMlx5, "fake1", 2)},
                      1);
  const std::vector<Device> devices = host.list();
  EXPECT_THAT(devices[0].fault, HasSubstr("port 1 of fake0 is neither InfiniBand, RoCE nor iWARP"));
  EXPECT_EQ(devices[1].fault, "");
}

// A product that takes the last bytes of a message for its end, as over memory that PCIe writes in
// order, finds others missing.
TEST(Profiles, LinesOfAWriteWithRelaxedOrderingArriveBeforeItsCompletionInAnyOrder) {
  constexpr std::size_t kSize = 64 * 128;
  FakeHost host({device_of(Profile::kMlx5, "fake0", 1), device_of(Profile::kMlx5, "fake1", 2)}, 1);
  std::vector<std::shared_ptr<Rail>> rails;
  for (Device& device : host.list()) rails.push_back(std::make_shared<Rail>(std::move(device)));
  const auto set_of = [&](std::size_t i) { return std::make_shared<RailSet>("", Rails{rails[i]}); };
  Connection sender(set_of(0), Direction::kSend, {});
  Connection receiver(set_of(1), Direction::kReceive, {});
  ASSERT_TRUE(sender.prepare(-1));
  const EndFacts hello = sender.facts();
  ASSERT_TRUE(receiver.prepare(-1, &hello));
  ASSERT_TRUE(receiver.join(hello));
  ASSERT_TRUE(sender.join(receiver.facts()));
  Bytes from(kSize, std::byte{1});
  const auto source =
      sender.rails().registrations.add({.address = from.data(), .size_bytes = kSize});
  ASSERT_TRUE(source);
  std::size_t ends_ahead = 0;
  for (int round = 0; round < 20; ++round) {
    Bytes to(kSize);
    const auto target =
        receiver.rails().registrations.add({.address = to.data(), .size_bytes = kSize});
    ASSERT_TRUE(target);
    const WorkRequest write{.is_signalled = true,
                            .local = from.data(),
                            .lkey = registered(*source)->lkeys[0],
                            .size_bytes = kSize,
                            .remote = reinterpret_cast<std::uint64_t>(to.data()),
                            .rkey = registered(*target)->rkeys[0]};
    ASSERT_TRUE(sender.traffic().post(0, write));
    std::array<ibv_wc, 1> completion;
    bool is_over = false;
    while (!is_over) {
      is_over = sender.rail_states()[0].queues->poll(completion) == 1;
      const bool has_end = to.back() == std::byte{1};
      const bool has_all = std::count(to.begin(), to.end(), std::byte{1}) == std::ptrdiff_t{kSize};
      if (is_over) {
        EXPECT_TRUE(has_all);
      }
      if (!is_over && has_end && !has_all) {
        ++ends_ahead;
        break;
      }
    }
    while (!is_over) is_over = sender.rail_states()[0].queues->poll(completion) == 1;
    EXPECT_TRUE(receiver.rails().registrations.remove(*target));
  }
  EXPECT_GT(ends_ahead, 3U);
  EXPECT_TRUE(sender.rails().registrations.remove(*source));
}

}  // namespace
}  // namespace ztcp::verbs
