// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/drop_reader.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/own_thread.h"
#include "core/process_mark.h"

namespace ztcp::link {
namespace {

constexpr std::array kMembers = {&NicDrops::rx_missed, &NicDrops::rx_no_buffers,
                                 &NicDrops::rx_errors, &NicDrops::tx_errors};

}  // namespace

struct DropReader::State {
  Read read;
  mutable std::mutex control;  // Held during a reading.
  mutable std::mutex mutex;
  std::condition_variable ends_changed;
  bool ends = false;
  std::array<std::atomic<std::uint64_t>, kMembers.size()> drops{};
};

DropReader::DropReader(Read read, Duration interval) : state_(std::make_shared<State>()) {
  state_->read = std::move(read);
  auto started = start_thread("ztcp-drops", [state = state_, interval] { run(*state, interval); });
  if (started) thread_ = std::move(*started);
}

void DropReader::run(State& state, Duration interval) {
  DropCount count;
  std::unique_lock lock(state.mutex);
  while (!state.ends) {
    lock.unlock();
    std::optional<NicDrops> reading;
    {
      const std::scoped_lock control(state.control);
      reading = state.read();
    }
    if (reading) {
      const NicDrops sum = count.add(*reading);
      for (std::size_t i = 0; i < kMembers.size(); ++i)
        state.drops[i].store(sum.*kMembers[i], std::memory_order_relaxed);
    }
    lock.lock();
    state.ends_changed.wait_for(lock, interval, [&] { return state.ends; });
  }
}

void DropReader::stop() {
  if (!thread_.joinable()) return;
  if (in_forked_child()) return thread_.detach();  // The thread is the parent's.
  {
    const std::scoped_lock lock(state_->mutex);
    state_->ends = true;
  }
  state_->ends_changed.notify_one();
  thread_.join();
}

NicDrops DropReader::drops() const {
  NicDrops out;
  for (std::size_t i = 0; i < kMembers.size(); ++i)
    out.*kMembers[i] = state_->drops[i].load(std::memory_order_relaxed);
  return out;
}

std::unique_lock<std::mutex> DropReader::try_to_control() const {
  return std::unique_lock(state_->control, std::try_to_lock);
}

}  // namespace ztcp::link
