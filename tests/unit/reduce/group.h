// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All hosts of a group in one process and thread, over memory_peers.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/reduce/memory_peers.h"
#include "transport/reduce/all_reduce.h"

namespace ztcp::test {

using Bytes = std::vector<std::byte>;

class Group {
 public:
  explicit Group(std::size_t hosts, reduce::Wire wire = reduce::Wire::kAsIs, std::uint32_t seed = 1)
      : hosts_(hosts, seed) {
    for (std::size_t rank = 0; rank < hosts; ++rank) {
      // Hundreds of megabytes, of which most tests use little: not touched before.
      scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(
          reduce::AllReduce::scratch_bytes(hosts, wire)));
      members_.push_back(std::make_unique<reduce::AllReduce>(
          hosts_.end(rank), reduce::GroupSetup{.hosts = hosts,
                                               .rank = rank,
                                               .wire = wire,
                                               .scratch = scratch_.back().get(),
                                               .scratch_registration = nullptr}));
    }
  }
  std::size_t hosts() const { return members_.size(); }
  reduce::AllReduce& member(std::size_t rank) { return *members_[rank]; }
  MemoryHosts& network() { return hosts_; }

 private:
  MemoryHosts hosts_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::vector<std::unique_ptr<reduce::AllReduce>> members_;
};

// Tests the jobs in turns until all are done; one that is done becomes null.
inline void finish_all(std::vector<reduce::Job*>& jobs) {
  for (std::size_t left = jobs.size(); left > 0;)
    for (reduce::Job*& job : jobs) {
      if (job == nullptr) continue;
      const Result<bool> done = job->test();
      ASSERT_TRUE(done) << done.error().where;
      if (!*done) continue;
      job = nullptr;
      --left;
    }
}

}  // namespace ztcp::test
