// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One rank's memory and connections for an operation, made through the plugin's table as NCCL's
// proxy service thread does: all listens, exchange of handles, connects and accepts polled together
// without blocking, and memory registered with each connection.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/plan.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf {

// Page-aligned memory, zeroed by the kernel.
class Memory {
 public:
  explicit Memory(std::size_t size_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::span<std::byte> bytes() { return {data_, size_bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// A connection to or from one peer. Memory handles by Buffer.
struct Lane {
  int peer = 0;
  void* comm = nullptr;
  void* listener = nullptr;  // For a receive lane, until accepted.
  Handle handle{};
  std::array<void*, 3> mhandles{};
  std::array<bool, 3> registered{};
  std::unique_ptr<Memory> scratch;
};

class Connections {
 public:
  // `members` take part, each at its position in the operation; the other ranks only call open().
  Connections(Net& net, const Options& options, std::size_t buffer_bytes, std::vector<int> members);
  // Deregisters before closing, as NCCL does; also after an incomplete open().
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  void open(int device, Bootstrap& bootstrap);

  std::span<std::byte> input() { return input_.bytes(); }
  std::span<std::byte> output() { return output_.bytes(); }
  std::span<Lane> sends() { return sends_; }
  std::span<Lane> receives() { return receives_; }
  std::byte* place(Lane& lane, Buffer buffer);

 private:
  int position_of(int rank) const;
  void listen(int device);
  std::vector<Handle> exchange_handles(Bootstrap& bootstrap);
  void establish(int device, Bootstrap& bootstrap);
  void register_memory(Lane& lane, bool with_scratch);
  [[noreturn]] void timed_out() const;

  Net& net_;
  const Options& options_;
  std::vector<int> members_;
  Memory input_;
  Memory output_;
  std::vector<Lane> sends_;
  std::vector<Lane> receives_;
};

}  // namespace ztcp::perf
