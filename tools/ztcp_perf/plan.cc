// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/plan.h"

#include <algorithm>

namespace ztcp::perf {
namespace {

constexpr std::size_t kElementBytes = 4;

std::size_t steps_for(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kStepBytes - 1) / kStepBytes);
}

// [begin, end) of part `index` of `parts` nearly equal ones, in elements.
struct Part {
  std::size_t begin;
  std::size_t end;
  std::size_t offset_bytes() const { return begin * kElementBytes; }
  std::size_t size_bytes() const { return (end - begin) * kElementBytes; }
};
Part part_of(std::size_t begin, std::size_t end, std::size_t index, std::size_t parts) {
  const std::size_t count = end - begin;
  return {begin + count * index / parts, begin + count * (index + 1) / parts};
}

// Splits a contiguous message into steps.
template <class Step>
void cut(std::vector<Step>& steps, Buffer buffer, std::size_t offset, std::size_t size) {
  for (std::size_t at = 0; at < size; at += kStepBytes) {
    Step step;
    step.buffer = buffer;
    step.offset_bytes = offset + at;
    step.size_bytes = std::min(kStepBytes, size - at);
    steps.push_back(step);
  }
}

// Rounds of a ring in which a rank sums what it receives, and rounds in which it keeps it.
struct Rounds {
  std::size_t sums;
  std::size_t copies;
};

// Ring: reduce-scatter, then all-gather, or one of the two. In each round a rank sends the chunk
// that it received in the round before, cut into the same slices on all ranks; a small chunk may
// have empty slices, which are sent as empty messages, as in NCCL.
void plan_ring(Plan& plan, int rank, int ranks, Rounds rounds) {
  const std::size_t count = plan.input_bytes / kElementBytes;
  const auto n = static_cast<std::size_t>(ranks);
  const auto me = static_cast<std::size_t>(rank);
  const std::size_t largest_chunk = (count + n - 1) / n;
  const std::size_t slices = steps_for(largest_chunk * kElementBytes);
  const auto chunk = [&](std::size_t index) { return part_of(0, count, index % n, n); };
  const auto slice = [&](std::size_t index, std::size_t s) {
    const Part c = chunk(index);
    return part_of(c.begin, c.end, s, slices);
  };
  const auto step_index = [&](std::size_t round, std::size_t s) {
    return static_cast<std::int64_t>(round * slices + s);
  };
  // A reduce-scatter's last sum is that of the rank's own chunk; an all-reduce has n - 1 rounds
  // more to bring each chunk there.
  const std::size_t first = me + 2 * n - (rounds.copies == 0 ? 1 : 0);
  for (std::size_t round = 0; round < rounds.sums + rounds.copies; ++round) {
    const bool scatter = round < rounds.sums;
    const std::size_t sent = first - round;  // Modulo n; 2n keeps the subtraction positive.
    const std::size_t received = sent - 1;
    for (std::size_t s = 0; s < slices; ++s) {
      SendStep send;
      const Part out = slice(sent, s);
      send.buffer = round == 0 ? Buffer::kInput : Buffer::kOutput;
      send.offset_bytes = out.offset_bytes();
      send.size_bytes = out.size_bytes();
      if (round > 0) send.after_receive = step_index(round - 1, s);
      plan.sends[0].steps.push_back(send);

      ReceiveStep receive;
      const Part in = slice(received, s);
      receive.buffer = scatter ? Buffer::kScratch : Buffer::kOutput;
      receive.offset_bytes = in.offset_bytes();
      receive.size_bytes = in.size_bytes();
      receive.sum = scatter;
      // The finished chunk overwrites the partial sum sent n - 1 rounds ago.
      if (!scatter && rounds.sums > 0 && round > n - 1)
        receive.after_send = step_index(round - (n - 1), s);
      plan.receives[0].steps.push_back(receive);
    }
  }
}

// A chain from rank 0, the root, to the last rank: each forwards a step after receiving it.
void plan_broadcast(Plan& plan) {
  const bool is_root = plan.receives.empty();
  (is_root ? plan.input_bytes : plan.output_bytes) = plan.size_bytes;
  if (!is_root) cut(plan.receives[0].steps, Buffer::kOutput, 0, plan.size_bytes);
  if (plan.sends.empty()) return;
  cut(plan.sends[0].steps, is_root ? Buffer::kInput : Buffer::kOutput, 0, plan.size_bytes);
  if (is_root) return;
  std::int64_t received = 0;
  for (SendStep& step : plan.sends[0].steps) step.after_receive = received++;
}

}  // namespace

