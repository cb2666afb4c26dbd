// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_switch/fabric_switch.h"

#include <deque>
#include <memory>

#include <gtest/gtest.h>

namespace ztcp::fabric {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

// A link with two queues as its cable, held by the test at the other end.
class TestLink : public link::Link {
 public:
  explicit TestLink(std::uint16_t mtu) { capabilities_.mtu_bytes = mtu; }

  const link::LinkCapabilities& capabilities() const override { return capabilities_; }
  std::size_t receive(std::span<RxFrame> frames) override {
    std::size_t n = 0;
    for (; n < frames.size() && !to_switch.empty(); ++n) {
      auto* held = new Bytes(std::move(to_switch.front()));
      to_switch.pop_front();
      const std::size_t in_head = std::min(held->size(), head_bytes);
      pieces_.clear();
      for (std::size_t at = in_head; at < held->size(); at += piece_bytes)
        pieces_.push_back(std::span<const std::byte>(*held).subspan(
            at, std::min(piece_bytes, held->size() - at)));
      auto* more = new std::vector<std::span<const std::byte>>(pieces_);
      more_.emplace_back(more);
      frames[n] = RxFrame{};
      frames[n].head = std::span<const std::byte>(*held).first(in_head);
      frames[n].more = *more;
      frames[n].handle = held;
      ++held_frames;
    }
    return n;
  }
  void release(std::span<RxFrame> frames) override {
    for (RxFrame& frame : frames) {
      auto* held = static_cast<Bytes*>(frame.handle);
      std::fill(held->begin(), held->end(),
                std::byte{0xdd});  // Late readers of the frame will see this.
      delete held;
      --held_frames;
    }
  }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    std::size_t n = 0;
    for (; n < frames.size() && room > 0; ++n, --room) {
      Bytes out(frames[n].header.begin(), frames[n].header.begin() + frames[n].header_bytes);
      for (std::size_t i = 0; i < frames[n].fragment_count; ++i) {
        const Fragment& f = frames[n].fragments[i];
        out.insert(out.end(), f.data, f.data + f.size_bytes);
      }
      EXPECT_EQ(out.size(), frames[n].header_bytes + frames[n].payload_bytes);
      from_switch.push_back(std::move(out));
    }
    return n;
  }
  LinkState state() override { return up ? LinkState::kUp : LinkState::kDown; }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return "test"; }

  std::deque<Bytes> to_switch;
  std::deque<Bytes> from_switch;
  std::size_t head_bytes = 65536;
  std::size_t piece_bytes = 65536;
  std::size_t room = 1U << 20U;
  int held_frames = 0;
  bool up = true;

 private:
  link::LinkCapabilities capabilities_;
  link::LinkCounters counters_;
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::unique_ptr<std::vector<std::span<const std::byte>>>> more_;
};

// An Ethernet frame from host `from` to host `to` (255: broadcast) with recognisable payload.
Bytes frame(int from, int to, std::size_t size = 200, int tag = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(tag) * 13);
  const auto put = [&](std::size_t at, int host) {
    for (std::size_t i = 0; i < 6; ++i)
      bytes[at + i] = host == 255 ? std::byte{0xff} : std::byte{0};
    if (host != 255) {
      bytes[at] = std::byte{0x02};
      bytes[at + 5] = static_cast<std::byte>(host);
    }
  };
  put(0, to);
  put(6, from);
  return bytes;
}

struct World {
  explicit World(std::vector<PortSettings> ports, SwitchSettings settings = {},
                 std::uint16_t mtu = 9000)
      : fabric(settings) {
    for (PortSettings& p : ports) {
      links.push_back(std::make_unique<TestLink>(mtu));
      fabric.add_port(std::move(p), *links.back());
    }
  }
  static std::vector<PortSettings> plain(std::size_t n) {
    return std::vector<PortSettings>(n, PortSettings{"port", {}, {}});
  }
  // Makes every port learn the host with its number.
  void introduce() {
    for (std::size_t i = 0; i < links.size(); ++i)
      links[i]->to_switch.push_back(frame(static_cast<int>(i), 255));
    run();
    for (auto& link : links) link->from_switch.clear();
  }
  // Turns until nothing moves and nothing is due.
  void run() {
    while (fabric.turn(now, [&] { return now; }) > 0) {
    }
  }
  // Jumps from deadline to deadline until none is left.
  void run_out() {
    run();
    while (fabric.next_deadline() != kNever) {
      now = std::max(now, fabric.next_deadline());
      run();
    }
  }
  TimePoint now{};
  std::vector<std::unique_ptr<TestLink>> links;
  FabricSwitch fabric;
};

