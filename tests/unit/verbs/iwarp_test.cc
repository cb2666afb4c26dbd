// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Devices of iWARP: a connection manager joins their queue pairs, they have no immediates, and a
// completion does not mean arrival.
#include <chrono>
#include <thread>

#include "tests/unit/verbs/connections.h"

namespace ztcp::verbs {
namespace {

using test::Bytes;
using test::Pair;
using testing::HasSubstr;

class Iwarp : public Connections {
 protected:
  explicit Iwarp(std::uint64_t seed = 1)
      : Connections({iwarp_device("fake0", 1), iwarp_device("fake1", 2)}, seed) {}

  static Result<bool> finish_connecting(SendComm& sender) {
    Result<bool> ready = false;
    while (ready && !*ready) {
      ready = sender.is_ready();
      std::this_thread::yield();
    }
    return ready;
  }
};

class SeededIwarp : public Iwarp, public testing::WithParamInterface<std::uint64_t> {
 protected:
  SeededIwarp() : Iwarp(GetParam()) {}
};

TEST_P(SeededIwarp, CarriesMessagesOfAllSizesBothWays) {
  host_.variables.queue_pairs = GetParam() % 4 + 1;
  transport_ = host_.start();
  Pair there = pair();
  Pair back = test::connect(*transport_, *transport_, 0, 1);
  Pair itself = test::connect(*transport_, *transport_, 1, 1);
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 8, 64, 65, 4096, 100'000, 1 << 20}) {
    exchange(there, size, size + 1);
    exchange(back, size, size + 2);
    exchange(itself, size, size + 3);
  }
  // Receives are posted anew.
  for (std::uint64_t round = 0; round < 700; ++round) exchange(there, round % 100, round);
  EXPECT_EQ(host_.devices.carried_out(IBV_WR_RDMA_WRITE_WITH_IMM), 0);
  EXPECT_GE(host_.devices.carried_out(IBV_WR_SEND), 724);
}
INSTANTIATE_TEST_SUITE_P(Seeds, SeededIwarp, testing::Range<std::uint64_t>(0, 12));

// Neither end asks for it, and the other need not either.
TEST_F(Iwarp, ManyConnectionsAreMadeAtOnce) {
  constexpr std::size_t kMany = 24;
  auto listener = std::move(*transport_->listen(1, {}));
  std::vector<SendCommPtr> senders;
  for (std::size_t i = 0; i < kMany; ++i)
    senders.push_back(std::move(*transport_->begin_connect(0, listener->handle(), {})));
  for (const auto& sender : senders) ASSERT_TRUE(finish_connecting(*sender));
  std::vector<RecvCommPtr> receivers;
  while (receivers.size() < kMany) {
    auto receiver = listener->accept();
    ASSERT_TRUE(receiver);
    if (*receiver != nullptr) receivers.push_back(std::move(*receiver));
  }
  // The init line's words.
  EXPECT_THAT(transport_->describe_device(0),
              HasSubstr("fake0 port 1, iWARP, 100000 Mb/s, no PCI function, any GPU"));
}

TEST_F(Iwarp, IsNeverMerged) {
  EXPECT_FALSE(transport_->merge(std::array{0, 1}));
  host_.fabric.nics[0].merge = host_.fabric.nics[1].merge = "both";
  EXPECT_THAT(host_.list()[0].fault,
              HasSubstr("fake0 is an iWARP device, and they are not merged"));
}

TEST_F(Iwarp, ASenderThatClosesLosesNothingThatIsUnderWay) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    Pair both = pair();
    Bytes from = test::pattern(3000, round);
    Bytes to(3000);
    MemoryKey* const from_key = register_host(*both.sender, from);
    MemoryKey* const to_key = register_host(*both.receiver, to);
    const auto receive = test::post_recv(*both.receiver, to, to_key);
    ASSERT_TRUE(receive && *receive != nullptr);
    Request* const send = test::post_until_taken(*both.sender, from, from_key);
    ASSERT_NE(send, nullptr);
    ASSERT_TRUE(test::finish(*send)) << "which says nothing of arrival";
    both.sender.reset();
    const auto received = test::finish(**receive);
    ASSERT_TRUE(received) << received.error().where;
    EXPECT_EQ(from, to);
  }
}

