// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_group.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "plugin/memory.h"
#include "plugin/net.h"

namespace ztcp::plugin {

SharedMemory::SharedMemory(Comm* const* comms, std::size_t count)
    : comms_(comms, comms + count), keys_(count) {}

SharedMemory::~SharedMemory() {
  for (std::size_t i = 0; i < comms_.size(); ++i)
    if (keys_[i] != nullptr) (void)plugin::deregister_memory(*comms_[i], keys_[i]);
}

bool SharedMemory::has(const std::byte* address, std::size_t size_bytes) const {
  const auto* const begin = static_cast<const std::byte*>(region_.address);
  const std::byte* const end = begin + region_.size_bytes;
  return address >= begin && address <= end &&
         size_bytes <= static_cast<std::size_t>(end - address);
}

Told<void> SharedMemory::take(const Region& region) {
  region_ = region;
  for (std::size_t i = 0; i < comms_.size(); ++i)
    if (comms_[i] != nullptr) keys_[i] = ZTCP_TRY(plugin::register_memory(*comms_[i], region));
  return {};
}

Told<void> SharedMemory::release() {
  Told<void> outcome;
  for (std::size_t i = 0; i < comms_.size(); ++i)
    if (MemoryKey* const key = std::exchange(keys_[i], nullptr); key != nullptr)
      if (const auto released = plugin::deregister_memory(*comms_[i], key); !released)
        outcome = pass_on(released.error());
  return outcome;
}

namespace {

// Pieces of a vector on its way arrive at shorter intervals.
constexpr Duration kWorkerSpin = std::chrono::microseconds(200);

}  // namespace

void UnmapPages::operator()(std::byte* memory) const { munmap(memory, bytes); }

CollGroup::CollGroup(Net& net, std::size_t rank, std::vector<PeerLanes> lanes)
    : net_(net), rank_(rank), lanes_(std::move(lanes)) {
  comms_.resize(lanes_.size() * reduce::kLanes * 2);
  for (std::size_t host = 0; host < lanes_.size(); ++host)
    for (std::size_t lane = 0; lane < reduce::kLanes; ++lane) {
      const auto number = static_cast<reduce::Lane>(lane);
      comms_[place(host, number, false)] = lanes_[host].receivers[lane];
      comms_[place(host, number, true)] = lanes_[host].senders[lane];
    }
}

// The registrations end before the connections, as NCCL ends them: no byte of the memory is on its
// way once it is freed.
CollGroup::~CollGroup() {
  is_closing_.store(true);
  workers_.stop();
  memories_.clear();
  for (Comm* const comm : comms_) net_.close(comm);
}

Told<void> CollGroup::prepare(const CollnetSettings& settings) {
  const reduce::Wire wire = settings.wire;
  const std::size_t bytes = reduce::AllReduce::scratch_bytes(lanes_.size(), wire);
  // Populated, so that no call waits for pages.
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED)
    return report(Errc::kOutOfMemory, "CollNet: no {} bytes for the contributions of {} hosts",
                  bytes, lanes_.size() - 1);
  // A forked child does not need it. If it had it, the next write here would go to a copy of the
  // page, and the NIC would go on with the old one.
  madvise(memory, bytes, MADV_DONTFORK);
  scratch_ = {static_cast<std::byte*>(memory), UnmapPages{bytes}};
  SharedMemory* const shared = ZTCP_TRY(register_memory({.address = memory, .size_bytes = bytes}));
  all_reduce_ = std::make_unique<reduce::AllReduce>(
      static_cast<reduce::Peers&>(*this), reduce::GroupSetup{.hosts = lanes_.size(),
                                                             .rank = rank_,
                                                             .wire = wire,
                                                             .scratch = scratch_.get(),
                                                             .scratch_registration = shared,
                                                             .workers = &workers_});
  const Status started =
      workers_.start(settings.workers, {.name = "ztcp-sum", .cpus = {}, .spin = kWorkerSpin},
                     [this](std::size_t) { return !is_closing_.load() && all_reduce_->work(); });
  if (!started)
    log::warn("CollNet: {} of {} workers could be started ({}: {}), so sums take longer",
              workers_.count(), settings.workers, started.error().where,
              std::strerror(started.error().sys_errno));
  return {};
}

