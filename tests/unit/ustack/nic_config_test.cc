// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_config.h"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/ustack/memory_nics.h"
#include "transport/link/memory_link.h"
#include "transport/tcp/stack.h"
#include "transport/ustack/ustack_transport.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7471;

// A stack and its link, driven like an Engine.
struct Host final : StreamEvents, tcp::StreamAcceptor {
  Host(int number, std::unique_ptr<link::Link> own)
      : link(std::move(own)),
        stack(config(number, *link), {7, static_cast<std::uint64_t>(number)}) {}

  static tcp::StackConfig config(int number, const link::Link& link) {
    config::Fabric fabric = one_nic_fabric(number, {.mtu_bytes = 1500});
    fabric.tcp.user_timeout_ms = 8000;
    return engine_config(fabric, fabric.nics[0], link.capabilities())->stack;
  }

  void turn(TimePoint now) {
    std::array<RxFrame, 32> rx;
    while (const std::size_t count = link->receive(rx)) {
      stack.on_frames(now, std::span(rx).first(count));
      link->release(std::span(rx).first(count));
    }
    stack.on_timers(now);
    while (const std::size_t count = stack.take_released(rx))
      link->release(std::span(rx).first(count));
    for (;;) {
      if (unsent.empty()) {
        unsent.resize(32);
        unsent.resize(stack.collect(now, unsent));
        std::erase_if(unsent, [this](const TxFrame& frame) { return is_lost && is_lost(frame); });
        if (unsent.empty()) return;
      }
      const auto sent = static_cast<std::ptrdiff_t>(link->transmit(unsent));
      unsent.erase(unsent.begin(), unsent.begin() + sent);
      if (!unsent.empty()) return;
    }
  }

  StreamEvents* on_accept(TimePoint, Stream&, Endpoint) override { return this; }
  void on_open(TimePoint, Stream&) override { is_open = true; }
  void on_bytes(TimePoint, std::span<const std::byte> bytes) override { received += bytes.size(); }
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_closed(TimePoint) override {}
  void on_failed(TimePoint, Error) override { has_failed = true; }

  std::unique_ptr<link::Link> link;
  tcp::Stack stack;
  std::vector<TxFrame> unsent;
  std::function<bool(const TxFrame&)> is_lost;
  std::size_t received = 0;
  bool is_open = false;
  bool has_failed = false;
};

std::uint32_t sequence_of(const TxFrame& frame) {
  return wire::load_be32(frame.header.data() + frame.l2_bytes + frame.l3_bytes + 4);
}

TEST(NicConfig, CongestionControlIsTheConfigs) {
  using config::CongestionControl;
  const auto name = [](CongestionControl chosen, bool by_marks) {
    config::Fabric fabric = one_nic_fabric(0);
    fabric.tcp.congestion_control = chosen;
    const tcp::TcpSettings settings = engine_config(fabric, fabric.nics[0], {})->stack.tcp;
    tcp::CongestionControl::Storage storage;
    const auto make = by_marks && settings.congestion_control_by_marks != nullptr
                          ? settings.congestion_control_by_marks
                          : settings.congestion_control;
    return std::string(make(storage, tcp::SeqNum(0)).name());
  };
  EXPECT_EQ(name(CongestionControl::kAuto, false), "cubic") << "at first";
  EXPECT_EQ(name(CongestionControl::kCubic, false), "cubic");
  EXPECT_EQ(name(CongestionControl::kBbr, false), "bbr");
  EXPECT_EQ(name(CongestionControl::kBbr, true), "bbr");
  EXPECT_EQ(name(CongestionControl::kSwift, false), "swift");
  EXPECT_EQ(name(CongestionControl::kDctcp, false), "cubic");
  EXPECT_EQ(name(CongestionControl::kDctcp, true), "dctcp");
}

TEST(NicConfig, HeldFrameLimitsAreThoseOfTheLink) {
  const config::Fabric fabric = one_nic_fabric(0);
  link::LinkCapabilities caps;
  caps.max_kept_bytes = 12345;
  caps.max_kept_frames = 67;
  const auto engine = engine_config(fabric, fabric.nics[0], caps);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->stack.max_held_bytes, 12345U);
  EXPECT_EQ(engine->stack.max_held_frames, 67U);
}

// Peers with one connection each all dial from their first queue.
TEST(NicConfig, SmallConnectionLimitAppliesToEachQueue) {
  const auto sessions = [](std::uint32_t max_connections, std::uint32_t queues) {
    const config::Fabric fabric =
        one_nic_fabric(0, {.max_connections = max_connections, .queues = queues});
    return engine_config(fabric, fabric.nics[0], {})->session.max_sessions;
  };
  EXPECT_EQ(sessions(8, 8), 8U);
  EXPECT_EQ(sessions(200, 4), 200U);
  EXPECT_EQ(sessions(4096, 4), 2048U);
  EXPECT_EQ(sessions(4096, 1), 4096U);
}

