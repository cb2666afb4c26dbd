// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/engine/shards.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bench/engine/joined_pair.h"
#include "bench/engine/slices.h"

namespace ztcp::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kWorkingSetBytes = 256U << 20;

// One connection, with the buffers of its two ends.
struct Connection {
  explicit Connection(std::size_t bytes)
      : source(bytes, std::byte{0x5a}), destination(bytes), pair({}, source, destination) {}
  std::vector<std::byte> source;
  std::vector<std::byte> destination;
  JoinedPair pair;
};

using Connections = std::vector<std::unique_ptr<Connection>>;

// The connections of a shard take turns, as under its poller.
void carry(const Connections& connections, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kSliceBytes)
    for (const auto& one : connections) one->pair.transfer(kSliceBytes);
}

void copy(const Connections& connections, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kSliceBytes)
    for (const auto& one : connections) {
      std::memcpy(one->destination.data() + at, one->source.data() + at, kSliceBytes);
      asm volatile("" ::"r"(one->destination.data()) : "memory");
    }
}

}  // namespace

ShardsSample measure_shards(std::size_t shards, std::size_t connections, int repetitions) {
  const std::size_t bytes = kWorkingSetBytes / connections / 2;
  std::barrier step(static_cast<std::ptrdiff_t>(shards) + 1);
  std::atomic<bool> is_intact{true};
  std::vector<std::thread> threads;
  for (std::size_t shard = 0; shard < shards; ++shard)
    threads.emplace_back([&, shard] {
      // Each thread touches its memory first, as a poller does.
      Connections own;
      for (std::size_t i = shard; i < connections; i += shards) {
        own.push_back(std::make_unique<Connection>(bytes));
        if (!own.back()->pair.connect()) is_intact = false;
      }
      carry(own, bytes);  // Opens the congestion windows.
      for (int repetition = 0; repetition < repetitions; ++repetition) {
        step.arrive_and_wait();
        copy(own, bytes);
        step.arrive_and_wait();
        for (const auto& one : own) std::ranges::fill(one->destination, std::byte{});
        step.arrive_and_wait();
        carry(own, bytes);
        step.arrive_and_wait();
      }
      for (const auto& one : own)
        if (!one->pair.is_intact() || one->destination != one->source) is_intact = false;
    });
  const double gigabits = 8e-9 * static_cast<double>(bytes * connections);
  const auto timed = [&] {
    step.arrive_and_wait();
    const auto begin = Clock::now();
    step.arrive_and_wait();
    return gigabits / std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<double> copied;
  std::vector<double> carried;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    copied.push_back(timed());
    carried.push_back(timed());
  }
  for (std::thread& thread : threads) thread.join();
  return {is_intact, median(carried), median(copied)};
}

}  // namespace ztcp::bench