TEST(FabricSwitch, FloodsUnknownAddressesAndLearns) {
  World w(World::plain(3));
  w.links[0]->to_switch.push_back(frame(0, 1));
  w.run();
  EXPECT_EQ(w.links[0]->from_switch.size(), 0U) << "never back to where it came from";
  EXPECT_EQ(w.links[1]->from_switch.size(), 1U);
  EXPECT_EQ(w.links[2]->from_switch.size(), 1U);
  EXPECT_EQ(w.fabric.counters(0).flooded, 1U);

  w.links[1]->to_switch.push_back(frame(1, 0));
  w.run();
  EXPECT_EQ(w.links[0]->from_switch.size(), 1U);
  EXPECT_EQ(w.links[2]->from_switch.size(), 1U) << "host 0 is known now";
}

TEST(FabricSwitch, BroadcastReachesEveryOtherPort) {
  World w(World::plain(4));
  w.introduce();
  w.links[2]->to_switch.push_back(frame(2, 255));
  w.run();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(w.links[i]->from_switch.size(), i == 2 ? 0U : 1U);
}

TEST(FabricSwitch, DropsFramesForTheirOwnPort) {
  World w(World::plain(2));
  w.links[0]->to_switch.push_back(frame(7, 255));
  w.links[0]->to_switch.push_back(frame(8, 7));
  w.run();
  EXPECT_EQ(w.links[1]->from_switch.size(), 1U);
  EXPECT_EQ(w.fabric.counters(0).drop_same_port, 1U);
}

TEST(FabricSwitch, DropsMalformedFrames) {
  World w(World::plain(2));
  w.links[0]->to_switch.push_back(Bytes(13));
  Bytes from_group = frame(0, 1);
  from_group[6] = std::byte{0x03};
  w.links[0]->to_switch.push_back(from_group);
  w.run();
  EXPECT_TRUE(w.links[1]->from_switch.empty());
  EXPECT_EQ(w.fabric.counters(0).drop_malformed, 2U);
}

