// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The whole transport over a link in memory, with its real threads. Nothing here waits for time to
// pass: every loop polls as NCCL does, and ends when the library answers.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/unit/ustack/memory_nics.h"
#include "tests/unit/ustack/polling.h"
#include "transport/core/listen_address.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {
namespace {

class Transfers : public testing::TestWithParam<config::PollerMode> {
 protected:
  HostOptions options() const { return {.mode = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Modes, Transfers,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         [](const auto& row) {
                           return row.param == config::PollerMode::kShared ? "shared" : "dedicated";
                         });

// One proxy thread per host, eight messages in flight, sizes around every limit there is.
TEST_P(Transfers, EveryByteArrivesOnceAndInOrder) {
  TwoHosts hosts(options());
  Pair pair = connect(hosts[0], hosts[1]);
  const std::array<std::size_t, 12> sizes = {0,     1,     8,      127,    128,       4096,
                                             65536, 65537, 131072, 131073, 1U << 20U, 300001};
  constexpr std::size_t kMessages = 96;
  constexpr std::size_t kDepth = 8;

  std::thread sending([&] {
    std::array<Bytes, kDepth> buffers;
    std::array<Request*, kDepth> in_flight{};
    for (std::size_t i = 0; i < kMessages + kDepth; ++i) {
      const std::size_t at = i % kDepth;
      if (in_flight[at] != nullptr) {
        ASSERT_TRUE(finish(*in_flight[at]));
      }
      in_flight[at] = nullptr;
      if (i >= kMessages) continue;
      buffers[at] = pattern(sizes[i % sizes.size()], i);
      in_flight[at] = post_until_taken(*pair.sender, buffers[at], nullptr);
      ASSERT_NE(in_flight[at], nullptr);
    }
  });
  std::array<Bytes, kDepth> buffers;
  std::array<Request*, kDepth> in_flight{};
  for (std::size_t i = 0; i < kMessages + kDepth; ++i) {
    const std::size_t at = i % kDepth;
    if (in_flight[at] != nullptr) {
      const std::size_t message = i - kDepth;
      const auto size = finish(*in_flight[at]);
      ASSERT_TRUE(size);
      ASSERT_EQ(*size, sizes[message % sizes.size()]);
      ASSERT_TRUE(std::equal(buffers[at].begin(),
                             buffers[at].begin() + static_cast<std::ptrdiff_t>(*size),
                             pattern(*size, message).begin()))
          << "message " << message;
    }
    in_flight[at] = nullptr;
    if (i >= kMessages) continue;
    buffers[at].assign(1U << 20U, std::byte{0xee});
    const auto request = post_recv(*pair.receiver, buffers[at]);
    ASSERT_TRUE(request);
    ASSERT_NE(*request, nullptr);
    in_flight[at] = *request;
  }
  sending.join();
}

// Two proxies of one process use one NIC at once.
TEST_P(Transfers, TwoProgressThreadsShareANic) {
  TwoHosts hosts(options());
  std::array<Pair, 2> pairs = {connect(hosts[0], hosts[1]), connect(hosts[0], hosts[1])};
  std::vector<std::thread> threads;
  for (std::size_t which = 0; which < pairs.size(); ++which) {
    threads.emplace_back([&, which] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const Bytes bytes = pattern(5000, i * 2 + which);
        Request* request = post_until_taken(*pairs[which].sender, bytes, nullptr);
        ASSERT_NE(request, nullptr);
        ASSERT_TRUE(finish(*request));
      }
    });
    threads.emplace_back([&, which] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        Bytes bytes(5000);
        const auto request = post_recv(*pairs[which].receiver, bytes);
        ASSERT_TRUE(request && *request != nullptr);
        ASSERT_TRUE(finish(**request));
        ASSERT_EQ(bytes, pattern(5000, i * 2 + which));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Transfers, ANicConnectsToItself) {
  TwoHosts hosts(options());
  Pair pair = connect(hosts[0], hosts[0]);
  const Bytes sent = pattern(400000, 3);
  Bytes received(sent.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  Request* sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(**receiving));
  ASSERT_TRUE(finish(*sending));
  EXPECT_EQ(received, sent);
}

TEST_P(Transfers, ManyConnectionsComeAndGo) {
  TwoHosts hosts(options());
  for (std::uint64_t i = 0; i < 50; ++i) {
    Pair pair = connect(hosts[0], hosts[1]);
    const Bytes sent = pattern(100, i);
    Bytes received(100);
    const auto receiving = post_recv(*pair.receiver, received);
    ASSERT_TRUE(receiving && *receiving != nullptr);
    Request* sending = post_until_taken(*pair.sender, sent, nullptr);
    ASSERT_NE(sending, nullptr);
    ASSERT_TRUE(finish(**receiving));
    ASSERT_TRUE(finish(*sending));
    ASSERT_EQ(received, sent);
  }
}

// Further flows come with the first large message. They must not take the places of connections
// that are still to come.
TEST_P(Transfers, FurtherFlowsLeaveRoomForFirstOnes) {
  HostOptions small_table = options();
  small_table.max_connections = 32;
  TwoHosts hosts(small_table);
  const Bytes sent = pattern(1U << 20U, 1);
  Bytes received(sent.size());
  std::vector<Pair> pairs;
  for (int i = 0; i < 20; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    const Pair& pair = pairs.back();
    ASSERT_TRUE(pair.sender && pair.receiver) << i;
    for (int again = 0; again < 3; ++again) {
      const auto receiving = post_recv(*pair.receiver, received);
      ASSERT_TRUE(receiving && *receiving != nullptr);
      Request* sending = post_until_taken(*pair.sender, sent, nullptr);
      ASSERT_NE(sending, nullptr);
      ASSERT_TRUE(finish(**receiving)) << i;
      ASSERT_TRUE(finish(*sending)) << i;
      ASSERT_EQ(received, sent);
    }
  }
}

TEST(Shared, ASmallMessageLeavesWithinTheCall) {
  // The background thread sleeps so long that only the call itself can have sent it.
  TwoHosts hosts({.mode = config::PollerMode::kShared, .max_sleep_us = 100'000'000});
  Pair pair = connect(hosts[0], hosts[1]);
  const Bytes bytes = pattern(8, 1);
  const std::uint64_t before = hosts.links[0]->counters().tx_frames;
  ASSERT_NE(post_until_taken(*pair.sender, bytes, nullptr), nullptr);
  EXPECT_EQ(hosts.links[0]->counters().tx_frames, before + 1);
}

TEST(Requests, ThirtyTwoAreOutstandingAndNoMore) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  std::array<std::array<std::byte, 8>, 33> buffers{};
  for (int i = 0; i < 32; ++i) {
    const auto request = post_recv(*pair.receiver, buffers[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(request);
    EXPECT_NE(*request, nullptr) << i;
  }
  const auto request = post_recv(*pair.receiver, buffers[32]);
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, nullptr);
}

TEST(Requests, AMessageLargerThanItsBufferFailsTheConnection) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes small(100);
  const auto receiving = post_recv(*pair.receiver, small);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  const Bytes large(101);
  ASSERT_NE(post_until_taken(*pair.sender, large, nullptr), nullptr);
  const auto result = finish(**receiving);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kTruncated);
  // Every later call says the same.
  const auto again = post_recv(*pair.receiver, small);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kTruncated);
}

