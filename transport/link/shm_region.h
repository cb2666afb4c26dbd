// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The memory that the two ends of a link share, one way for each direction. The server makes it,
// seals it, so that no process can truncate it under the other, and passes its descriptor; both map
// it. A forked child does not inherit it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/fd.h"
#include "core/result.h"
#include "transport/link/shm_ring.h"

namespace ztcp::link {

struct ShmShape {
  std::uint32_t slot_count = 0;  // Each way; a power of two, at most kMaxShmSlots.
  std::uint32_t slot_bytes = 0;  // A multiple of 64.

  friend bool operator==(const ShmShape&, const ShmShape&) = default;
  bool is_possible() const;
  std::size_t bytes() const;
};

class ShmRegion {
 public:
  // For the server: new memory and its descriptor.
  static Result<std::unique_ptr<ShmRegion>> make(const ShmShape& shape, Fd& fd);
  // For the client. kProtocol: it differs from the server's description, or is not sealed.
  static Result<std::unique_ptr<ShmRegion>> map(const ShmShape& shape, const Fd& fd);
  ShmRegion(const ShmRegion&) = delete;
  ShmRegion& operator=(const ShmRegion&) = delete;

  ShmSender& sender() { return sender_; }
  ShmReceiver& receiver() { return receiver_; }

 private:
  struct Unmap {
    void operator()(void* memory) const;
    std::size_t bytes = 0;
  };
  using Memory = std::unique_ptr<void, Unmap>;

  ShmRegion(const ShmShape& shape, Memory memory, bool server);
  static Result<std::unique_ptr<ShmRegion>> map(const ShmShape& shape, const Fd& fd, bool server);

  Memory memory_;
  ShmSender sender_;
  ShmReceiver receiver_;
};

}  // namespace ztcp::link
