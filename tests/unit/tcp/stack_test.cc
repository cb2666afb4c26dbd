// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/stack.h"

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "tests/unit/tcp/harness.h"
#include "transport/tcp/stack_impl.h"

namespace ztcp::tcp::test {
namespace {

// Memory of a connection beside its object of a few KiB.
std::size_t connection_kib(std::uint16_t mtu_bytes) {
  StackConfig config;
  config.mtu_bytes = mtu_bytes;
  config.max_connections = 1;
  const Sender::Memory part = ConnectionMemory(config).part(0);
  return (part.records.size_bytes() + part.pieces.size_bytes() + part.copied.size_bytes()) >> 10;
}

// docs/sizing.md ("Pages and cores" and "Memory of a process").
TEST(Stack, AConnectionTakesTheDocumentedMemory) {
  EXPECT_EQ(connection_kib(9000), 136U);
  EXPECT_EQ(connection_kib(1500), 280U);
}

TEST(Stack, CarriesBytesBothWaysAndCloses) {
  Pair pair;
  pair.connect();
  const Bytes out = pattern(1'000'000);
  const Bytes back = pattern(300'000, 7);
  std::size_t sent = 0;
  std::size_t returned = 0;
  const auto feed = [](Stream* stream, const Bytes& bytes, std::size_t& done) {
    while (done < bytes.size() && stream->room() > 0) {
      const std::size_t size = std::min<std::size_t>(64 << 10, bytes.size() - done);
      const Fragment fragment{bytes.data() + done, static_cast<std::uint32_t>(size), kUnmapped};
      if (!stream->write({}, std::span(&fragment, 1))) break;
      done += size;
    }
  };
  ASSERT_TRUE(pair.run_until([&] {
    feed(pair.client.stream, out, sent);
    feed(pair.server.stream, back, returned);
    return pair.server.received.size() == out.size() &&
           pair.client.received.size() == back.size() && pair.client.acked == out.size();
  }));
  EXPECT_EQ(pair.server.received, out);
  EXPECT_EQ(pair.client.received, back);
  EXPECT_EQ(pair.left.counters().tx_retransmitted_bytes, 0U);
  EXPECT_EQ(pair.left.counters().rto_fired, 0U);

  pair.client.stream->close();
  pair.pump();
  EXPECT_TRUE(pair.server.closed);
  EXPECT_EQ(pair.left.unfinished(), 0U);
  pair.server.stream->close();
  pair.pump();
  EXPECT_EQ(pair.right.unfinished(), 0U);
  ASSERT_FALSE(pair.run_until([] { return false; }, 10s));
  EXPECT_EQ(pair.left.next_deadline(), kNever);
  EXPECT_EQ(pair.right.next_deadline(), kNever);
}

TEST(Stack, SteadyStateDoesNotAllocate) {
  Pair pair;
  pair.connect();
  const Bytes out = pattern(1'000'000);
  std::size_t sent = 0;
  // The harness allocates each frame, so the Stacks are driven by hand here.
  std::vector<TxFrame> burst(64);
  std::vector<Bytes> memory(64, Bytes(1600));
  std::vector<RxFrame> views(64);
  std::vector<RxFrame> released(64);
  pair.server.received.reserve(2 * out.size());
  int turns = 0;
  const auto carry = [&](Stack& from, Stack& to) {
    pair.now += 10us;
    const std::size_t count = from.collect(pair.now, burst);
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t at = burst[i].header_bytes;
      std::copy_n(burst[i].header.begin(), at, memory[i].begin());
      for (std::size_t f = 0; f < burst[i].fragment_count; ++f) {
        const Fragment& fragment = burst[i].fragments[f];
        std::copy_n(fragment.data, fragment.size_bytes,
                    memory[i].begin() + static_cast<std::ptrdiff_t>(at));
        at += fragment.size_bytes;
      }
      views[i] = {};
      views[i].head = std::span(memory[i]).first(at);
      views[i].charge_bytes = 2048;
    }
    // Now and then two frames are swapped and one is lost, so that repair is included.
    std::size_t first = 0;
    if (++turns % 7 == 0 && count > 3) {
      std::swap(views[0], views[2]);
      first = 1;
    }
    to.on_frames(pair.now, std::span(views).subspan(first, count - first));
    // Held frames lie in `memory`, which is overwritten: the bytes are not compared here.
    while (to.take_released(released) > 0) {
    }
    from.on_timers(pair.now);
    to.on_timers(pair.now);
  };
  const auto feed = [&] {
    if (sent < out.size() && pair.client.stream->room() > 0) {
      const Fragment fragment{out.data() + sent, 50'000, kUnmapped};
      if (pair.client.stream->write(std::span(out).first(24), std::span(&fragment, 1)))
        sent += 50'000;
    }
  };
  std::size_t allocations = 0;
  {
    AllocationGuard guard;
    while (pair.client.acked < 1'000'000 && turns < 100'000) {
      feed();
      carry(pair.left, pair.right);
      carry(pair.right, pair.left);
    }
    allocations = guard.count();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_GE(pair.client.acked, 1'000'000U);
  EXPECT_GT(pair.left.counters().rack_recoveries, 0U);
}

TEST(Stack, RefusesAddressesItCannotReach) {
  Peer peer;
  const auto far = peer.stack.connect(peer.now, {Ipv4Address{0x08080808}, 80}, peer.user);
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, Errc::kNoRoute);
  const auto other = peer.stack.connect(peer.now, {*parse_ip("2001:db8::1"), 80}, peer.user);
  ASSERT_FALSE(other) << "of another family than ours";
  EXPECT_EQ(other.error().code, Errc::kNoRoute);
}

TEST(Stack, UnansweredArpIsNoRoute) {
  Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {Ipv4Address{0x0a000063}, 80}, peer.user));
  while (!peer.user.failed) {
    EXPECT_TRUE(peer.collect().empty()) << "no SYN without an address to send it to";
    ASSERT_TRUE(peer.fire());
  }
  EXPECT_EQ(peer.user.failed->code, Errc::kNoRoute);
  EXPECT_NEAR(in_ms(peer.now - at(0s)), 20'000, 1) << "the connect timeout decides";
  EXPECT_EQ(peer.stack.counters().arp_unresolved, 1U);
}

TEST(Stack, TablesAreBounded) {
  Peer peer;
  std::size_t opened = 0;
  std::vector<std::unique_ptr<User>> users;
  while (peer.stack.connect(peer.now, {kPeerIp, kPeerPort},
                            *users.emplace_back(std::make_unique<User>())))
    ++opened;
  EXPECT_EQ(opened, peer.config.max_connections);
  const auto more = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  EXPECT_EQ(more.error().code, Errc::kFull);
}

// Sixteen slots and a SYN each millisecond that is never completed; a real peer still gets through,
// and so does our own user.
TEST(Stack, SynFloodDisplacesItsOwnSyns) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  for (std::uint16_t port = 1; port <= 1000; ++port) {
    peer.peer_port = port;
    peer.send({.flags = wire::kSyn, .seq = 1000, .options = offer()});
    peer.collect();
    peer.advance(1ms);
  }
  EXPECT_EQ(peer.stack.counters().syn_dropped_table_full, 1000U - 16);
  EXPECT_EQ(peer.stack.connections(), 0U);
  peer.peer_port = 2000;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.iss = peer.collect_one().seq;
  peer.send({.seq = peer.peer_first(), .ack = peer.first()});
  EXPECT_TRUE(peer.user.opened);
  User ours;
  EXPECT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, ours));
}

