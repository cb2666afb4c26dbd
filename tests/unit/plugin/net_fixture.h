// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Net over transports in memory.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plugin/net.h"
#include "tests/support/log_capture.h"
#include "tests/support/memory_transport.h"

namespace ztcp::plugin {

using test::MemoryTransport;

inline std::vector<DeviceProperties> two_devices() {
  std::vector<DeviceProperties> devices(2);
  devices[0].name = "ztcp0";
  devices[1].name = "ztcp1";
  for (DeviceProperties& device : devices) device.pci_path = "/sys/devices/pci0000:00/0000:00:01.0";
  return devices;
}

inline MemoryTransport* add_transport(Startup& startup,
                                      const std::vector<DeviceProperties>& devices,
                                      TransportKind kind) {
  auto made = std::make_unique<MemoryTransport>(devices, kind);
  MemoryTransport* const transport = made.get();
  for (int i = 0; i < static_cast<int>(devices.size()); ++i)
    startup.devices.push_back({.properties = devices[static_cast<std::size_t>(i)],
                               .transport = transport,
                               .number = i,
                               .refusal = {}});
  startup.transports.push_back(std::move(made));
  return transport;
}

// A Net over transports in memory, called as NCCL does.
class NetTest : public testing::Test {
 protected:
  explicit NetTest(std::chrono::milliseconds forgotten_after = std::chrono::minutes(5))
      : net_(
            [this](bool asks_tuner) -> Told<Startup> {
              was_asked_ = asks_tuner;
              ++starts_;
              if (!start_refusal_.empty() && fail_start_)
                return report(Errc::kBadConfig, "{}", start_refusal_);
              Startup startup;
              startup.host = "host-a";
              startup.connect_timeout = connect_timeout_;
              startup.collnet = collnet_;
              startup.tuned = tuned_;
              startup.channels_per_peer = channels_per_peer_;
              if (start_refusal_.empty()) {
                transport_ = add_transport(startup, devices_, TransportKind::kUstack);
                if (shows_first_twice_) startup.devices.push_back(startup.devices.front());
                if (!other_devices_.empty())
                  other_ = add_transport(startup, other_devices_, TransportKind::kVerbs);
              } else {
                for (const DeviceProperties& properties : two_devices())
                  startup.devices.push_back({.properties = properties, .refusal = start_refusal_});
              }
              return startup;
            },
            forgotten_after) {}

  Context* new_context() {
    const Told<Context*> context = net_.init_context({});
    EXPECT_TRUE(context.has_value());
    return context ? *context : nullptr;
  }

  // Listens, connects and accepts; NCCL closes the listener at once.
  void connect_pair(Context* context) {
    auto listening = net_.listen(context, 0, handle_);
    ASSERT_TRUE(listening);
    auto sender = net_.connect(context, 1, handle_);
    ASSERT_TRUE(sender && *sender != nullptr);
    sender_ = *sender;
    auto receiver = net_.accept(*listening);
    ASSERT_TRUE(receiver && *receiver != nullptr);
    receiver_ = *receiver;
    net_.close(*listening);
  }

  bool fail_start_ = false;
  std::string start_refusal_;
  int starts_ = 0;
  std::optional<TransportKind> tuned_;
  std::uint8_t channels_per_peer_ = 0;
  std::chrono::milliseconds connect_timeout_{0};
  CollnetSettings collnet_;
  bool was_asked_ = false;  // NCCL asks for a tuner.
  std::vector<DeviceProperties> devices_ = two_devices();
  bool shows_first_twice_ = false;
  std::vector<DeviceProperties> other_devices_;
  MemoryTransport* transport_ = nullptr;
  MemoryTransport* other_ = nullptr;
  Net net_;
  std::array<std::byte, kHandleBytes> handle_{};
  SendComm* sender_ = nullptr;
  RecvComm* receiver_ = nullptr;
  test::LogCapture log_;
};

inline bool warned(const test::LogCapture& log, std::string_view text) {
  return log.warned().find(text) != std::string::npos;
}

inline Result<Request*> irecv(RecvComm& comm, std::span<std::byte> bytes) {
  const RecvBuffer buffer{.bytes = bytes};
  return comm.post_recv({&buffer, 1});
}

inline std::size_t finish(Request* request) {
  std::size_t size = 0;
  const Result<bool> done = request->test({&size, 1});
  EXPECT_TRUE(done && *done);
  return size;
}

}  // namespace ztcp::plugin