Told<SharedMemory*> CollGroup::register_memory(const Region& region) {
  auto memory = std::make_unique<SharedMemory>(comms_.data(), comms_.size());
  ZTCP_CHECK(memory->take(region));
  SharedMemory* const raw = memory.get();
  const std::lock_guard lock(mutex_);
  memories_.push_back(std::move(memory));
  return raw;
}

Told<void> CollGroup::deregister_memory(SharedMemory* memory) {
  all_reduce_->settle();
  std::unique_ptr<SharedMemory> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(memories_, memory, &std::unique_ptr<SharedMemory>::get);
    if (found == memories_.end()) return {};
    ended = std::move(*found);
    memories_.erase(found);
  }
  return ended->release();
}

// A NIC that reads or writes other memory than was registered breaks the connection at best.
Told<void> CollGroup::check_memory(const reduce::Operands& operands) const {
  const reduce::Range all{0, operands.count};
  const reduce::Range own = part_in_window(operands.window, all, rank_);
  const auto check = [&](const std::byte* address, const reduce::Range& elements,
                         const reduce::Registration* registration) -> Told<void> {
    const std::size_t bytes = elements.count * size_of(operands.type);
    const auto* const memory = static_cast<const SharedMemory*>(registration);
    if (bytes == 0 || (memory != nullptr && memory->has(address, bytes))) return {};
    return report(Errc::kInvalidArgument,
                  "CollNet: {} bytes at {} are not in the memory that was registered with their "
                  "mhandle, {}",
                  bytes, fmt::ptr(address), fmt::ptr(memory));
  };
  const auto is = [&](reduce::Collective kind) { return operands.collective == kind; };
  ZTCP_CHECK(check(operands.from, is(reduce::Collective::kAllGather) ? own : all,
                   operands.from_registration));
  return check(operands.to, is(reduce::Collective::kReduceScatter) ? own : all,
               operands.to_registration);
}

Told<reduce::Job*> CollGroup::start(const reduce::Operands& operands) {
  ZTCP_CHECK(check_memory(operands));
  const Result<reduce::Job*> job = all_reduce_->start(operands);
  if (!job) return pass_on(job.error());
  return *job;
}

Result<CollGroup::Ticket> CollGroup::send(std::size_t host, reduce::Lane lane,
                                          const reduce::Piece& piece) {
  SendComm& comm = *lanes_[host].senders[static_cast<std::size_t>(lane)];
  const auto* const memory = static_cast<const SharedMemory*>(piece.registration);
  return comm.post_send({piece.address, piece.size_bytes}, /*tag=*/0,
                        memory->key_for(place(host, lane, true)));
}

Result<CollGroup::Ticket> CollGroup::receive(std::size_t host, reduce::Lane lane,
                                             const reduce::Piece& piece) {
  RecvComm& comm = *lanes_[host].receivers[static_cast<std::size_t>(lane)];
  const auto* const memory = static_cast<const SharedMemory*>(piece.registration);
  const RecvBuffer buffer{.bytes = {piece.address, piece.size_bytes},
                          .key = memory->key_for(place(host, lane, false)),
                          .is_polled = false};
  return comm.post_recv({&buffer, 1});
}

Result<bool> CollGroup::test(Ticket ticket, std::size_t expected_bytes) {
  std::size_t moved = 0;
  const bool done = ZTCP_TRY(static_cast<Request*>(ticket)->test({&moved, 1}));
  if (!done || moved == expected_bytes) return done;
  log::warn(
      "CollNet: a peer sent {} bytes of a vector where this rank expects {}: all ranks must reduce "
      "the same number of elements, and all hosts need the same release of ztcp",
      moved, expected_bytes);
  return fail(Errc::kProtocol, "CollNet");
}

}  // namespace ztcp::plugin
