// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Functions of a link that NICs need but memif does not: memory mapped for DMA, and removal or
// reset of the device.
// Over DPDK's ring driver; its port receives the frames it sends: the very buffers that a NIC would
// have read.
#include "transport/link/port_link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/peer.h"
#include "tests/unit/link/port_fixture.h"

// Functions that DPDK's drivers call.
extern "C" {
rte_eth_dev* rte_eth_dev_allocated(const char* name);
int rte_eth_dev_callback_process(rte_eth_dev* device, rte_eth_event_type event, void* parameter);

// The linker redirects the link's calls here (meson.build).
int __real_rte_eth_dev_adjust_nb_rx_tx_desc(std::uint16_t port, std::uint16_t* rx,
                                            std::uint16_t* tx);
int __wrap_rte_eth_dev_adjust_nb_rx_tx_desc(std::uint16_t port, std::uint16_t* rx,
                                            std::uint16_t* tx);
int __real_rte_eth_stats_get(std::uint16_t port, rte_eth_stats* stats);
int __wrap_rte_eth_stats_get(std::uint16_t port, rte_eth_stats* stats);
}

namespace ztcp::link {
namespace {

// Non-zero: the only ring size that the driver supports.
std::uint16_t g_only_ring_size = 0;

// Frames that the driver reports as missed.
std::atomic<std::uint64_t> g_missed{0};

using test::flatten;
using test::SentFrame;
using test::within_seconds;

TEST_F(PortLinkTest, TellsTheDropsThatTheNicCounts) {
  EXPECT_TRUE(within_seconds(10, [&] {
    ++g_missed;
    std::array<RxFrame, 1> frames;
    link_->receive(frames);
    return link_->counters().nic.rx_missed != 0;
  }));
}

// IPv6 has no checksum of its own; IPv4's is the link's where the device has none.
TEST_F(PortLinkTest, AsksForTheChecksumsOfEitherFamily) {
  for (const bool is_ipv6 : {false, true}) {
    TxFrame frame;
    frame.header.fill(std::byte{0});
    frame.l2_bytes = 14;
    frame.l3_bytes = is_ipv6 ? 40 : 20;
    frame.header[14] = is_ipv6 ? std::byte{0x60} : std::byte{0x45};
    frame.header_bytes = static_cast<std::uint16_t>(frame.l2_bytes + frame.l3_bytes + 20);
    frame.checksum_offload = true;
    ASSERT_EQ(link_->transmit({&frame, 1}), 1U);
    const Read read = read_as_device();
    EXPECT_EQ(read.requests,
              RTE_MBUF_F_TX_TCP_CKSUM | (is_ipv6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4));
    EXPECT_EQ(read.bytes[14 + 10] != std::byte{0}, !is_ipv6) << "the checksum of IPv4's header";
  }
}

TEST_F(PortLinkTest, SendsMappedMemoryInPlace) {
  std::array<std::byte, 1000> user{};
  const std::uint32_t key = link_->map_memory(user.data(), user.size());
  ASSERT_NE(key, kUnmapped);
  SentFrame sent(1, 1000, 1, key);
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  const Read read = read_as_device();
  EXPECT_EQ(read.bytes, sent.bytes());
  ASSERT_EQ(read.user_memory.size(), 1U);
  EXPECT_EQ(read.user_memory[0], sent.frame().fragments[0].data);
  EXPECT_EQ(link_->counters().tx_copied_bytes, 0U);
  link_->unmap_memory(key);
}

// A frame that needs a second buffer for its last bytes costs two buffers each, in the NIC and
// here.
TEST_F(PortLinkTest, AFrameFitsTheUsablePartOfABuffer) {
  constexpr std::array<std::uint16_t, 5> kMtus = {1500, 2030, 4000, 8896, 9000};
  for (const std::uint16_t mtu : kMtus) {
    link_.reset();
    PortConfig of_mtu = config();
    of_mtu.mtu_bytes = mtu;
    const auto port = Port::open(of_mtu);
    ASSERT_TRUE(port) << port.error().where;
    const unsigned room = rte_pktmbuf_data_room_size(port->pools().rx) - RTE_PKTMBUF_HEADROOM;
    EXPECT_GE(room / 1024 * 1024, mtu + 18U) << "ixgbe";
    EXPECT_GE(room / 128 * 128, mtu + 18U) << "i40e";
    EXPECT_GE(room, mtu + 26U) << "with less room drivers choose to scatter";
  }
}

// Above vfio's limit of ranges, registering still succeeds and sending still works.
TEST_F(PortLinkTest, CopiesMemoryThatNoLongerFitsTheDevicesMap) {
  constexpr std::size_t kRegistrations = 1000;
  const std::vector<std::byte> user(2 * kRegistrations * DmaMap::kPageBytes);
  const ztcp::test::LogCapture log;
  std::vector<std::uint32_t> keys;
  std::size_t mapped = 0;
  for (std::size_t i = 0; i < kRegistrations; ++i) {  // Every other page, so that none are joined.
    keys.push_back(link_->map_memory(user.data() + 2 * i * DmaMap::kPageBytes, 1));
    mapped += keys.back() != kUnmapped ? 1U : 0U;
  }
  EXPECT_EQ(mapped, DmaMap::kMaxRanges);
  EXPECT_LT(mapped, 256U) << "as many as vfio keeps";
  ASSERT_EQ(log.infos().size(), 1U);
  EXPECT_EQ(log.infos()[0],
            "vfio: some registered memory is sent by copying: the device's map is full (240 "
            "ranges)");

  SentFrame sent(2, 1400, 3, keys.back());
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  sent.scribble();  // Its owner may do so: it was copied.
  const Read read = read_as_device();
  EXPECT_EQ(read.bytes, sent.bytes());
  EXPECT_TRUE(read.user_memory.empty());
  EXPECT_EQ(link_->counters().tx_copied_bytes, sent.frame().payload_bytes);
  for (const std::uint32_t key : keys) link_->unmap_memory(key);
  EXPECT_EQ(memory_.ranges(), 0U);
}

// A connection failed, its memory returns to its owner, and the ring stands still.
TEST_F(PortLinkTest, KeepsMemoryMappedThatTheRingMayStillReferTo) {
  std::vector<std::byte> user(2 * DmaMap::kPageBytes);
  const std::uint32_t key = link_->map_memory(user.data(), user.size());
  SentFrame sent(1, 1000, 1, key);
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  // Taken out of the ring, and freed by the driver only at the end, as many drivers do.
  std::uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name(kDevice, &id), 0);
  rte_mbuf* in_ring = nullptr;
  ASSERT_EQ(rte_eth_rx_burst(id, 0, &in_ring, 1), 1);