TEST(FabricSwitch, KeepsBytesAndOrderForAllFrameShapes) {
  World w(World::plain(2));
  w.introduce();
  std::vector<Bytes> sent;
  for (const std::size_t pieces : {1U, 3U, 20U}) {  // 20: more than a TxFrame has fragments.
    w.links[0]->head_bytes = 130;
    w.links[0]->piece_bytes = 8870 / pieces + 1;
    for (const std::size_t size : {14U, 60U, 128U, 129U, 1514U, 9014U}) {
      sent.push_back(frame(0, 1, size, static_cast<int>(sent.size())));
      w.links[0]->to_switch.push_back(sent.back());
    }
    w.run();
  }
  ASSERT_EQ(w.links[1]->from_switch.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(w.links[1]->from_switch[i], sent[i]) << i;
  EXPECT_EQ(w.links[0]->held_frames, 0);
}

TEST(FabricSwitch, FramesTooLargeForThePortAreDroppedThere) {
  World w(World::plain(2), {}, 1500);
  w.introduce();
  w.links[0]->to_switch.push_back(frame(0, 1, 1518));
  w.links[0]->to_switch.push_back(frame(0, 1, 1519));
  w.run();
  EXPECT_EQ(w.links[1]->from_switch.size(), 1U);
  EXPECT_EQ(w.fabric.counters(1).drop_oversize, 1U);
}

TEST(FabricSwitch, AFullRingDelaysFramesInOrderAndReturnsThem) {
  World w(World::plain(3));
  w.introduce();
  w.links[1]->room = 5;
  for (int i = 0; i < 100; ++i) w.links[0]->to_switch.push_back(frame(0, 1, 300, i));
  w.links[0]->to_switch.push_back(frame(0, 2));
  w.run();
  EXPECT_EQ(w.links[0]->held_frames, 0) << "the slow port must not hold the reader's frames";
  EXPECT_EQ(w.links[1]->from_switch.size(), 5U);
  EXPECT_EQ(w.links[2]->from_switch.size(), 1U) << "nor hold up other ports";
  EXPECT_TRUE(w.fabric.backlogged());

  for (int i = 100; i < 120; ++i) w.links[0]->to_switch.push_back(frame(0, 1, 300, i));
  w.links[1]->room = 37;
  w.run();
  w.links[1]->room = 1000;
  w.run();
  ASSERT_EQ(w.links[1]->from_switch.size(), 120U);
  for (int i = 0; i < 120; ++i)
    EXPECT_EQ(w.links[1]->from_switch[static_cast<std::size_t>(i)], frame(0, 1, 300, i)) << i;
  EXPECT_FALSE(w.fabric.backlogged());
}

TEST(FabricSwitch, ABacklogHasALimit) {
  World w(World::plain(2), {.queue_limit_bytes = 10'000});
  w.introduce();
  w.links[1]->room = 0;
  for (int i = 0; i < 30; ++i) w.links[0]->to_switch.push_back(frame(0, 1, 1000, i));
  w.run();
  EXPECT_EQ(w.fabric.counters(1).drop_queue_full, 20U);
  EXPECT_EQ(w.fabric.counters(1).queued_bytes_max, 10'000U);
}

TEST(FabricSwitch, APortThatIsDownGetsNothing) {
  World w(World::plain(3));
  w.introduce();
  w.links[1]->up = false;
  w.now += 1ms;  // The carrier is checked at intervals.
  w.links[0]->to_switch.push_back(frame(0, 1));
  w.links[0]->to_switch.push_back(frame(0, 255));
  w.run();
  EXPECT_TRUE(w.links[1]->from_switch.empty());
  EXPECT_EQ(w.links[2]->from_switch.size(), 1U);
  EXPECT_EQ(w.fabric.counters(1).drop_link_down, 1U);
}

TEST(FabricSwitch, FollowsAnAddressThatMoves) {
  World w(World::plain(3));
  w.introduce();
  w.links[2]->to_switch.push_back(frame(1, 0));
  w.links[0]->to_switch.push_back(frame(0, 1));
  w.run();
  w.links[0]->to_switch.push_back(frame(0, 1));
  w.run();
  EXPECT_EQ(w.fabric.moved_addresses(), 1U);
  EXPECT_GE(w.links[2]->from_switch.size(), 1U);
}

TEST(FabricSwitch, DelayHoldsEachFrameForItsTime) {
  std::vector<PortSettings> ports = World::plain(2);
  ports[1].to_peer.delay = 2ms;
  ports[0].from_peer.delay = 1ms;
  World w(std::move(ports));
  w.links[1]->to_switch.push_back(frame(1, 255));
  w.run();
  w.links[0]->to_switch.push_back(frame(0, 1));
  w.run();
  EXPECT_TRUE(w.links[1]->from_switch.empty());
  EXPECT_EQ(w.fabric.next_deadline(), TimePoint{1ms});
  EXPECT_EQ(w.links[0]->held_frames, 0);
  w.now = TimePoint{1ms};
  w.run();
  EXPECT_EQ(w.fabric.next_deadline(), TimePoint{3ms});
  w.now = TimePoint{3ms};
  w.run();
  ASSERT_EQ(w.links[1]->from_switch.size(), 1U);
  EXPECT_EQ(w.links[1]->from_switch[0], frame(0, 1));
}

TEST(FabricSwitch, DelayBeginsWhenTheFrameWasTaken) {
  std::vector<PortSettings> ports = World::plain(2);
  ports[1].to_peer.delay = 2ms;
  World w(std::move(ports));
  w.introduce();
  w.run_out();
  w.links[0]->to_switch.push_back(frame(0, 1));
  const TimePoint began = w.now;
  EXPECT_GT(w.fabric.turn(began, [&] { return began + 10ms; }), 0U);
  EXPECT_EQ(w.fabric.next_deadline(), began + 12ms);
}

TEST(FabricSwitch, ImpairmentsAreCountedAndReplayable) {
  const auto run = [](std::uint64_t seed) {
    std::vector<PortSettings> ports = World::plain(2);
    ports[1].to_peer = {.loss = 0.1, .duplicate = 0.05, .reorder = 0.05, .corrupt = 0.02};
    World w(std::move(ports), {.seed = seed});
    w.links[1]->to_switch.push_back(frame(1, 255));
    w.run();
    for (int i = 0; i < 2000; ++i) w.links[0]->to_switch.push_back(frame(0, 1, 100, i));
    w.run_out();
    const PortCounters& c = w.fabric.counters(1);
    EXPECT_EQ(w.links[1]->from_switch.size(), 2000 - c.impaired_loss + c.impaired_duplicate);
    EXPECT_GT(c.impaired_loss, 150U);
    EXPECT_GT(c.impaired_duplicate, 60U);
    EXPECT_GT(c.impaired_reorder, 60U);
    EXPECT_GT(c.impaired_corrupt, 20U);
    return w.links[1]->from_switch;
  };
  const auto first = run(11);
  EXPECT_EQ(first, run(11));
  EXPECT_NE(first, run(12));
}

TEST(FabricSwitch, CorruptionFlipsOneBitAndSparesTheAddresses) {
  std::vector<PortSettings> ports = World::plain(2);
  ports[0].from_peer.corrupt = 1;
  World w(std::move(ports));
  const Bytes sent = frame(0, 1);
  w.links[0]->to_switch.push_back(sent);
  w.run_out();
  ASSERT_EQ(w.links[1]->from_switch.size(), 1U);
  int flipped = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const auto bits = std::to_integer<unsigned>(sent[i] ^ w.links[1]->from_switch[0][i]);
    flipped += __builtin_popcount(bits);
    EXPECT_TRUE(i >= 14 || bits == 0);
  }
  EXPECT_EQ(flipped, 1);
}

TEST(FabricSwitch, WithoutReorderingAnImpairedPortKeepsOrder) {
  std::vector<PortSettings> ports = World::plain(2);
  ports[1].to_peer = {.corrupt = 0.2, .rate_bits_per_second = 1'000'000'000};
  World w(std::move(ports));
  w.links[1]->to_switch.push_back(frame(1, 255));
  w.run();
  for (int i = 0; i < 500; ++i) {
    Bytes f = frame(0, 1, 100, 0);
    f[12] = static_cast<std::byte>(i >> 8);  // In the protected bytes, so corruption leaves it.
    f[13] = static_cast<std::byte>(i & 0xff);
    w.links[0]->to_switch.push_back(f);
    w.now += 400ns;
    w.run();
  }
  w.run_out();
  ASSERT_EQ(w.links[1]->from_switch.size(), 500U);
  for (int i = 0; i < 500; ++i) {
    const Bytes& f = w.links[1]->from_switch[static_cast<std::size_t>(i)];
    EXPECT_EQ(std::to_integer<int>(f[12]) << 8 | std::to_integer<int>(f[13]), i);
  }
}

// 1000 bytes take 8 us at 1 Gb/s.
TEST(SharedBuffer, BusyPortsShareItAndASingleOneGetsHalf) {
  std::vector<PortSettings> ports = World::plain(3);
  for (const std::size_t port : {1U, 2U})
    ports[port].to_peer = {.rate_bits_per_second = 1'000'000'000};
  World w(std::move(ports), {.shared_buffer_bytes = 20'000});
  w.introduce();
  w.run_out();
  for (const auto& link : w.links) link->from_switch.clear();
  const auto send = [&](int port) {
    for (int i = 0; i < 15; ++i) w.links[0]->to_switch.push_back(frame(0, port, 1000, i));
    w.run();
  };
  send(1);
  EXPECT_EQ(w.fabric.counters(1).drop_queue_full, 5U);
  send(2);
  EXPECT_EQ(w.fabric.counters(2).drop_queue_full, 10U) << "10 KB are left, and half of them";
  w.run_out();
  EXPECT_EQ(w.links[1]->from_switch.size(), 10U);
  EXPECT_EQ(w.links[2]->from_switch.size(), 5U);
}

// The one's complement sum over a correct IPv4 header is 0xffff.
unsigned header_sum(std::span<const std::byte> h) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < h.size(); i += 2)
    sum += std::to_integer<unsigned>(h[i]) << 8U | std::to_integer<unsigned>(h[i + 1]);
  while (sum > 0xffffU) sum = (sum & 0xffffU) + (sum >> 16U);
  return sum;
}

TEST(MarkCongestion, SetsCeAndUpdatesTheChecksum) {
  for (const unsigned ecn : {1U, 2U, 3U}) {
    Bytes f(60);
    f[12] = std::byte{0x08};
    f[14] = std::byte{0x45};
    f[15] = static_cast<std::byte>(ecn);
    f[16] = std::byte{0x12};
    f[22] = std::byte{64};
    f[26] = std::byte{10};
    const unsigned sum = ~header_sum(std::span(f).subspan(14, 20)) & 0xffffU;
    f[24] = static_cast<std::byte>(sum >> 8U);
    f[25] = static_cast<std::byte>(sum & 0xffU);
    EXPECT_TRUE(mark_congestion(f));
    EXPECT_EQ(f[15], std::byte{3});
    EXPECT_EQ(header_sum(std::span(f).subspan(14, 20)), 0xffffU) << "ecn " << ecn;
  }
}

TEST(MarkCongestion, LeavesOtherFramesAlone) {
  Bytes not_capable(60);
  not_capable[12] = std::byte{0x08};
  not_capable[14] = std::byte{0x45};
  EXPECT_FALSE(mark_congestion(not_capable));
  Bytes arp(60);
  arp[12] = std::byte{0x08};
  arp[13] = std::byte{0x06};
  EXPECT_FALSE(mark_congestion(arp));
  EXPECT_FALSE(mark_congestion(std::span(arp).first(20)));
  EXPECT_EQ(not_capable[15], std::byte{0});
}

}  // namespace
}  // namespace ztcp::fabric
