// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The interface between sessions and queue pairs, without types of the library, so that the
// simulator can implement it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/result.h"

namespace ztcp::verbs {

struct WorkRequest {
  enum class Kind : std::uint8_t { kWrite, kWriteImmediate };

  Kind kind = Kind::kWrite;
  bool is_signalled = false;
  bool is_inline = false;  // The bytes are copied while it is posted; host memory only.
  const std::byte* local = nullptr;
  std::uint32_t lkey = 0;
  std::uint32_t size_bytes = 0;
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  std::uint32_t immediate = 0;
  std::uint64_t id = 0;  // Returned with its completion.
};

// Each call is one doorbell.
class WorkQueues {
 public:
  virtual Status post(std::uint32_t queue_pair, const WorkRequest& request) = 0;
  // Posts receives for `count` more immediates, without memory.
  virtual Status post_receives(std::uint32_t queue_pair, std::uint32_t count) = 0;

 protected:
  ~WorkQueues() = default;
};

}  // namespace ztcp::verbs
