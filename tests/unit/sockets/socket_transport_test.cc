// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Comms over the kernel's loopback. Nothing here waits for time to pass: every loop polls as NCCL
// does, and ends when the library answers.
#include "transport/sockets/socket_transport.h"

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/sockets/two_hosts.h"

namespace ztcp::sockets {
namespace {

using namespace test;

struct Kind {
  const char* name;
  HostOptions options;
};

class Transfers : public testing::TestWithParam<Kind> {
 protected:
  TwoHosts hosts_{GetParam().options};
};

INSTANTIATE_TEST_SUITE_P(Kinds, Transfers,
                         testing::Values(Kind{"IPv4", {}}, Kind{"IPv6", {.address = kLoopback6}},
                                         Kind{"ThreadOfItsOwn",
                                              {.mode = config::PollerMode::kDedicated}}),
                         [](const auto& row) { return row.param.name; });

// One proxy thread per host, eight messages in flight, sizes around every limit there is, at every
// alignment.
TEST_P(Transfers, EveryByteArrivesOnceAndInOrder) {
  Pair pair = connect(hosts_[0], hosts_[1]);
  const std::array<std::size_t, 14> sizes = {
      0, 1, 8, 127, 128, 4096, 65536, 65537, 65573, 131072, 131073, 1U << 20U, 300001, 3U << 20U};
  constexpr std::size_t kMessages = 140;
  constexpr std::size_t kDepth = 8;
  const auto shift = [](std::size_t message) { return message * 13 % 67; };

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
      const std::size_t size = sizes[i % sizes.size()];
      buffers[at] = pattern(size + shift(i), i);
      in_flight[at] =
          post_until_taken(*pair.sender, std::span(buffers[at]).subspan(shift(i)), nullptr);
      ASSERT_NE(in_flight[at], nullptr);
    }
  });
  std::array<Bytes, kDepth> buffers;
  std::array<Request*, kDepth> in_flight{};
  for (std::size_t i = 0; i < kMessages + kDepth; ++i) {
    const std::size_t at = i % kDepth;
    if (in_flight[at] != nullptr) {
      const std::size_t message = i - kDepth;
      const std::size_t from = message * 7 % 61;
      const auto size = finish(*in_flight[at]);
      ASSERT_TRUE(size);
      ASSERT_EQ(*size, sizes[message % sizes.size()]);
      const Bytes sent = pattern(*size + shift(message), message);
      ASSERT_TRUE(std::equal(sent.begin() + static_cast<std::ptrdiff_t>(shift(message)), sent.end(),
                             buffers[at].begin() + static_cast<std::ptrdiff_t>(from)))
          << "message " << message;
      ASSERT_TRUE(std::all_of(buffers[at].begin() + static_cast<std::ptrdiff_t>(from + *size),
                              buffers[at].end(), [](std::byte b) { return b == std::byte{0xee}; }))
          << "message " << message;
    }
    in_flight[at] = nullptr;
    if (i >= kMessages) continue;
    buffers[at].assign((3U << 20U) + 128, std::byte{0xee});
    const auto request = post_recv(*pair.receiver, std::span(buffers[at]).subspan(i * 7 % 61));
    ASSERT_TRUE(request);
    ASSERT_NE(*request, nullptr);
    in_flight[at] = *request;
  }
  sending.join();
}

TEST_P(Transfers, ADeviceConnectsToItself) {
  Pair pair = connect(hosts_[0], hosts_[0]);
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

TEST_P(Transfers, TwoHundredConnectionsComeAndGo) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    Pair pair = connect(hosts_[0], hosts_[1]);
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

TEST(Line, SaysWhoseThreadsDriveADevice) {
  const auto line = [](config::PollerMode mode) {
    return TwoHosts({.mode = mode})[0].describe_device(0);
  };
  EXPECT_TRUE(line(config::PollerMode::kAuto).ends_with("; in NCCL's threads"));
  EXPECT_TRUE(line(config::PollerMode::kShared).ends_with("; in NCCL's threads"));
  EXPECT_TRUE(line(config::PollerMode::kDedicated).ends_with("; a thread of its own"));
}

// NCCL aborts: it closes with requests in flight and frees the buffers at once.
TEST_P(Transfers, AClosedReceiverTouchesNoBufferAfterwards) {
  Pair pair = connect(hosts_[0], hosts_[1]);
  Bytes buffer(1U << 20U, std::byte{0x11});
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  pair.receiver.reset();
  const Bytes before = buffer;
  const Bytes message(1U << 20U, std::byte{0x22});
  Request* sending = post_until_taken(*pair.sender, message, nullptr);
  if (sending != nullptr) {
    EXPECT_FALSE(finish(*sending));
  }
  EXPECT_EQ(buffer, before);
}

TEST_P(Transfers, DeregisteredInFlightEndsTheConnection) {
  Pair pair = connect(hosts_[0], hosts_[1]);
  Bytes large(8U << 20U);  // Beyond the eager allowance, and nobody posts for it.
  const auto key = pair.sender->register_memory({large.data(), large.size()});
  ASSERT_TRUE(key);
  Request* request = post_until_taken(*pair.sender, large, *key);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(pair.sender->deregister_memory(*key));
  const auto result = finish(*request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kAborted);
}

TEST(Connect, ToNobodyFailsByName) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const PeerHandle handle = (*listener)->handle();
  listener->reset();
  hosts.transports[1].reset();
  auto sender = hosts[0].begin_connect(0, handle, {});
  ASSERT_TRUE(sender);
  const test::LogCapture log;
  Result<bool> ready = false;
  while (ready && !*ready) ready = (*sender)->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kRefused);
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_NE(log.warnings()[0].find("127.0.0.1:"), std::string::npos) << log.warnings()[0];
}

TEST(Connect, ToAnotherFamilyIsRefusedWithBothAddresses) {
  TwoHosts four;
  TwoHosts six({.address = kLoopback6});
  auto listener = six[0].listen(0, {});
  ASSERT_TRUE(listener);
  const test::LogCapture log;
  const auto sender = four[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(log.warnings()[0].find("127.0.0.1"), std::string::npos) << log.warnings()[0];
  EXPECT_NE(log.warnings()[0].find("[::1]:"), std::string::npos) << log.warnings()[0];
}

// Each process of a host takes the next port of the range; what is missing then is named.
TEST(Listen, TakesTheFirstFreePortOfItsRange) {
  Device device = loopback_device();
  auto anywhere = create(host_settings(), {device});
  const auto first = (*anywhere)->listen(0, {});
  ASSERT_TRUE(first);
  // One that is taken, for sure.
  std::uint16_t port = 0;
  {
    const test::LogCapture log;
    auto other = create(host_settings(), {device});
    ASSERT_TRUE((*other)->listen(0, {}));
    const std::string line = log.infos().at(0);
    const std::size_t at = line.find("listening at 127.0.0.1:");
    ASSERT_NE(at, std::string::npos) << line;
    port = static_cast<std::uint16_t>(std::stoi(line.substr(at + 23)));
    device.first_port = device.last_port = port;
    auto third = create(host_settings(), {device});
    EXPECT_FALSE((*third)->listen(0, {}));
    ASSERT_EQ(log.warnings().size(), 1U);
    EXPECT_NE(log.warnings()[0].find("widen first_port and last_port in test.conf"),
              std::string::npos)
        << log.warnings()[0];
  }
  auto after = create(host_settings(), {device});
  EXPECT_TRUE((*after)->listen(0, {})) << "free again, whatever lingers of its connections";
}

}  // namespace
}  // namespace ztcp::sockets
