// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// This end of a measured pair: one connection each way between two NICs, through the plugin's table
// as NCCL uses it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/yielder.h"
#include "tools/ztcp_perf/connections.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf::probe {

// Messages of one size, one way.
struct Flow {
  std::uint64_t messages = 0;
  std::size_t bytes_each = 0;
};

class PairLink {
 public:
  // The largest message: the largest step of NCCL's simple protocol.
  static constexpr std::size_t kMostBytes = std::size_t{512} << 10U;

  // `check` is called every few milliseconds while nothing moves; it throws to stop the link.
  PairLink(Net& net, int device, std::function<void()> check);
  ~PairLink();
  PairLink(const PairLink&) = delete;
  PairLink& operator=(const PairLink&) = delete;

  // Lets the other end connect; the handle is for its connect().
  Handle listen();
  void connect(Handle peer);
  // Returns when all messages have been sent and received. The other end must do the opposite.
  void transfer(const Flow& sends, const Flow& receives);
  // One short message.
  void send(std::span<const std::byte> message);
  void receive(std::span<std::byte> message);

 private:
  static constexpr std::size_t kInFlight = 8;
  struct Progress {
    Flow flow;
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::array<void*, kInFlight> requests{};
    bool is_done() const { return done == flow.messages; }
    bool may_post() const { return posted < flow.messages && posted < done + kInFlight; }
  };

  bool advance_sends(Progress& sends);
  bool advance_receives(Progress& receives);
  void idle();

  Net& net_;
  int device_;
  std::function<void()> check_;
  Memory output_;
  Memory input_;
  void* listener_ = nullptr;
  void* sender_ = nullptr;
  void* receiver_ = nullptr;
  void* output_handle_ = nullptr;
  void* input_handle_ = nullptr;
  bool is_output_registered_ = false;
  bool is_input_registered_ = false;
  Yielder yielder_;
  std::uint32_t idle_rounds_ = 0;
  std::chrono::steady_clock::time_point next_check_;
};

}  // namespace ztcp::perf::probe