// More peers than slots arrive in the same microsecond: those that got a slot keep it, the others
// are not answered and send their SYN again.
TEST(Stack, ABurstOfPeersIsNotTakenForAFlood) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  std::vector<std::uint32_t> numbers;
  for (std::uint16_t port = 1; port <= 20; ++port) {
    peer.peer_port = port;
    peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
    for (const Seg& answer : peer.collect()) numbers.push_back(answer.seq);
  }
  ASSERT_EQ(numbers.size(), 16U);
  EXPECT_EQ(peer.stack.counters().syn_dropped_table_full, 4U);
  peer.advance(9ms);
  for (std::uint16_t port = 1; port <= 16; ++port) {
    peer.peer_port = port;
    peer.user.opened = false;
    peer.send({.seq = peer.peer_first(), .ack = numbers[port - 1U] + 1});
    EXPECT_TRUE(peer.user.opened) << port;
  }
  peer.collect();
  EXPECT_EQ(peer.stack.counters().tx_resets, 0U);
}

// A stranger's SYN has to wait for the grace of half-open connections; our user does not.
TEST(Stack, SynFloodGivesWayToOurOwnConnectAtOnce) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  for (std::uint16_t port = 1; port <= 16; ++port) {
    peer.peer_port = port;
    peer.send({.flags = wire::kSyn, .seq = 1000, .options = offer()});
  }
  User ours;
  EXPECT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, ours));
}

TEST(Stack, SynFloodDisplacesTheOldest) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  std::vector<std::uint32_t> numbers;
  for (std::uint16_t port = 1; port <= 17; ++port) {
    if (port == 17) peer.advance(10ms);
    peer.peer_port = port;
    peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
    numbers.push_back(peer.collect_one().seq);
  }
  const auto acknowledge = [&](std::uint16_t port) {
    peer.peer_port = port;
    peer.send({.seq = peer.peer_first(), .ack = numbers[port - 1U] + 1});
  };
  acknowledge(1);
  EXPECT_FALSE(peer.user.opened);
  EXPECT_EQ(flags_of(peer.collect_one()), "R") << "sixteen places, and sixteen came later";
  acknowledge(2);
  EXPECT_TRUE(peer.user.opened);
}