// One frame and its retransmissions are lost, while a window arrives behind it that is larger than
// the link's receive buffers. The frame must still find a buffer when it arrives.
TEST(NicConfig, LostFrameFindsABufferAfterAFullWindow) {
  auto links = link::make_memory_links({.mtu_bytes = 1500, .frames = 512});
  Host sender(0, std::move(links.first));
  Host receiver(1, std::move(links.second));
  ASSERT_TRUE(receiver.stack.listen(kPort, receiver));
  TimePoint now{1h};
  const auto turn = [&] {
    now += 20us;
    sender.turn(now);
    receiver.turn(now);
  };
  const auto stream =
      sender.stack.connect(now, {one_nic_fabric(1).nics[0].address.address, kPort}, sender);
  ASSERT_TRUE(stream);
  for (int i = 0; i < 100 && !sender.is_open; ++i) turn();
  ASSERT_TRUE(sender.is_open);

  constexpr std::size_t kBytes = 16U << 20;
  const std::vector<std::byte> data(1U << 20);
  std::size_t written = 0;
  std::uint32_t lost = 0;
  const TimePoint begin = now;
  TimePoint mended = kNever;
  sender.is_lost = [&](const TxFrame& frame) {
    if (frame.payload_bytes == 0 || now >= mended) return false;
    if (mended == kNever && receiver.received > 4U << 20) {
      lost = sequence_of(frame);
      mended = now + 50ms;
    }
    return mended != kNever && sequence_of(frame) == lost;
  };
  while (receiver.received < kBytes && now < begin + 5s) {
    while (written < kBytes && (*stream)->room() > 0) {
      const Fragment fragment{data.data(), static_cast<std::uint32_t>(data.size()), kUnmapped};
      if (!(*stream)->write({}, std::span(&fragment, 1))) break;
      written += data.size();
    }
    turn();
  }
  EXPECT_EQ(receiver.received, kBytes);
  EXPECT_FALSE(sender.has_failed);
  EXPECT_GT(receiver.stack.counters().rx_out_of_order, 200U) << "no frame was held";
}

class DevicePropertiesOf : public testing::Test {
 protected:
  DevicePropertiesOf() { fabric_.tunes_channels = true; }

  void join(std::uint32_t nics, config::MemifRole role, std::uint32_t queues) {
    config::Nic nic;
    nic.driver = config::NicDriver::kMemif;
    nic.memif_role = role;
    nic.memif_socket = "mesh";
    nic.queues = queues;
    fabric_.nics.clear();
    for (std::uint32_t i = 0; i < nics; ++i) {
      nic.name = "ztcp" + std::to_string(i);
      fabric_.nics.push_back(nic);
    }
  }
  int nccl_devices_of_first() const {
    return device_properties(fabric_, fabric_.nics.front()).nccl_devices;
  }

  config::Fabric fabric_;
};

TEST_F(DevicePropertiesOf, PciNicIsOneNcclDeviceUnlessConfigured) {
  config::Nic nic;
  nic.driver = config::NicDriver::kPci;
  nic.queues = 4;
  fabric_.nics = {nic};
  EXPECT_EQ(nccl_devices_of_first(), 1) << "more devices were never measured";
  fabric_.nics.front().nccl_devices = 4;
  EXPECT_EQ(nccl_devices_of_first(), 4);
  fabric_.tunes_channels = false;
  EXPECT_EQ(nccl_devices_of_first(), 4) << "the config says so";
}

TEST_F(DevicePropertiesOf, NicTellsItsFacts) {
  config::Nic nic;
  nic.address.address = IpAddress(Ipv4Address{0x0a000001});
  nic.mtu_bytes = 9000;
  nic.numa_node = 1;
  nic.gpu_uuid = "GPU-1";
  fabric_.nics = {nic};
  const DeviceProperties device = device_properties(fabric_, fabric_.nics.front());
  EXPECT_EQ(device.address, "10.0.0.1");
  EXPECT_EQ(device.mtu_bytes, 9000U);
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_EQ(device.gpu, "GPU-1");
}

TEST_F(DevicePropertiesOf, MeshNicWithQueuesIsSeveralNcclDevicesWithTheTuner) {
  join(2, config::MemifRole::kMesh, 3);
  EXPECT_EQ(nccl_devices_of_first(), 1) << "few queues";
  EXPECT_FALSE(is_shown_often(fabric_));
  join(2, config::MemifRole::kMesh, 4);
  EXPECT_EQ(nccl_devices_of_first(), 8);
  join(3, config::MemifRole::kMesh, 1);
  EXPECT_EQ(nccl_devices_of_first(), 1) << "one queue";
  join(3, config::MemifRole::kMesh, 2);
  EXPECT_EQ(nccl_devices_of_first(), 2);
  join(3, config::MemifRole::kMesh, 3);
  EXPECT_EQ(nccl_devices_of_first(), 4);
  fabric_.tunes_channels = false;
  EXPECT_EQ(nccl_devices_of_first(), 1);
  EXPECT_TRUE(is_shown_often(fabric_)) << "the answer assumes the tuner";
  fabric_.nics.front().nccl_devices = 2;
  EXPECT_EQ(nccl_devices_of_first(), 2) << "the config says so";
}

TEST_F(DevicePropertiesOf, MemifNicBehindASwitchIsOneNcclDevice) {
  join(2, config::MemifRole::kClient, 4);
  EXPECT_EQ(nccl_devices_of_first(), 1);
  EXPECT_FALSE(is_shown_often(fabric_));
}

}  // namespace
}  // namespace ztcp::ustack
