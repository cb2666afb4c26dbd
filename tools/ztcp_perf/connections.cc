// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/connections.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "core/yielder.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {

Memory::Memory(std::size_t size_bytes) : size_bytes_(size_bytes) {
  void* data = mmap(nullptr, std::max<std::size_t>(size_bytes, 1), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    fail("no memory for a buffer of {} bytes: {} (use a smaller --max)", size_bytes,
         std::strerror(errno));
  data_ = static_cast<std::byte*>(data);
}

Memory::~Memory() { munmap(data_, std::max<std::size_t>(size_bytes_, 1)); }

Connections::Connections(Net& net, const Options& options, std::size_t buffer_bytes,
                         std::vector<int> members)
    : net_(net),
      options_(options),
      members_(std::move(members)),
      input_(buffer_bytes),
      output_(buffer_bytes) {
  const int count = static_cast<int>(members_.size());
  const int position = position_of(*options.rank);
  if (position == count) return;
  for (const int peer : send_peers(options.op, position, count))
    sends_.emplace_back().peer = members_[static_cast<std::size_t>(peer)];
  for (const int peer : receive_peers(options.op, position, count))
    receives_.emplace_back().peer = members_[static_cast<std::size_t>(peer)];
}

// The number of members for a rank that is none.
int Connections::position_of(int rank) const {
  return static_cast<int>(std::find(members_.begin(), members_.end(), rank) - members_.begin());
}

void Connections::open(int device, Bootstrap& bootstrap) {
  listen(device);
  establish(device, bootstrap);
  for (Lane& lane : sends_) register_memory(lane, false);
  for (Lane& lane : receives_) register_memory(lane, is_sum(options_.op));
}

void Connections::listen(int device) {
  for (Lane& lane : receives_) {
    const ncclResult_t result = net_.listen(device, lane.handle.data(), &lane.listener);
    if (result != ncclSuccess) fail("listen on device {} failed: {}", device, name_of(result));
  }
}

// The handle for each send lane to connect to.
std::vector<Handle> Connections::exchange_handles(Bootstrap& bootstrap) {
  std::vector<Handle> mine;
  for (const Lane& lane : receives_) mine.push_back(lane.handle);
  // Each rank's handles are in the order of its receive peers: this rank's position there gives its
  // own.
  const auto all = bootstrap.all_gather(std::as_bytes(std::span(mine)));
  std::vector<Handle> targets;
  for (const Lane& lane : sends_) {
    const auto peers =
        receive_peers(options_.op, position_of(lane.peer), static_cast<int>(members_.size()));
    const auto place = static_cast<std::size_t>(
        std::find(peers.begin(), peers.end(), position_of(*options_.rank)) - peers.begin());
    std::memcpy(targets.emplace_back().data(),
                all[static_cast<std::size_t>(lane.peer)].data() + place * sizeof(Handle),
                sizeof(Handle));
  }
  return targets;
}

void Connections::establish(int device, Bootstrap& bootstrap) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.connect_timeout_s);
  // Kept in place between calls: plugins keep the connect's state in the handle.
  std::vector<Handle> targets = exchange_handles(bootstrap);
  std::size_t missing = sends_.size() + receives_.size();
  Yielder yielder;
  while (missing > 0) {
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      Lane& lane = sends_[i];
      if (lane.comm != nullptr) continue;
      const ncclResult_t result = net_.connect(device, targets[i].data(), &lane.comm);
      if (result != ncclSuccess) fail("connect to rank {} failed: {}", lane.peer, name_of(result));
      missing -= lane.comm != nullptr;
    }
    for (Lane& lane : receives_) {
      if (lane.comm != nullptr) continue;
      const ncclResult_t result = net_.accept(lane.listener, &lane.comm);
      if (result != ncclSuccess) fail("accept from rank {} failed: {}", lane.peer, name_of(result));
      if (lane.comm == nullptr) continue;
      --missing;
      net_.close_listen(std::exchange(lane.listener, nullptr));
    }
    if (missing == 0) return;
    bootstrap.check();
    bootstrap.beat();
    if (std::chrono::steady_clock::now() > deadline) timed_out();
    yielder.yield();
  }
}

void Connections::timed_out() const {
  for (const Lane& lane : sends_)
    if (lane.comm == nullptr)
      fail("connect to rank {} did not finish within {} s", lane.peer, options_.connect_timeout_s);
  for (const Lane& lane : receives_)
    if (lane.comm == nullptr)
      fail("no connection from rank {} within {} s", lane.peer, options_.connect_timeout_s);
  fail("not connected within {} s", options_.connect_timeout_s);
}

void Connections::register_memory(Lane& lane, bool with_scratch) {
  if (with_scratch) lane.scratch = std::make_unique<Memory>(kStepsInFlight * kStepBytes);
  const auto add = [&](Buffer buffer, std::span<std::byte> memory) {
    const auto i = static_cast<std::size_t>(buffer);
    const ncclResult_t result =
        net_.reg_mr(lane.comm, memory.data(), memory.size(), &lane.mhandles[i]);
    if (result != ncclSuccess) fail("regMr of {} bytes failed: {}", memory.size(), name_of(result));
    lane.registered[i] = true;
  };
  add(Buffer::kInput, input_.bytes());
  add(Buffer::kOutput, output_.bytes());
  if (lane.scratch) add(Buffer::kScratch, lane.scratch->bytes());
}

std::byte* Connections::place(Lane& lane, Buffer buffer) {
  switch (buffer) {
    case Buffer::kInput:
      return input_.bytes().data();
    case Buffer::kOutput:
      return output_.bytes().data();
    case Buffer::kScratch:
      break;
  }
  return lane.scratch->bytes().data();
}

Connections::~Connections() {
  const auto deregister = [&](Lane& lane) {
    for (std::size_t i = 0; i < lane.mhandles.size(); ++i)
      if (lane.registered[i]) net_.dereg_mr(lane.comm, lane.mhandles[i]);
  };
  for (Lane& lane : sends_) deregister(lane);
  for (Lane& lane : receives_) deregister(lane);
  for (Lane& lane : sends_)
    if (lane.comm != nullptr) net_.close_send(lane.comm);
  for (Lane& lane : receives_)
    if (lane.comm != nullptr) net_.close_recv(lane.comm);
  for (Lane& lane : receives_)
    if (lane.listener != nullptr) net_.close_listen(lane.listener);
}

}  // namespace ztcp::perf
