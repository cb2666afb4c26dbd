// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/exchange.h"

#include <cstring>
#include <sched.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {

using Clock = std::chrono::steady_clock;

Exchange::Exchange(Net& net, Connections& connections, Bootstrap& bootstrap, double stall_timeout_s)
    : net_(net),
      connections_(connections),
      bootstrap_(bootstrap),
      stall_timeout_(stall_timeout_s),
      sends_(connections.sends().size()),
      receives_(connections.receives().size()),
      next_check_(Clock::now()) {}

void Exchange::run(const Plan& plan) {
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

bool Exchange::advance_receive(const ReceiveLane& plan, Lane& lane, Progress& progress) {
  bool moved = false;
  if (progress.posted < plan.steps.size() && progress.posted < progress.done + kStepsInFlight) {
    const ReceiveStep& step = plan.steps[progress.posted];
    if (step.after_send < static_cast<std::int64_t>(sends_[0].done)) {
      void*& request = progress.requests[progress.posted % kStepsInFlight];
      request = nullptr;
      // As for NCCL's own receives there is room for a whole step where the place allows it.
      const std::size_t room = step.buffer == Buffer::kScratch ? kStepBytes : step.size_bytes;
      const ncclResult_t result =
          net_.irecv(lane.comm, receive_place(step, lane, progress.posted), room, lane.peer,
                     lane.mhandles[static_cast<std::size_t>(step.buffer)], &request);
      if (result != ncclSuccess) fail("irecv from rank {} failed: {}", lane.peer, name_of(result));
      if (request != nullptr) {
        ++progress.posted;
        moved = true;
      }
    }
  }
  if (progress.done < progress.posted) {
    int done = 0;
    int size = 0;
    const ncclResult_t result =
        net_.test(progress.requests[progress.done % kStepsInFlight], &done, &size);
    if (result != ncclSuccess)
      fail("receive {} from rank {} failed: {}", progress.done, lane.peer, name_of(result));
    if (done != 0) {
      finish_receive(plan.steps[progress.done], lane, progress.done, size);
      ++progress.done;
      moved = true;
    }
  }
  return moved;
}

bool Exchange::advance_send(const SendLane& plan, Lane& lane, Progress& progress) {
  bool moved = false;
  if (progress.posted < plan.steps.size() && progress.posted < progress.done + kStepsInFlight) {
    const SendStep& step = plan.steps[progress.posted];
    if (step.after_receive == kNoDependency ||
        step.after_receive < static_cast<std::int64_t>(receives_[0].done)) {
      void*& request = progress.requests[progress.posted % kStepsInFlight];
      request = nullptr;
      const ncclResult_t result = net_.isend(
          lane.comm, connections_.place(lane, step.buffer) + step.offset_bytes, step.size_bytes,
          bootstrap_.rank(), lane.mhandles[static_cast<std::size_t>(step.buffer)], &request);
      if (result != ncclSuccess) fail("isend to rank {} failed: {}", lane.peer, name_of(result));
      if (request != nullptr) {
        ++progress.posted;
        moved = true;
      }
    }
  }
  if (progress.done < progress.posted) {
    int done = 0;
    int size = 0;
    const ncclResult_t result =
        net_.test(progress.requests[progress.done % kStepsInFlight], &done, &size);
    if (result != ncclSuccess)
      fail("send {} to rank {} failed: {}", progress.done, lane.peer, name_of(result));
    if (done != 0) {
      ++progress.done;
      moved = true;
    }
  }
  return moved;
}

std::byte* Exchange::receive_place(const ReceiveStep& step, Lane& lane, std::uint64_t index) {
  std::byte* base = connections_.place(lane, step.buffer);
  // The slot is free: its former receive is complete, or this one could not be posted.
  if (step.buffer == Buffer::kScratch) return base + (index % kStepsInFlight) * kStepBytes;
  return base + step.offset_bytes;
}

void Exchange::finish_receive(const ReceiveStep& step, Lane& lane, std::uint64_t index, int size) {
  if (size < 0 || static_cast<std::size_t>(size) != step.size_bytes)
    fail("receive {} from rank {}: the plugin says {} bytes came, {} were sent", index, lane.peer,
         size, step.size_bytes);
  if (!step.sum) return;
  const auto* arrived = reinterpret_cast<const float*>(receive_place(step, lane, index));
  const auto* mine =
      reinterpret_cast<const float*>(connections_.input().data() + step.offset_bytes);
  auto* sum = reinterpret_cast<float*>(connections_.output().data() + step.offset_bytes);
  for (std::size_t i = 0; i < step.size_bytes / sizeof(float); ++i) sum[i] = arrived[i] + mine[i];
}

void Exchange::idle(const Plan& plan) {
  sched_yield();
  // The clock and the sockets only now and then: idle rounds are what latency is made of.
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
           plan.receives[i].peer);
  for (std::size_t i = 0; i < sends_.size(); ++i)
    if (sends_[i].done < plan.sends[i].steps.size())
      fail("nothing moved for {} s: can't send message {} of {} to rank {}", stall_timeout_.count(),
           sends_[i].done, plan.sends[i].steps.size(), plan.sends[i].peer);
  fail("nothing moved for {} s", stall_timeout_.count());
}

}  // namespace ztcp::perf