// NCCL aborts: it closes with requests in flight and frees the buffers at once.
TEST(Close, WithReceivesInFlightTouchesNoBufferAfterwards) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes buffer(1U << 20U, std::byte{0x11});
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  pair.receiver.reset();
  const Bytes before = buffer;
  const Bytes message(1U << 20U, std::byte{0x22});
  Request* sending = post_until_taken(*pair.sender, message, nullptr);
  // The sender hears of the reset, at the latest when its message finds nobody.
  if (sending != nullptr) {
    EXPECT_FALSE(finish(*sending));
  }
  EXPECT_EQ(buffer, before);
}

TEST(Close, AfterTheLastMessageLosesNothing) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  const Bytes sent = pattern(100000, 9);
  Request* sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(*sending));
  pair.sender.reset();
  Bytes received(sent.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  const auto size = finish(**receiving);
  ASSERT_TRUE(size);
  EXPECT_EQ(received, sent);
}

TEST(Listener, SessionsThatNobodyAcceptedAreReset) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(sender);
  while (true) {
    const auto ready = (*sender)->is_ready();
    ASSERT_TRUE(ready);
    if (*ready) break;
    std::this_thread::yield();
  }
  listener->reset();
  const Bytes bytes(8);
  Request* request = post_until_taken(**sender, bytes, nullptr);
  if (request != nullptr) {
    // The few bytes may have been taken before the reset; then the next message finds out.
    const auto first = finish(*request);
    if (first) {
      const Bytes large(1U << 20U);
      request = post_until_taken(**sender, large, nullptr);
      if (request != nullptr) {
        EXPECT_FALSE(finish(*request));
      }
    }
  }
}