  link_->note_abandoned_payload();
  link_->unmap_memory(key);
  EXPECT_EQ(memory_.ranges(), 1U);
  EXPECT_EQ(link_->map_memory(user.data(), 100), kUnmapped) << "it may be other memory by now";
  // check_port() runs ten times a second.
  std::array<RxFrame, 8> none;
  const auto look = [&] {
    ASSERT_EQ(rte_eth_dev_set_link_down(id), 0);
    EXPECT_TRUE(within_seconds(5, [&] {
      link_->release(std::span(none).first(link_->receive(none)));
      return link_->state() == LinkState::kDown;
    }));
    ASSERT_EQ(rte_eth_dev_set_link_up(id), 0);
    EXPECT_TRUE(within_seconds(5, [&] {
      link_->release(std::span(none).first(link_->receive(none)));
      return link_->state() == LinkState::kUp;
    }));
  };
  look();
  EXPECT_EQ(memory_.ranges(), 1U);

  // Once the ring has gone round, the frame is not in it.
  SentFrame other(2, 100, 0);
  for (std::uint32_t i = 0; i < config().tx_descriptors; ++i) {
    ASSERT_EQ(link_->transmit({&other.frame(), 1}), 1U);
    link_->release(std::span(none).first(link_->receive(none)));
  }
  look();
  EXPECT_EQ(memory_.ranges(), 0U);
  const std::uint32_t again = link_->map_memory(user.data(), 100);
  EXPECT_NE(again, kUnmapped);
  link_->unmap_memory(again);
  EXPECT_EQ(memory_.ranges(), 0U) << "nothing is abandoned any more";
  rte_pktmbuf_free(in_ring);
}

TEST_F(PortLinkTest, UnmapsMemoryAtOnceThatNoBufferRefersTo) {
  std::vector<std::byte> user(DmaMap::kPageBytes);
  const std::uint32_t key = link_->map_memory(user.data(), user.size());
  SentFrame sent(1, 1000, 1, key);
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(read_as_device().bytes, sent.bytes());
  link_->note_abandoned_payload();
  link_->unmap_memory(key);
  EXPECT_EQ(memory_.ranges(), 0U);
}

TEST_F(PortLinkTest, UnmapsTheRestWhenTheDeviceIsReleased) {
  std::vector<std::byte> user(DmaMap::kPageBytes);
  const std::uint32_t key = link_->map_memory(user.data(), user.size());
  SentFrame sent(1, 1000, 1, key);
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  std::uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name(kDevice, &id), 0);
  rte_mbuf* in_ring = nullptr;  // Never freed; it goes with its pool.
  ASSERT_EQ(rte_eth_rx_burst(id, 0, &in_ring, 1), 1);
  link_->note_abandoned_payload();
  link_->unmap_memory(key);
  EXPECT_EQ(memory_.ranges(), 1U);
  link_.reset();
  EXPECT_EQ(memory_.ranges(), 0U);
}

