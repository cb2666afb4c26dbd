// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/exchange.h"

#include <cstring>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf {

using Clock = std::chrono::steady_clock;

namespace {

// 0 for a rank without lanes in this direction: none of its steps waits for one.
template <class Lanes>
std::int64_t done_on_first(const Lanes& lanes) {
  return lanes.empty() ? 0 : static_cast<std::int64_t>(lanes[0].done);
}

}  // namespace

Exchange::Exchange(Net& net, Connections& connections, Bootstrap& bootstrap, const Options& options)
    : net_(net),
      connections_(connections),
      bootstrap_(bootstrap),
      parts_(static_cast<std::size_t>(options.tags)),
      stall_timeout_(options.stall_timeout_s),
      sends_(connections.sends().size()),
      receives_(connections.receives().size()),
      next_check_(Clock::now()) {}

void Exchange::run(const Plan& plan) {
  if (plan.is_collective) return run_collective(plan);
  std::size_t unfinished = 0;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    sends_[i].posted = sends_[i].done = 0;
    unfinished += !plan.sends[i].steps.empty();
  }
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    receives_[i].posted = receives_[i].done = 0;
    unfinished += !plan.receives[i].steps.empty();
  }
  if (plan.own_bytes > 0)
    std::memcpy(connections_.output().data() + plan.own_offset_bytes,
                connections_.input().data() + plan.own_offset_bytes, plan.own_bytes);
  idle_rounds_ = 0;
  while (unfinished > 0) {
    throw_if_interrupted();  // Also stops a rank that is never idle.
    bool moved = false;
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      const std::size_t total = plan.receives[i].steps.size();
      if (receives_[i].done == total) continue;
      moved |= advance_receive(plan.receives[i], connections_.receives()[i], receives_[i]);
      unfinished -= receives_[i].done == total;
    }
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const std::size_t total = plan.sends[i].steps.size();
      if (sends_[i].done == total) continue;
      moved |= advance_send(plan.sends[i], connections_.sends()[i], sends_[i]);
      unfinished -= sends_[i].done == total;
    }
    if (moved) {
      idle_rounds_ = 0;
    } else {
      idle(plan);
    }
  }
}

void Exchange::run_collective(const Plan& plan) {
  collective_->begin(plan.size_bytes);
  idle_rounds_ = 0;
  while (!collective_->is_done()) {
    throw_if_interrupted();
    if (collective_->advance())
      idle_rounds_ = 0;
    else
      idle(plan);
  }
}

bool Exchange::advance_receive(const ReceiveLane& plan, Lane& lane, Progress& progress) {
  bool moved = false;
  if (progress.posted < plan.steps.size() && progress.posted < progress.done + kStepsInFlight) {
    const ReceiveStep& step = plan.steps[progress.posted];
    if (step.after_send < done_on_first(sends_)) moved = post_receive(step, lane, progress);
  }
  if (progress.done < progress.posted) {
    int done = 0;
    std::array<int, kMaxParts> sizes{};
    const ncclResult_t result =
        net_.test(progress.requests[progress.done % kStepsInFlight][0], &done, sizes.data());
    if (result != ncclSuccess)
      fail("receive {} from rank {} failed: {}", progress.done, lane.peer, name_of(result));
    if (done != 0) {
      finish_receive(plan.steps[progress.done], lane, progress.done, sizes.data());
      ++progress.done;
      moved = true;
    }
  }
  return moved;
}

bool Exchange::post_receive(const ReceiveStep& step, Lane& lane, Progress& progress) {
  std::array<ReceivePart, kMaxParts> buffers;
  for (std::size_t i = 0; i < parts_; ++i) {
    const StepPart part = step_part(step.size_bytes, parts_, i);
    // Like NCCL's own receives, it has room for a whole step if the buffer allows it.
    const bool has_more = step.buffer == Buffer::kScratch && i + 1 == parts_;
    buffers[i] = {.data = receive_place(step, lane, progress.posted) + part.offset_bytes,
                  .size_bytes = has_more ? kStepBytes - part.offset_bytes : part.size_bytes,
                  .tag = tag_of(lane.peer, i),
                  .mhandle = lane.mhandles[static_cast<std::size_t>(step.buffer)]};
  }
  void*& request = progress.requests[progress.posted % kStepsInFlight][0];
  request = nullptr;
  const ncclResult_t result = net_.irecv(lane.comm, std::span(buffers).first(parts_), &request);
  if (result != ncclSuccess) fail("irecv from rank {} failed: {}", lane.peer, name_of(result));
  if (request == nullptr) return false;
  ++progress.posted;
  return true;
}