TEST(Listener, AStaleHandleIsRefused) {
  TwoHosts hosts;
  PeerHandle stale;
  {
    auto listener = hosts[1].listen(0, {});
    ASSERT_TRUE(listener);
    stale = (*listener)->handle();
  }
  auto sender = hosts[0].begin_connect(0, stale, {});
  ASSERT_TRUE(sender);
  auto ready = (*sender)->is_ready();
  while (ready && !*ready) {
    std::this_thread::yield();
    ready = (*sender)->is_ready();
  }
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kRefused);
}

TEST(Limit, IsWhatNcclIsToldAndNamedWhenItIsReached) {
  TwoHosts hosts({.max_connections = 8});
  EXPECT_EQ(hosts[0].devices()[0].max_comms, 8);
  std::vector<Pair> pairs;
  for (int i = 0; i < 8; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    ASSERT_TRUE(pairs.back().sender && pairs.back().receiver) << i;
  }
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const test::LogCapture log;
  const auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kFull);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_EQ(log.warnings()[0],
            "mem0: all 8 connections of this NIC are taken, sends and receives together: raise "
            "max_connections in [tcp] of test.conf (up to 4096), or let NCCL open fewer "
            "(NCCL_NCHANNELS_PER_NET_PEER=1)");
}

TEST(Limit, OfThePeerIsNamedAtOnce) {
  TwoHosts hosts({.max_connections = 16}, {.max_connections = 8});
  std::vector<Pair> pairs;
  for (int i = 0; i < 8; ++i) pairs.push_back(connect(hosts[0], hosts[1]));
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const test::LogCapture log;
  auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(sender);
  auto ready = (*sender)->is_ready();
  while (ready && !*ready) {
    std::this_thread::yield();
    ready = (*sender)->is_ready();
  }
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kFull);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(log.warnings()[0].find("the peer refused: all 8 connections of its NIC are taken"),
            std::string::npos)
      << log.warnings()[0];
  EXPECT_NE(log.warnings()[0].find("raise max_connections in [tcp] of that host's ztcp.conf"),
            std::string::npos)
      << log.warnings()[0];
}

// The table of connections is reserved whole; where that is not allowed, the limit is named.
TEST(Limit, ThatMemoryDoesNotAllowIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more than any limit leaves";
#endif
  TwoHosts hosts({.max_connections = 4096});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 512U << 20U;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const test::LogCapture log;
  const auto listener = hosts[0].listen(0, {});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::kOutOfMemory);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(log.warnings()[0].find("MiB for 4096 connections can't be reserved"), std::string::npos)
      << log.warnings()[0];
  EXPECT_NE(log.warnings()[0].find("max_connections in [tcp] of test.conf"), std::string::npos);
}

TEST(Memory, DeregisteredInFlightEndsTheConnection) {
  TwoHosts hosts({.drain_timeout_ms = 20});
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes large(1U << 20U);  // Beyond the eager allowance, and nobody posts for it.
  const auto key = pair.sender->register_memory({large.data(), large.size()});
  ASSERT_TRUE(key);
  Request* request = post_until_taken(*pair.sender, large, *key);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(pair.sender->deregister_memory(*key));
  const auto result = finish(*request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kAborted);
}