// As where TCP has to send it again.
TEST_F(Iwarp, AMessageArrivesLongAfterItsSenderHasClosed) {
  host_.fabric.messages.drain_timeout_ms = 20'000;
  transport_ = host_.start();
  Pair both = pair();
  Bytes from = test::pattern(3000, 1);
  Bytes to(3000);
  const auto receive = test::post_recv(*both.receiver, to, register_host(*both.receiver, to));
  ASSERT_TRUE(receive && *receive != nullptr);
  Request* const send =
      test::post_until_taken(*both.sender, from, register_host(*both.sender, from));
  ASSERT_NE(send, nullptr);
  host_.devices.hold_arrivals(true);
  ASSERT_TRUE(test::finish(*send));
  both.sender.reset();
  const auto ends = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  while (std::chrono::steady_clock::now() < ends) {
    const auto done = (*receive)->test({});
    ASSERT_TRUE(done) << done.error().where;
    ASSERT_FALSE(*done);
  }
  host_.devices.hold_arrivals(false);
  const auto received = test::finish(**receive);
  ASSERT_TRUE(received) << received.error().where;
  EXPECT_EQ(from, to);
}

TEST_F(Iwarp, AReceiverWhosePeerClosedWithoutAMessageHearsItWhenItsQueuePairFails) {
  Pair both = pair();
  Bytes to(100);
  const auto receive = test::post_recv(*both.receiver, to, register_host(*both.receiver, to));
  ASSERT_TRUE(receive && *receive != nullptr);
  both.sender.reset();
  const auto received = test::finish(**receive);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Errc::kPeerClosed);
}

TEST_F(Iwarp, AFailedQueuePairEndsBothEndsByName) {
  Pair both = pair();
  Bytes bytes(100);
  const auto receive = test::post_recv(*both.receiver, bytes, register_host(*both.receiver, bytes));
  ASSERT_TRUE(receive && *receive != nullptr);
  host_.devices.fail_next_message(IBV_WC_REM_ACCESS_ERR);
  Request* const send =
      test::post_until_taken(*both.sender, bytes, register_host(*both.sender, bytes));
  ASSERT_NE(send, nullptr);
  EXPECT_FALSE(test::finish(*send));
  EXPECT_THAT(log_.warned(), HasSubstr("sending to 127.0.0.2:"));
  EXPECT_THAT(log_.warned(), HasSubstr("of fake1, GID 127.0.0.2"));
  EXPECT_FALSE(test::finish(**receive));
}

// --- What keeps queue pairs from being joined ----------------------------------------------------

TEST_F(Iwarp, APeerThatIsNotHeardOfAgainIsGivenUpInTime) {
  host_.fabric.tcp.connect_timeout_ms = host_.fabric.messages.handshake_timeout_ms = 100;
  transport_ = host_.start();
  host_.devices.ignore_requests();
  auto listener = std::move(*transport_->listen(1, {}));
  auto sender = std::move(*transport_->begin_connect(0, listener->handle(), {}));
  const auto ready = finish_connecting(*sender);
  ASSERT_FALSE(ready);
  EXPECT_THAT(log_.warned(), HasSubstr("may TCP pass to its ports first_port to last_port"));
}

TEST_F(Iwarp, CloseWhileJoiningLeavesNothing) {
  host_.devices.ignore_requests();
  auto listener = std::move(*transport_->listen(1, {}));
  for (int i = 0; i < 8; ++i) {
    auto sender = std::move(*transport_->begin_connect(0, listener->handle(), {}));
    (void)sender->is_ready();
  }
}

TEST_F(Iwarp, WithoutItsLibraryOrItsNodeTheReasonIsTheDevicesFault) {
  transport_.reset();
  host_.devices.refuse_manager(ENOENT);
  EXPECT_THAT(host_.list()[0].fault,
              HasSubstr("/dev/infiniband/rdma_cm: No such file or directory): modprobe rdma_ucm"));
  host_.devices.refuse_manager(0);
  EXPECT_EQ(host_.list()[0].fault, "");
  host_.fabric.nics[0].address.address = host_.fabric.nics[1].address.address;
  EXPECT_THAT(host_.list()[0].fault,
              HasSubstr("its address 127.0.0.2 is not one of fake0's own interface"));
}

TEST(IwarpMixed, APeerOfAnotherNetworkIsRefusedByName) {
  const test::LogCapture log;
  FakeHost host({iwarp_device("fake0", 1), roce_device("fake1", 2)}, 1);
  {
    const auto transport = host.start();
    auto listener = std::move(*transport->listen(1, {}));
    auto sender = std::move(*transport->begin_connect(0, listener->handle(), {}));
    Result<bool> ready = false;
    while (ready && !*ready) ready = sender->is_ready();
    EXPECT_FALSE(ready);
    EXPECT_THAT(log.warned(), HasSubstr("Ethernet here, iWARP at the peer (fake0)"));
  }
  EXPECT_THAT(host.devices.misuse(), testing::IsEmpty());
}

}  // namespace
}  // namespace ztcp::verbs