bool Exchange::advance_send(const SendLane& plan, Lane& lane, Progress& progress) {
  bool moved = false;
  if (progress.posted < plan.steps.size() && progress.posted < progress.done + kStepsInFlight) {
    const SendStep& step = plan.steps[progress.posted];
    if (step.after_receive == kNoDependency || step.after_receive < done_on_first(receives_))
      moved = post_send(step, lane, progress);
  }
  if (progress.done < progress.posted) {
    int done = 0;
    int size = 0;
    const ncclResult_t result = net_.test(
        progress.requests[progress.done % kStepsInFlight][progress.parts_done], &done, &size);
    if (result != ncclSuccess)
      fail("send {} to rank {} failed: {}", progress.done, lane.peer, name_of(result));
    if (done != 0) {
      if (++progress.parts_done == parts_) {
        progress.parts_done = 0;
        ++progress.done;
      }
      moved = true;
    }
  }
  return moved;
}

// Posts as many of the step's messages as the plugin accepts now.
bool Exchange::post_send(const SendStep& step, Lane& lane, Progress& progress) {
  const std::size_t before = progress.parts_posted;
  while (progress.parts_posted < parts_) {
    const StepPart part = step_part(step.size_bytes, parts_, progress.parts_posted);
    void*& request = progress.requests[progress.posted % kStepsInFlight][progress.parts_posted];
    request = nullptr;
    const ncclResult_t result = net_.isend(
        lane.comm, connections_.place(lane, step.buffer) + step.offset_bytes + part.offset_bytes,
        part.size_bytes, tag_of(bootstrap_.rank(), progress.parts_posted),
        lane.mhandles[static_cast<std::size_t>(step.buffer)], &request);
    if (result != ncclSuccess) fail("isend to rank {} failed: {}", lane.peer, name_of(result));
    if (request == nullptr) return progress.parts_posted != before;
    ++progress.parts_posted;
  }
  progress.parts_posted = 0;
  ++progress.posted;
  return true;
}

std::byte* Exchange::receive_place(const ReceiveStep& step, Lane& lane, std::uint64_t index) {
  std::byte* base = connections_.place(lane, step.buffer);
  // The slot is free: its previous receive is complete, or this one could not be posted before.
  if (step.buffer == Buffer::kScratch) return base + (index % kStepsInFlight) * kStepBytes;
  return base + step.offset_bytes;
}

void Exchange::finish_receive(const ReceiveStep& step, Lane& lane, std::uint64_t index,
                              const int* sizes) {
  for (std::size_t i = 0; i < parts_; ++i) {
    const std::size_t sent = step_part(step.size_bytes, parts_, i).size_bytes;
    if (sizes[i] < 0 || static_cast<std::size_t>(sizes[i]) != sent)
      fail("receive {} from rank {}: the plugin says {} bytes came, {} were sent", index, lane.peer,
           sizes[i], sent);
  }
  if (!step.sum) return;
  const auto* arrived = reinterpret_cast<const float*>(receive_place(step, lane, index));
  const auto* mine =
      reinterpret_cast<const float*>(connections_.input().data() + step.offset_bytes);
  auto* sum = reinterpret_cast<float*>(connections_.output().data() + step.offset_bytes);
  for (std::size_t i = 0; i < step.size_bytes / sizeof(float); ++i) sum[i] = arrived[i] + mine[i];
}

void Exchange::idle(const Plan& plan) {
  yielder_.yield();
  // Reads the clock and the sockets only now and then: idle rounds determine latency.
  if (idle_rounds_++ % 64 != 0) return;
  const auto now = Clock::now();
  if (idle_rounds_ == 1) idle_since_ = now;
  if (now < next_check_) return;
  next_check_ = now + std::chrono::milliseconds(5);
  bootstrap_.check();
  bootstrap_.beat();
  if (now - idle_since_ > stall_timeout_) stalled(plan);
}

void Exchange::stalled(const Plan& plan) {
  for (std::size_t i = 0; i < receives_.size(); ++i)
    if (receives_[i].done < plan.receives[i].steps.size())
      fail("nothing moved for {} s: waiting for message {} of {} from rank {}",
           stall_timeout_.count(), receives_[i].done, plan.receives[i].steps.size(),
           connections_.receives()[i].peer);
  for (std::size_t i = 0; i < sends_.size(); ++i)
    if (sends_[i].done < plan.sends[i].steps.size())
      fail("nothing moved for {} s: can't send message {} of {} to rank {}", stall_timeout_.count(),
           sends_[i].done, plan.sends[i].steps.size(), connections_.sends()[i].peer);
  fail("nothing moved for {} s", stall_timeout_.count());
}

}  // namespace ztcp::perf