// Beside any other frames to send, and even if the slots are taken meanwhile.
TEST(Stack, EveryAbortedConnectionSendsAReset) {
  StackConfig config = test_config();
  config.max_connections = 200;
  Peer peer(config);
  std::vector<std::unique_ptr<User>> users;
  for (std::uint16_t port = 1; port <= 200; ++port) {
    User& user = *users.emplace_back(std::make_unique<User>());
    const auto stream = peer.stack.connect(peer.now, {kPeerIp, port}, user);
    ASSERT_TRUE(stream);
    user.stream = *stream;
    const Seg syn = peer.collect_one();
    peer.peer_port = port;
    peer.send({.flags = wire::kSyn | wire::kAck,
               .seq = peer.irs,
               .ack = syn.seq + 1,
               .options = offer()});
    ASSERT_TRUE(user.opened);
    peer.collect();
  }
  for (const auto& user : users) user->stream->abort();
  EXPECT_EQ(peer.stack.unfinished(), 200U);
  std::size_t resets = 0;
  for (const Seg& seg : peer.collect()) resets += flags_of(seg) == "R." ? 1 : 0;
  EXPECT_EQ(resets, 200U);
  EXPECT_EQ(peer.stack.counters().tx_resets, 200U);
  EXPECT_EQ(peer.stack.unfinished(), 0U);
  EXPECT_EQ(peer.stack.connections(), 0U);
  EXPECT_EQ(peer.stack.next_deadline(), kNever);
}

TEST(Stack, TimeWaitMakesRoomForNewConnections) {
  StackConfig config = test_config();
  config.max_connections = 1;
  Peer peer(config);
  peer.open();
  peer.user.stream->close();
  peer.collect();
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 1});
  peer.collect();
  EXPECT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
}

// A user that dials again while it is told of its connection's end must not get that slot.
TEST(Stack, SlotIsNotReusedInsideItsEndEvent) {
  StackConfig config = test_config();
  config.max_connections = 1;
  Peer peer(config);
  peer.open();
  User second;
  bool refused = false;
  peer.user.on_bytes_hook = [&] {
    peer.user.stream->abort();
    refused = !peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, second);
  };
  peer.send({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(10)});
  EXPECT_TRUE(refused);
  EXPECT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, second));
}

// The same for a slot in TIME-WAIT whose user has not been told of the end.
TEST(Stack, SlotIsNotReusedBeforeItsEndIsReported) {
  StackConfig config = test_config();
  config.max_connections = 1;
  Peer peer(config);
  peer.open();
  peer.write(100);
  peer.user.stream->finish();
  peer.collect();
  const std::uint32_t acked = peer.first() + 101;
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = peer.first()});
  User second;
  bool refused = false;
  peer.user.on_acked_hook = [&] {
    refused = !peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, second);
  };
  peer.send({.seq = peer.peer_nxt() + 1, .ack = acked});
  EXPECT_TRUE(refused);
  EXPECT_TRUE(peer.user.ended);
  EXPECT_FALSE(second.ended);
  EXPECT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, second)) << "TIME-WAIT gives way";
}

TEST(Stack, ConnectsToItself) {
  StackConfig config = test_config();
  Stack stack(config, {1, 2});
  User server;
  User client;
  ASSERT_TRUE(stack.listen(kListenPort, server));
  TimePoint now = at(0s);
  const auto stream = stack.connect(now, {kOurIp, kListenPort}, client);
  ASSERT_TRUE(stream);
  client.stream = *stream;
  const Bytes out = pattern(5000);
  bool written = false;
  for (int turn = 0; turn < 50; ++turn) {
    now += 10us;
    std::vector<TxFrame> burst(16);
    burst.resize(stack.collect(now, burst));
    std::vector<Bytes> memory;
    std::vector<RxFrame> views;
    for (const TxFrame& frame : burst) {
      if (frame.l3_bytes == 0) continue;
      Bytes& bytes =
          memory.emplace_back(frame.header.begin(), frame.header.begin() + frame.header_bytes);
      for (std::size_t f = 0; f < frame.fragment_count; ++f)
        bytes.insert(bytes.end(), frame.fragments[f].data,
                     frame.fragments[f].data + frame.fragments[f].size_bytes);
    }
    for (const Bytes& bytes : memory) views.emplace_back().head = bytes;
    stack.on_frames(now, views);
    if (client.opened && !written) {
      const Fragment fragment{out.data(), 5000, kUnmapped};
      written = client.stream->write({}, std::span(&fragment, 1));
    }
  }
  EXPECT_EQ(server.received, out);
  EXPECT_EQ(client.acked, 5000U);
}

}  // namespace
}  // namespace ztcp::tcp::test