// A driver may accept a device but make no port of it, or one of another name.
TEST_F(PortLinkTest, ADeviceWithoutAPortIsDetached) {
  PortConfig portless = config();
  portless.device = "net_ring7";
  portless.arguments = "nodeaction=another:0:CREATE";
  const auto port = Port::open(portless);
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, Errc::kNoDevice);
  portless.arguments.clear();
  const auto again = Port::open(portless);
  EXPECT_TRUE(again) << again.error().where;
}

// vmxnet3 drops a chain for which its ring is nearly full, and counts it as sent: the link must run
// out of buffers before the ring is full, and continue once the device has read some.
TEST_F(PortLinkTest, NeverMakesMoreBuffersThanTheRingHolds) {
  PortConfig config = this->config();
  config.drops_at_full_ring = true;
  config.tx_descriptors = 64;
  open(config);
  std::array<std::byte, 1200> user{};
  const std::uint32_t key = link_->map_memory(user.data(), user.size());
  SentFrame sent(4, 1200, 3, key);
  std::vector<TxFrame> frames(40, sent.frame());  // Four buffers each.
  const std::size_t taken = link_->transmit(frames);
  EXPECT_GT(taken, 8U);
  EXPECT_LT(taken * 4, 64U);
  EXPECT_EQ(link_->transmit(frames), 0U);
  EXPECT_EQ(link_->counters().tx_dropped, 0U);
  for (std::size_t i = 0; i < taken; ++i) EXPECT_EQ(read_as_device().bytes, sent.bytes());
  EXPECT_EQ(link_->transmit(frames), taken);
  for (std::size_t i = 0; i < taken; ++i) EXPECT_EQ(read_as_device().bytes, sent.bytes());
  link_->unmap_memory(key);
}

// The host chooses the size of gve's rings. Drivers don't free frames that all fit a ring.
TEST_F(PortLinkTest, MakesMoreBuffersForRingsLargerThanAsked) {
  link_.reset();
  const PortConfig asked = config();
  g_only_ring_size = 4096;
  const auto port = Port::open(asked);
  g_only_ring_size = 0;
  ASSERT_TRUE(port) << port.error().where;
  EXPECT_EQ(port->pools().tx_copy->size, 2U * 64 + 256 + (4096 - 64));
  EXPECT_EQ(port->pools().tx_header->size, 255U + (4096 - 64));
  EXPECT_EQ(port->pools().rx->size, 255U + (4096 - 1024));
}

TEST_F(PortLinkTest, ReportsRingsThatItHasNoMemoryFor) {
  link_.reset();
  const ztcp::test::LogCapture log;
  g_only_ring_size = 32768;
  PortConfig jumbo = config();
  jumbo.mtu_bytes = 9000;
  const auto port = Port::open(jumbo);
  g_only_ring_size = 0;
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, Errc::kBadConfig);
  EXPECT_NE(log.warned().find("net_ring0 (net_ring) has rings of 32768 descriptors to receive and "
                              "32768 to send, where 1024 and 64 are asked for"),
            std::string::npos)
      << log.warned();
}

TEST_F(PortLinkTest, WithoutMemoryOnItsNodeItUsesAnother) {
  PortConfig config = this->config();
  config.numa_node = 5;
  const ztcp::test::LogCapture log;
  open(config);
  const std::vector<std::string> said = log.warnings();
  EXPECT_EQ(
      std::count_if(said.begin(), said.end(),
                    [](const std::string& line) {
                      return line.starts_with("net_ring0: no memory for its frames on NUMA node 5");
                    }),
      1)
      << log.warned();
  SentFrame sent(5, 128, 0);
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(read_as_device().bytes, sent.bytes());
}

// A super-segment too long to be copied into the device's maximum of buffers would always be
// dropped.
TEST(SuperSegmentRoom, IsTheSpaceOfTheBuffers) {
  EXPECT_EQ(super_segment_room(UINT16_MAX, 2048), UINT16_MAX - 120U);
  EXPECT_EQ(super_segment_room(24, 2048), 24U * 2048 - 120);  // vmxnet3
  EXPECT_EQ(super_segment_room(17, 2048), 17U * 2048 - 120);  // ena
  EXPECT_EQ(super_segment_room(17, 9152), UINT16_MAX - 120U);
  EXPECT_EQ(super_segment_room(1, 9152), 0U);
}

