// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Connections over devices in memory, joined over loopback by the real control threads. At the end
// all objects must have been destroyed, and in the right order.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {

class Connections : public testing::Test {
 protected:
  explicit Connections(const std::vector<test::FakeDeviceSpec>& specs, std::uint64_t seed = 1)
      : host_(specs, seed), transport_(host_.start()) {}
  ~Connections() override {
    transport_.reset();
    EXPECT_THAT(host_.devices.misuse(), testing::IsEmpty());
    for (const char* kind : {"qp", "cq", "mr", "pd", "context", "id", "channel"})
      EXPECT_EQ(host_.devices.live(kind), 0) << kind;
  }

  // Both ends are this process's; device 0 sends to device 1.
  test::Pair pair() { return test::connect(*transport_, *transport_, 1); }
  static MemoryKey* register_host(Comm& comm, std::span<std::byte> bytes) {
    const auto key = comm.register_memory({.address = bytes.data(), .size_bytes = bytes.size()});
    EXPECT_TRUE(key);
    return key ? *key : nullptr;
  }
  // Both ends polled by one thread.
  static void finish_both(Request& receive, Request& send, std::size_t size) {
    bool received = false;
    bool sent = false;
    std::size_t told = 0;
    while (!received || !sent) {
      if (!received) {
        const auto done = receive.test({&told, 1});
        ASSERT_TRUE(done) << done.error().where;
        received = *done;
      }
      if (!sent) {
        const auto done = send.test({});
        ASSERT_TRUE(done) << done.error().where;
        sent = *done;
      }
    }
    EXPECT_EQ(told, size);
  }
  void exchange(test::Pair& pair, std::size_t size, std::uint64_t seed) {
    test::Bytes from = test::pattern(size, seed);
    test::Bytes to(size + 10);
    MemoryKey* const from_key = size == 0 ? nullptr : register_host(*pair.sender, from);
    MemoryKey* const to_key = register_host(*pair.receiver, to);
    const auto receive = test::post_recv(*pair.receiver, to, to_key);
    ASSERT_TRUE(receive && *receive != nullptr);
    Request* const send = test::post_until_taken(*pair.sender, from, from_key);
    ASSERT_NE(send, nullptr);
    finish_both(**receive, *send, size);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    if (from_key != nullptr) {
      EXPECT_TRUE(pair.sender->deregister_memory(from_key));
    }
    EXPECT_TRUE(pair.receiver->deregister_memory(to_key));
  }

  test::LogCapture log_;
  FakeHost host_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace ztcp::verbs
