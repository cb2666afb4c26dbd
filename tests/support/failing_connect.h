// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Connects and accepts again and again; each time another allocation fails, until each has failed
// once. A failure may end that connection, with an error that names it, and nothing else.
// Single-threaded: the test makes every turn itself.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>

#include <gtest/gtest.h>

#include "core/listen_address.h"
#include "tests/support/failing_allocation.h"
#include "tests/support/transfers.h"
#include "transport/comms/comm.h"
#include "transport/comms/listener.h"

namespace ztcp::test {

struct FailingConnects {
  std::size_t refused = 0;        // Failed with kOutOfMemory.
  std::size_t dialled_again = 0;  // Succeeded in spite of the failed allocation.
};

enum class Fails { kBothEnds, kAcceptAlone };

template <class Host>
FailingConnects connect_while_memory_ends(const std::array<std::shared_ptr<Host>, 2>& hosts,
                                          Fails where) {
  FailingConnects counts;
  const auto listener = comms::CommListener::open(hosts[1]);
  EXPECT_TRUE(listener);
  const auto to = parse_listen_address((*listener)->handle().bytes);
  EXPECT_TRUE(to);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  Pair pair;
  for (std::size_t nth = 1;; ++nth) {
    FailingAllocation failing(nth);
    auto sender = comms::SendingComm::connect(hosts[0], to->endpoint, to->cookie);
    EXPECT_TRUE(sender);
    pair.receiver = nullptr;
    Result<bool> ready = false;
    while (ready && (!*ready || pair.receiver == nullptr)) {
      EXPECT_LT(std::chrono::steady_clock::now(), deadline) << nth;
      if (std::chrono::steady_clock::now() >= deadline) return counts;
      const auto ask = [&] { return (*sender)->is_ready(); };
      ready = where == Fails::kBothEnds ? failing.during(ask) : ask();
      auto accepted = failing.during([&] { return (*listener)->accept(); });
      EXPECT_TRUE(accepted);
      if (*accepted != nullptr) pair.receiver = std::move(*accepted);
    }
    if (!ready) {
      ++counts.refused;
      EXPECT_EQ(ready.error().code, Errc::kOutOfMemory) << nth;
      continue;
    }
    pair.sender = std::move(*sender);
    expect_carries(pair);
    if (!failing.has_failed()) break;
    ++counts.dialled_again;
  }
  expect_carries(pair);
  return counts;
}

}  // namespace ztcp::test