// For a NIC this may be a request to its firmware.
TEST_F(PortLinkTest, ReadsTheCarrierOnlyNowAndThen) {
  std::uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name(kDevice, &id), 0);
  EXPECT_EQ(link_->state(), LinkState::kUp);
  ASSERT_EQ(rte_eth_dev_set_link_down(id), 0);
  EXPECT_EQ(link_->state(), LinkState::kUp) << "the driver was asked";
  std::array<RxFrame, 1> none;
  EXPECT_TRUE(within_seconds(30, [&] {
    link_->release(std::span(none).first(link_->receive(none)));
    return link_->state() == LinkState::kDown;
  }));
  ASSERT_EQ(rte_eth_dev_set_link_up(id), 0);
  EXPECT_TRUE(within_seconds(30, [&] {
    link_->release(std::span(none).first(link_->receive(none)));
    return link_->state() == LinkState::kUp;
  }));
}

TEST_F(PortLinkTest, ReleasesANicThatIsRemoved) {
  SentFrame sent(3, 128, 0);
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  std::array<RxFrame, 1> held;
  ASSERT_EQ(link_->receive(held), 1U);
  EXPECT_EQ(link_->state(), LinkState::kUp);

  rte_dev_event_callback_process(kDevice, RTE_DEV_EVENT_REMOVE);
  EXPECT_EQ(link_->state(), LinkState::kGone);
  std::array<RxFrame, 4> none;
  EXPECT_TRUE(within_seconds(30, [&] {
    EXPECT_EQ(link_->receive(none), 0U);
    return !port_exists();  // The kernel waits for this.
  }));

  // The rest of the link is harmless, and its frames still exist.
  EXPECT_EQ(link_->state(), LinkState::kGone);
  EXPECT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(link_->counters().tx_dropped, 1U);
  link_->unmap_memory(link_->map_memory(&sent, sizeof(sent)));
  EXPECT_EQ(flatten(held[0]), sent.bytes());
  link_->release(held);
  link_.reset();

  // The NIC may come back.
  SetUp();
  ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(read_as_device().bytes, sent.bytes());
}

// iavf and others report a reset by the host, bnxt and hns3 a firmware that did not recover.
TEST_F(PortLinkTest, ReleasesANicThatWasReset) {
  for (const rte_eth_event_type event : {RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_RECOVERY_FAILED}) {
    rte_eth_dev* const device = rte_eth_dev_allocated(kDevice);
    ASSERT_NE(device, nullptr);
    rte_eth_dev_callback_process(device, RTE_ETH_EVENT_ERR_RECOVERING, nullptr);
    EXPECT_EQ(link_->state(), LinkState::kUp);
    rte_eth_dev_callback_process(device, event, nullptr);
    EXPECT_EQ(link_->state(), LinkState::kReset);
    std::array<RxFrame, 4> none;
    EXPECT_TRUE(within_seconds(30, [&] {
      EXPECT_EQ(link_->receive(none), 0U);
      return !port_exists();
    }));
    rte_dev_event_callback_process(kDevice, RTE_DEV_EVENT_REMOVE);
    EXPECT_EQ(link_->state(), LinkState::kReset) << "the first loss is the reason";
    SentFrame sent(6, 128, 0);
    EXPECT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
    EXPECT_EQ(link_->counters().tx_dropped, 1U);

    // As in a restarted job. Events of the next device at that port number are its own.
    SetUp();
    EXPECT_EQ(link_->state(), LinkState::kUp);
    ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
    EXPECT_EQ(read_as_device().bytes, sent.bytes());
  }
}

}  // namespace
}  // namespace ztcp::link

// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's name.
int __wrap_rte_eth_dev_adjust_nb_rx_tx_desc(std::uint16_t port, std::uint16_t* rx,
                                            std::uint16_t* tx) {
  const std::uint16_t only = ztcp::link::g_only_ring_size;
  if (only == 0) return __real_rte_eth_dev_adjust_nb_rx_tx_desc(port, rx, tx);
  *rx = *tx = only;
  return 0;
}
// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's name.
int __wrap_rte_eth_stats_get(std::uint16_t port, rte_eth_stats* stats) {
  const int rc = __real_rte_eth_stats_get(port, stats);
  stats->imissed += ztcp::link::g_missed;
  return rc;
}
