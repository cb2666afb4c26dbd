// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plugin/collnet.h"
#include "tests/unit/plugin/net_fixture.h"

namespace ztcp::plugin {

// Hosts of one group in this process, each with a communicator and a thread of its own.
class CollNetTest : public NetTest {
 protected:
  struct Host {
    Context* context = nullptr;
    CollListening* listening = nullptr;
    std::array<std::byte, kHandleBytes> handle{};
    CollGroup* group = nullptr;
    std::vector<float> from;
    std::vector<float> to;
    SharedMemory* from_memory = nullptr;
    SharedMemory* to_memory = nullptr;
    reduce::Job* job = nullptr;
  };

  CollNetTest() {
    collnet_.is_on = true;
    connect_timeout_ = std::chrono::seconds(20);
  }

  void listen(std::size_t hosts) {
    hosts_.resize(hosts);
    for (Host& host : hosts_) {
      ASSERT_TRUE(net_.init());
      host.context = *collective_.init_context({});
      const auto listening = collective_.listen(host.context, 0, host.handle);
      ASSERT_TRUE(listening);
      host.listening = *listening;
    }
    for (Host& host : hosts_) handles_.push_back(host.handle.data());
  }

  void connect(std::size_t hosts) {
    listen(hosts);
    in_threads([&](std::size_t rank) {
      Host& host = hosts_[rank];
      const auto group = collective_.connect(handles_, rank, host.listening);
      ASSERT_TRUE(group);
      host.group = *group;
      collective_.close(host.listening);
    });
  }

  template <class Work>
  void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) threads.emplace_back(work, rank);
    for (std::thread& thread : threads) thread.join();
  }

  // Host r contributes r + 1, r + 2, ...
  void prepare(std::size_t count) {
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      Host& host = hosts_[rank];
      host.from.resize(count);
      for (std::size_t i = 0; i < count; ++i) host.from[i] = static_cast<float>(rank + 1 + i % 64);
      host.to.assign(count, -1);
      const std::size_t bytes = count * sizeof(float);
      host.from_memory =
          *host.group->register_memory({.address = host.from.data(), .size_bytes = bytes});
      host.to_memory =
          *host.group->register_memory({.address = host.to.data(), .size_bytes = bytes});
    }
  }

  Told<reduce::Job*> start_on(std::size_t rank, std::size_t count) {
    Host& host = hosts_[rank];
    return host.group->start({.from = reinterpret_cast<const std::byte*>(host.from.data()),
                              .from_registration = host.from_memory,
                              .to = reinterpret_cast<std::byte*>(host.to.data()),
                              .to_registration = host.to_memory,
                              .count = count});
  }

  void start(std::size_t count) {
    prepare(count);
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      const auto job = start_on(rank, count);
      ASSERT_TRUE(job && *job != nullptr);
      hosts_[rank].job = *job;
    }
  }

  void finish() {
    for (std::size_t left = hosts_.size(); left > 0;)
      for (Host& host : hosts_) {
        if (host.job == nullptr) continue;
        const auto done = host.job->test();
        ASSERT_TRUE(done);
        if (!*done) continue;
        host.job = nullptr;
        --left;
      }
  }

  void expect_sums(double largest_error = 0) {
    const std::size_t hosts = hosts_.size();
    for (const Host& host : hosts_)
      for (std::size_t i = 0; i < host.to.size(); ++i) {
        const auto sum = static_cast<double>(hosts * (hosts + 1) / 2 + hosts * (i % 64));
        ASSERT_NEAR(host.to[i], sum, sum * largest_error) << i;
      }
  }

  CollNet collective_{net_};
  std::vector<Host> hosts_;
  std::vector<void*> handles_;
};

}  // namespace ztcp::plugin
