// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One rank of a ring all-reduce of two ranks, without a GPU, with the threads that NCCL has: the
// main thread posts a collective and polls until it is done, as cudaStreamQuery() or
// cudaStreamSynchronize() do; a proxy thread sleeps while there is no collective, is woken for
// each, posts and tests the messages of all channels, and yields when none moved.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/tails/threads.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::bench {

enum class MainWait : std::uint8_t { kYields, kSpins };

struct RankOptions {
  std::size_t channels = 8;  // Connections in each direction.
  MainWait wait = MainWait::kYields;
  std::size_t largest_bytes = 0;
};

// The measurements of one size, in microseconds.
struct Measured {
  std::vector<double> took_us;         // Each collective, by the main thread's clock.
  std::vector<double> proxy_woken_us;  // From the main thread's signal until the proxy runs.
  // The longest time between two polls of a thread in each collective: the thread did not run.
  std::vector<double> main_gap_us;
  std::vector<double> proxy_gap_us;
  ThreadTable before;
  ThreadTable after;
};

class Rank {
 public:
  // `peer`: a stream socket to the other rank, for handles and barriers. Throws perf::Failure.
  Rank(perf::Net& net, int peer, const RankOptions& options);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  Measured measure(std::size_t bytes, int iterations);

 private:
  // A channel's ring: bytes received in the first half are sent in the second.
  struct Channel {
    void* send = nullptr;
    void* receive = nullptr;
    void* send_memory = nullptr;
    void* receive_memory = nullptr;
    std::vector<std::byte> out;
    std::vector<std::byte> in;
    void* send_request = nullptr;
    void* receive_request = nullptr;
    int sent = 0;
    int received = 0;
  };
  static constexpr int kHalves = 2;  // Reduce-scatter, all-gather.

  void connect();
  void barrier() const;
  void run_proxy();
  bool advance(Channel& channel, std::size_t bytes);
  bool send(Channel& channel, std::size_t bytes);
  bool receive(Channel& channel, std::size_t bytes);
  void carry(std::size_t bytes);
  void collective(std::size_t bytes, Measured& measured);

  perf::Net& net_;
  const int peer_;
  const RankOptions options_;
  std::vector<Channel> channels_;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::size_t posted_bytes_ = 0;  // 0: none.
  bool stops_ = false;
  double posted_at_us_ = 0;
  // Written by the proxy, read once a collective is done.
  double woken_us_ = 0;
  double proxy_gap_us_ = 0;
  alignas(64) std::atomic<bool> is_done_{false};
  std::thread proxy_;
};

}  // namespace ztcp::bench
