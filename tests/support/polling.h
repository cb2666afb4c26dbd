// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Polls connections as NCCL does, until the library answers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/transport.h"

namespace ztcp::test {

// The sender on one host and the receiver it reached on the other.
struct Pair {
  SendCommPtr sender;
  RecvCommPtr receiver;
};

using Bytes = std::vector<std::byte>;

// Made and compared word by word, because sanitizers make each access costly.
inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> words((size + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  std::ranges::generate(words, random);
  Bytes out(size);
  if (size != 0) std::memcpy(out.data(), words.data(), size);
  return out;
}

inline bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Polls both ends from one thread, as two proxies on one CPU do.
inline Pair connect(Transport& from, Transport& to, int listening_device = 0,
                    int connecting_device = 0, const CommOptions& options = {}) {
  auto listener = to.listen(listening_device, options);
  EXPECT_TRUE(listener);
  auto sender = from.begin_connect(connecting_device, (*listener)->handle(), options);
  EXPECT_TRUE(sender);
  Pair pair;
  bool ready = false;
  while (!ready || pair.receiver == nullptr) {
    if (!ready) {
      const auto answer = (*sender)->is_ready();
      EXPECT_TRUE(answer) << (answer ? "" : answer.error().where);
      if (!answer) return pair;
      ready = *answer;
    }
    if (pair.receiver == nullptr) {
      auto accepted = (*listener)->accept();
      EXPECT_TRUE(accepted);
      pair.receiver = std::move(*accepted);
    }
    std::this_thread::yield();
  }
  pair.sender = std::move(*sender);
  return pair;
}

// Polls the request until it is done or has failed.
inline Result<std::size_t> finish(Request& request) {
  std::size_t size = 0;
  while (true) {
    const auto done = request.test({&size, 1});
    if (!done) return tl::unexpected(done.error());
    if (*done) return size;
    std::this_thread::yield();
  }
}

inline Result<Request*> post_recv(RecvComm& comm, std::span<std::byte> bytes,
                                  MemoryKey* key = nullptr, bool is_polled = false) {
  const RecvBuffer buffer{bytes, 0, key, is_polled};
  return comm.post_recv({&buffer, 1});
}

inline Request* post_until_taken(SendComm& comm, std::span<const std::byte> bytes, MemoryKey* key,
                                 int tag = 0) {
  while (true) {
    const auto request = comm.post_send(bytes, tag, key);
    if (!request) return nullptr;
    if (*request != nullptr) return *request;
    std::this_thread::yield();
  }
}

}  // namespace ztcp::test