std::vector<int> send_peers(Op op, int rank, int ranks) {
  switch (op) {
    case Op::kAllReduce:
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kSendRecv:
      return {(rank + 1) % ranks};
    case Op::kBroadcast:
      return rank + 1 < ranks ? std::vector<int>{rank + 1} : std::vector<int>{};
    case Op::kPing:
      return rank < 2 ? std::vector<int>{1 - rank} : std::vector<int>{};
    case Op::kCollNet:
    case Op::kCollNetAllGather:
    case Op::kCollNetReduceScatter:
      return {};
    case Op::kAllToAll:
      break;
  }
  std::vector<int> peers;
  for (int i = 1; i < ranks; ++i) peers.push_back((rank + i) % ranks);
  return peers;
}

std::vector<int> receive_peers(Op op, int rank, int ranks) {
  switch (op) {
    case Op::kAllReduce:
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kSendRecv:
      return {(rank + ranks - 1) % ranks};
    case Op::kBroadcast:
      return rank > 0 ? std::vector<int>{rank - 1} : std::vector<int>{};
    case Op::kPing:
      return rank < 2 ? std::vector<int>{1 - rank} : std::vector<int>{};
    case Op::kCollNet:
    case Op::kCollNetAllGather:
    case Op::kCollNetReduceScatter:
      return {};
    case Op::kAllToAll:
      break;
  }
  std::vector<int> peers;
  for (int i = 1; i < ranks; ++i) peers.push_back((rank + ranks - i) % ranks);
  return peers;
}

Plan make_plan(Op op, int rank, int ranks, std::uint64_t size_bytes) {
  Plan plan;
  for (const int peer : send_peers(op, rank, ranks)) plan.sends.push_back({peer, {}});
  for (const int peer : receive_peers(op, rank, ranks)) plan.receives.push_back({peer, {}});

  const std::uint64_t elements = std::max<std::uint64_t>(1, size_bytes / kElementBytes);
  const auto n = static_cast<std::uint64_t>(ranks);
  const bool has_blocks = op == Op::kAllToAll || is_gather(op) || is_scatter(op);
  plan.count = has_blocks ? std::max<std::uint64_t>(1, elements / n) : elements;
  const std::size_t block = plan.count * kElementBytes;
  plan.size_bytes = has_blocks ? block * n : block;
  plan.is_collective = is_collnet(op);
  if (op != Op::kSendRecv && op != Op::kPing && op != Op::kBroadcast)
    plan.input_bytes = plan.output_bytes = plan.size_bytes;
  switch (op) {
    case Op::kAllReduce:
      plan_ring(plan, rank, ranks, {.sums = n - 1, .copies = n - 1});
      break;
    case Op::kReduceScatter:
      plan_ring(plan, rank, ranks, {.sums = n - 1, .copies = 0});
      break;
    case Op::kAllGather:
      plan.own_offset_bytes = block * static_cast<std::size_t>(rank);
      plan.own_bytes = block;
      plan_ring(plan, rank, ranks, {.sums = 0, .copies = n - 1});
      break;
    case Op::kCollNet:
    case Op::kCollNetAllGather:
    case Op::kCollNetReduceScatter:
      break;
    case Op::kSendRecv:
    case Op::kPing:
      if (plan.sends.empty()) break;
      plan.input_bytes = plan.output_bytes = plan.size_bytes;
      cut(plan.sends[0].steps, Buffer::kInput, 0, plan.input_bytes);
      cut(plan.receives[0].steps, Buffer::kOutput, 0, plan.output_bytes);
      // The echo waits for the whole message.
      if (op == Op::kPing && rank == 1)
        for (SendStep& step : plan.sends[0].steps)
          step.after_receive = static_cast<std::int64_t>(plan.receives[0].steps.size()) - 1;
      break;
    case Op::kBroadcast:
      plan_broadcast(plan);
      break;
    case Op::kAllToAll:
      plan.own_offset_bytes = block * static_cast<std::size_t>(rank);
      plan.own_bytes = block;
      for (SendLane& lane : plan.sends)
        cut(lane.steps, Buffer::kInput, block * static_cast<std::size_t>(lane.peer), block);
      for (ReceiveLane& lane : plan.receives)
        cut(lane.steps, Buffer::kOutput, block * static_cast<std::size_t>(lane.peer), block);
      break;
  }
  return plan;
}

double bus_factor(Op op, int ranks) {
  const double n = ranks;
  switch (op) {
    case Op::kAllReduce:
    case Op::kCollNet:
      return 2 * (n - 1) / n;
    case Op::kAllToAll:
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kCollNetAllGather:
    case Op::kCollNetReduceScatter:
      return (n - 1) / n;
    case Op::kBroadcast:
    case Op::kSendRecv:
    case Op::kPing:
      break;
  }
  return 1;
}

StepPart step_part(std::size_t step_bytes, std::size_t parts, std::size_t index) {
  const std::size_t elements = (step_bytes + sizeof(float) - 1) / sizeof(float);
  const std::size_t each = (elements + parts - 1) / parts * sizeof(float);
  const std::size_t begin = std::min(step_bytes, index * each);
  return {begin, std::min(each, step_bytes - begin)};
}

}  // namespace ztcp::perf
