// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An operation as lists of messages per connection, with their places in memory and their
// dependencies. Made once per size and run many times. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/ztcp_perf/options.h"

namespace ztcp::perf {

// The buffer of NCCL's SIMPLE protocol, 4 MiB in 8 steps: its largest step, and the number in
// flight.
inline constexpr std::size_t kStepBytes = 512UL << 10U;
inline constexpr std::uint32_t kStepsInFlight = 8;

inline constexpr std::int64_t kNoDependency = -1;

inline constexpr int kRoot = 0;  // The rank that broadcasts its data.

// A message's buffer in this rank's memory.
enum class Buffer : std::uint8_t {
  kInput,    // The user's send buffer.
  kOutput,   // The user's receive buffer.
  kScratch,  // kStepsInFlight slots per connection, for data that is summed on arrival.
};

struct SendStep {
  Buffer buffer = Buffer::kInput;
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
  // Index of the receive on lane 0 that must complete first, or kNoDependency.
  std::int64_t after_receive = kNoDependency;
};

struct ReceiveStep {
  Buffer buffer = Buffer::kOutput;
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
  // Scratch receives: after arrival output = scratch + input at this offset.
  bool sum = false;
  // Index of the send on lane 0 that must complete before this receive is posted: the send still
  // reads the memory that the receive writes.
  std::int64_t after_send = kNoDependency;
};

struct SendLane {
  int peer = 0;
  std::vector<SendStep> steps;
};
struct ReceiveLane {
  int peer = 0;
  std::vector<ReceiveStep> steps;
};

struct Plan {
  std::vector<SendLane> sends;
  std::vector<ReceiveLane> receives;
  // all_to_all, all_gather: this rank's own block, copied locally.
  std::size_t own_offset_bytes = 0;
  std::size_t own_bytes = 0;

  std::size_t input_bytes = 0;  // Sizes of the user's buffers, as used by this operation.
  std::size_t output_bytes = 0;
  bool is_collective = false;    // The plugin reduces; there are no messages.
  std::uint64_t count = 0;       // Elements, as nccl-tests counts them.
  std::uint64_t size_bytes = 0;  // For the size column.
};

// One of `parts` messages of a step: whole elements; in a small step the last ones are empty.
struct StepPart {
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};
StepPart step_part(std::size_t step_bytes, std::size_t parts, std::size_t index);

// The peers that each rank connects to for `op`; the lanes of every plan are in this order.
std::vector<int> send_peers(Op op, int rank, int ranks);
std::vector<int> receive_peers(Op op, int rank, int ranks);

// `size_bytes` is rounded to whole elements (and blocks where each rank has one), at least one of
// each. An all-gather's input and a reduce-scatter's output have a place for every rank's block, of
// which this rank's is used.
Plan make_plan(Op op, int rank, int ranks, std::uint64_t size_bytes);

// busbw = algbw times this, as nccl-tests defines it.
double bus_factor(Op op, int ranks);

}  // namespace ztcp::perf
