// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One direction between two comms of the in-memory transport: its messages, its posted buffers and
// their matching. The j-th message sent with a tag goes to the j-th buffer posted with that tag.
//
// Not thread-safe, except Operation::test(): callers hold the fabric's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "tests/support/memory_region.h"
#include "transport/transport.h"

namespace ztcp::test {

struct Pipe;

// The state shared by all comms of one transport. One lock for all of it, for clarity.
struct MemoryFabric {
  std::mutex mutex;
  std::map<std::uint64_t, std::deque<std::shared_ptr<Pipe>>> listeners;
  std::uint64_t next_listener = 1;
  std::optional<Error> listen_error;
  std::optional<Error> connect_error;
  std::optional<Error> dead;
  int ready_delay = 0;
  bool credit_withheld = false;
  int comms = 0;
  int keys = 0;
};

using RegionPtr = std::shared_ptr<MemoryRegion>;  // Null: unregistered host memory.

struct Pipe {
  static constexpr std::size_t kMaxOutstanding = 32;
  static constexpr std::size_t kEagerBytes = 128U << 10U;

  enum class State : std::uint8_t { kFree, kPosted, kDone, kFailed };
  struct Buffer {
    std::span<std::byte> bytes;
    int tag = 0;
    RegionPtr region;
    bool is_filled = false;
    std::size_t moved = 0;
  };
  struct Operation final : Request {
    Result<bool> test(std::span<std::size_t> sizes_bytes) override;
    void begin(std::size_t buffers);
    void end(Errc code, const char* where);

    std::shared_ptr<MemoryFabric> fabric;
    State state = State::kFree;
    std::array<Buffer, kMaxReceives> parts;  // The first buffers() are in use.
    Error error;
    // Flushes: the arrivals that become visible at the second test().
    bool was_asked = false;
    std::vector<std::pair<RegionPtr, std::vector<MemoryRegion::Arrival>>> arrivals;
  };
  using Table = std::array<Operation, kMaxOutstanding>;
  struct Message {
    int tag = 0;
    Operation* send = nullptr;  // Null: the message was sent eagerly.
    std::vector<std::byte> eager;
  };

  explicit Pipe(const std::shared_ptr<MemoryFabric>& shared);
  // nullptr: no free operation.
  static Operation* take(Table& table, std::size_t buffers);

  void send(Operation& operation);
  void receive(Operation& operation);
  // Pairs messages with buffers of the same tag.
  void match();
  // False: the buffer is too small.
  bool deliver(Message& message, Buffer& buffer);

  std::shared_ptr<MemoryFabric> fabric;
  Table sends;
  Table receives;
  Table flushes;
  std::deque<Message> messages;
  std::deque<Operation*> posted;
  std::size_t eager_bytes = 0;
  bool receiver_closed = false;
};

}  // namespace ztcp::test