// NCCL aborts: it takes the memory of every connection back, and closes it.
TEST(Ends, OfManyAreSaidOnceWithTheirNumberAndTheFirstCause) {
  TwoHosts hosts({.drain_timeout_ms = 20});
  const test::LogCapture log;
  std::vector<Pair> pairs;
  Bytes large(1U << 20U);  // Beyond the eager allowance, and nobody posts for it.
  for (int i = 0; i < 20; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    const auto key = pairs.back().sender->register_memory({large.data(), large.size()});
    ASSERT_TRUE(key);
    ASSERT_NE(post_until_taken(*pairs.back().sender, large, *key), nullptr);
    EXPECT_TRUE(pairs.back().sender->deregister_memory(*key));
  }
  const std::string first =
      "memory with bytes in flight is deregistered: the connection to 10.1.0.2:7471 is ended";
  EXPECT_EQ(log.warnings(), std::vector<std::string>{"mem0: " + first});
  for (Pair& pair : pairs) pair.sender.reset();
  ASSERT_EQ(log.warnings().size(), 2U);
  EXPECT_EQ(log.warnings()[1],
            "mem0: 19 more connections ended after the first: 0 failed, 19 were closed with "
            "messages in flight, as an abort does; the first: " +
                first);
}

TEST(Ends, OfOneCauseAreSaidOncePerPeer) {
  TwoHosts hosts;
  const test::LogCapture log;
  std::vector<Pair> pairs;
  Bytes small(100);
  const Bytes large(101);
  for (int i = 0; i < 10; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    const auto receiving = post_recv(*pairs.back().receiver, small);
    ASSERT_TRUE(receiving && *receiving != nullptr);
    ASSERT_NE(post_until_taken(*pairs.back().sender, large, nullptr), nullptr);
    EXPECT_FALSE(finish(**receiving));
  }
  ASSERT_EQ(log.warnings().size(), 1U);
  for (Pair& pair : pairs) pair.receiver.reset();
  ASSERT_EQ(log.warnings().size(), 2U);
  EXPECT_EQ(log.warnings()[1].find("mem1: 9 more connections ended after the first: 9 failed, 0 "),
            0U)
      << log.warnings()[1];
}

// An abort of a job whose network is gone: hundreds of peers, one after the other.
TEST(Memory, PeersThatAreGoneAreWaitedForTogether) {
  using std::chrono::milliseconds;
  MemoryPatience patience;
  patience.set(milliseconds(2000));
  const auto peer = [](std::uint32_t n) { return Ipv4Address{0x0a010000U + n}; };
  EXPECT_EQ(patience.for_peer(peer(1)), milliseconds(2000));
  patience.ran_out(peer(1), milliseconds(1500));
  EXPECT_EQ(patience.for_peer(peer(1)), Duration::zero());
  EXPECT_EQ(patience.for_peer(peer(2)), milliseconds(500));
  Duration waited = milliseconds(1500);
  for (std::uint32_t n = 2; n < 100; ++n) {
    const Duration again = patience.for_peer(peer(n));
    patience.ran_out(peer(n), again);
    waited += again;
  }
  EXPECT_LE(waited, milliseconds(2000) + 98 * MemoryPatience::kLeast);
  EXPECT_EQ(patience.for_peer(peer(100)), MemoryPatience::kLeast) << "a living one needs its ACKs";
}

// A receive is never waited for, so it says nothing of its peer: sends to it keep their patience.
TEST(Memory, APostedReceiveSpendsNoPatience) {
  TwoHosts hosts({.drain_timeout_ms = 60000});
  Pair there = connect(hosts[0], hosts[1]);
  Pair back = connect(hosts[1], hosts[0]);
  Bytes into(1U << 20U);
  const auto into_key = back.receiver->register_memory({into.data(), into.size()});
  ASSERT_TRUE(into_key);
  const auto receiving = post_recv(*back.receiver, into, *into_key);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  EXPECT_TRUE(back.receiver->deregister_memory(*into_key));

  Bytes from(1U << 20U);
  const auto from_key = there.sender->register_memory({from.data(), from.size()});
  ASSERT_TRUE(from_key);
  Request* sending = post_until_taken(*there.sender, from, *from_key);
  ASSERT_NE(sending, nullptr);
  Bytes received(from.size());
  std::thread receiver([&] {
    const auto request = post_recv(*there.receiver, received);
    ASSERT_TRUE(request && *request != nullptr);
    EXPECT_TRUE(finish(**request));
  });
  EXPECT_TRUE(there.sender->deregister_memory(*from_key));
  EXPECT_TRUE(finish(*sending)) << "it was ended although its peer lives";
  receiver.join();
}

