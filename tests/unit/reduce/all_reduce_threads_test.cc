// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// AllReduce with workers: the same bits whichever thread does a part of a pass, and no access to
// the operands once a call has failed.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/worker_threads.h"
#include "tests/unit/reduce/gradients.h"
#include "tests/unit/reduce/memory_peers.h"
#include "transport/reduce/all_reduce.h"

namespace ztcp::reduce {
namespace {

constexpr std::size_t kCount = 300'007;

struct Host {
  std::vector<std::byte> scratch;
  std::vector<float> from;
  std::vector<float> to;
  WorkerThreads workers;
  std::optional<AllReduce> member;
  Job* job = nullptr;
  ~Host() { workers.stop(); }
};

// Hosts whose calls are under way.
class Group {
 public:
  Group(std::size_t hosts, Wire wire, std::size_t workers,
        Collective collective = Collective::kAllReduce)
      : network_(hosts, 1) {
    for (std::size_t rank = 0; rank < hosts; ++rank) {
      Host& host = *hosts_.emplace_back(std::make_unique<Host>());
      host.scratch.resize(AllReduce::scratch_bytes(hosts, wire));
      host.from = test::gradients(kCount, rank);
      host.to.assign(kCount, -1);
      host.member.emplace(network_.end(rank), GroupSetup{.hosts = hosts,
                                                         .rank = rank,
                                                         .wire = wire,
                                                         .scratch = host.scratch.data(),
                                                         .workers = &host.workers});
      EXPECT_TRUE(host.workers.start(
          workers, {.name = "test-sum", .cpus = {}, .spin = std::chrono::microseconds(20)},
          [&host](std::size_t) { return host.member->work(); }));
    }
    for (const auto& host : hosts_)
      host->job = *host->member->start({.from = reinterpret_cast<std::byte*>(host->from.data()),
                                        .to = reinterpret_cast<std::byte*>(host->to.data()),
                                        .count = kCount,
                                        .collective = collective,
                                        .window = {.part = kCount / hosts + 5, .offset = 7}});
  }
  test::MemoryHosts& network() { return network_; }
  Host& host(std::size_t rank) { return *hosts_[rank]; }
  // The results of all hosts, once all are done.
  std::vector<std::vector<float>> results() {
    for (std::size_t left = hosts_.size(); left > 0;)
      for (const auto& host : hosts_) {
        if (host->job == nullptr || !host->job->test().value()) continue;
        host->job = nullptr;
        --left;
      }
    std::vector<std::vector<float>> all;
    for (const auto& host : hosts_) all.push_back(host->to);
    return all;
  }

 private:
  test::MemoryHosts network_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

TEST(AllReduceWorkers, AnyNumber_GivesTheSameBits) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const Wire wire : {Wire::kAsIs, Wire::kBfloat16, Wire::kFloat8})
      for (const std::size_t hosts : {2, 3}) {
        // An all-gather has no sums.
        if (collective == Collective::kAllGather && wire != Wire::kAsIs) continue;
        const auto alone = Group(hosts, wire, 0, collective).results();
        for (const std::vector<float>& one : alone)
          EXPECT_TRUE(one == alone[0] || collective == Collective::kReduceScatter);
        for (const std::size_t workers : {1, 3})
          EXPECT_TRUE(Group(hosts, wire, workers, collective).results() == alone);
      }
}

TEST(AllReduceWorkers, LostPeer_EndsAllAccessToTheOperands) {
  for (int round = 0; round < 21; ++round) {
    Group group(2, round % 2 == 0 ? Wire::kBfloat16 : Wire::kFloat8, 2,
                static_cast<Collective>(round % 3));
    group.network().break_down();
    Host& host = group.host(0);
    while (host.job->test()) {
    }
    // AddressSanitizer and ThreadSanitizer see a later access.
    host.from = {};
    host.to = {};
  }
}

TEST(AllReduceWorkers, Settle_EndsAllAccessToTheOperands) {
  for (int round = 0; round < 21; ++round) {
    Group group(2, round % 2 == 0 ? Wire::kBfloat16 : Wire::kFloat8, 2,
                static_cast<Collective>(round % 3));
    for (const std::size_t rank : {0, 1}) {
      Host& host = group.host(rank);
      host.member->settle();
      host.from = {};
      host.to = {};
    }
  }
}

}  // namespace
}  // namespace ztcp::reduce
