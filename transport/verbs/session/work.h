// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What sessions ask of queue pairs, without a type of the library: the simulator answers, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/core/result.h"

namespace ztcp::verbs {

struct WorkRequest {
  enum class Kind : std::uint8_t { kWrite, kWriteImmediate };

  Kind kind = Kind::kWrite;
  bool is_signalled = false;
  bool is_inline = false;  // The bytes are taken while it is posted; host memory alone.
  const std::byte* local = nullptr;
  std::uint32_t lkey = 0;
  std::uint32_t size_bytes = 0;
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  std::uint32_t immediate = 0;
  std::uint64_t id = 0;  // Comes back with its completion.
};

// Each call is one doorbell.
class WorkQueues {
 public:
  virtual Status post(std::uint32_t queue_pair, const WorkRequest& request) = 0;
  // Takes in so many more immediates; no bytes come with them.
  virtual Status post_receives(std::uint32_t queue_pair, std::uint32_t count) = 0;

 protected:
  ~WorkQueues() = default;
};

}  // namespace ztcp::verbs