TEST(Memory, DeregisteredIdleLeavesTheConnectionAlone) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes idle(4096);
  const auto key = pair.sender->register_memory({idle.data(), idle.size()});
  ASSERT_TRUE(key);
  Bytes other(1U << 20U);
  Request* request = post_until_taken(*pair.sender, other, nullptr);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(pair.sender->deregister_memory(*key));
  Bytes received(other.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  EXPECT_TRUE(finish(**receiving));
  EXPECT_TRUE(finish(*request));
  EXPECT_FALSE(pair.sender->deregister_memory(*key)) << "a key died twice";
}

TEST(Devices, ATakenNicIsBusy) {
  auto source = std::make_shared<MemoryNics>();
  source->take("mem0");
  auto transport = create(one_nic_fabric(0), nullptr, source);
  ASSERT_TRUE(transport);
  const auto listener = (*transport)->listen(0, {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::kBusy);
}

TEST(Devices, NothingIsTouchedBeforeTheFirstListen) {
  auto source = std::make_shared<MemoryNics>();
  auto transport = create(one_nic_fabric(0), nullptr, source);
  ASSERT_TRUE(transport);
  ASSERT_EQ((*transport)->devices().size(), 1U);
  EXPECT_EQ((*transport)->devices()[0].name, "mem0");
  EXPECT_EQ(source->threads_started.load(), 0);
}

TEST(Devices, ThreadsEndWithTheTransport) {
  auto hosts = std::make_unique<TwoHosts>();
  const auto sources = hosts->sources;
  static_cast<void>(connect((*hosts)[0], (*hosts)[1]));
  hosts.reset();
  for (const auto& source : sources) {
    EXPECT_EQ(source->threads_started.load(), 1);
    EXPECT_EQ(source->threads_ended.load(), 1);
  }
}

TEST(Devices, AnAddressWithoutARouteFails) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  PeerHandle far = (*listener)->handle();
  far.bytes[13] = std::byte{200};  // 10.200...: outside the /24, and there is no gateway.
  const auto sender = hosts[0].begin_connect(0, far, {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
}

TEST(Devices, AnIpv6PeerIsRefusedByName) {
  TwoHosts hosts;
  test::LogCapture log;
  const PeerHandle peer{TransportKind::kUstack,
                        to_bytes({.endpoint = {*parse_ip("2001:db8::1"), 7471}, .watch = {}})};
  const auto sender = hosts[0].begin_connect(0, peer, {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
  EXPECT_NE(log.warned().find("no connection to [2001:db8::1]:7471"), std::string::npos)
      << log.warned();
}

TEST(Drain, EndsWhenEverythingIsAcknowledged) {
  TwoHosts hosts({.drain_timeout_ms = 60000});
  Pair pair = connect(hosts[0], hosts[1]);
  pair.sender.reset();
  pair.receiver.reset();
  hosts[0].drain();  // With a timeout of a minute, returning is the test.
  hosts[1].drain();
}

// Its device may stop answering, and then a thread stays inside the turn.
class StoppingLink final : public link::Link {
 public:
  explicit StoppingLink(std::unique_ptr<link::Link> inner) : inner_(std::move(inner)) {}

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override {
    if (stop) {
      stopped = true;
      stopped.notify_all();
      stop.wait(true);
    }
    return inner_->receive(frames);
  }
  void release(std::span<RxFrame> frames) override { inner_->release(frames); }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    return inner_->transmit(frames);
  }
  link::LinkState state() override { return inner_->state(); }
  void wait(int wake_fd, Duration timeout) override { inner_->wait(wake_fd, timeout); }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return inner_->describe(); }

  std::atomic<bool> stop{false};
  std::atomic<bool> stopped{false};

 private:
  std::unique_ptr<link::Link> inner_;
};

TEST(Drain, EndsWhenAThreadIsStuckInATurn) {
  auto [left, right] = link::make_memory_links({});
  auto source = std::make_shared<MemoryNics>();
  auto owned = std::make_unique<StoppingLink>(std::move(left));
  StoppingLink& stopping = *owned;
  source->add("mem0", std::move(owned));
  auto transport = create(one_nic_fabric(0, {.drain_timeout_ms = 20}), nullptr, source);
  ASSERT_TRUE(transport && (*transport)->listen(0, {}));
  stopping.stop = true;
  stopping.stopped.wait(false);
  (*transport)->drain();  // Returning is the test.
  stopping.stop = false;
  stopping.stop.notify_all();
}

}  // namespace
}  // namespace ztcp::ustack
