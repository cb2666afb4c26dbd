// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A group of hosts that reduce together, as NCCL holds it (collComm): connections to and from each
// other host over the transports that isend and irecv use, and the algorithm on top
// (transport/reduce/all_reduce.h).
//
// Threads: made and closed on a service thread, start() and test() on the progress thread;
// registrations come from either. Workers share the sums with the progress thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "core/worker_threads.h"
#include "plugin/report.h"
#include "transport/reduce/all_reduce.h"
#include "transport/transport.h"

namespace ztcp::plugin {

class Net;
struct CollnetSettings;

// Connections with one other host.
struct PeerLanes {
  std::array<SendComm*, reduce::kLanes> senders{};
  std::array<RecvComm*, reduce::kLanes> receivers{};
};

// Memory that is registered with every connection of a group.
class SharedMemory final : public reduce::Registration {
 public:
  SharedMemory(Comm* const* comms, std::size_t count);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Told<void> take(const Region& region);
  Told<void> release();
  MemoryKey* key_for(std::size_t comm) const { return keys_[comm]; }
  bool has(const std::byte* address, std::size_t size_bytes) const;

 private:
  Region region_;
  std::vector<Comm*> comms_;
  std::vector<MemoryKey*> keys_;
};

struct UnmapPages {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const;
};

class CollGroup final : private reduce::Peers {
 public:
  // `lanes` has an entry for each host, this one's empty. Owned by `net`, which closes them.
  CollGroup(Net& net, std::size_t rank, std::vector<PeerLanes> lanes);
  ~CollGroup();
  CollGroup(const CollGroup&) = delete;
  CollGroup& operator=(const CollGroup&) = delete;

  // Second step of construction: the memory for other hosts' contributions, and the workers.
  Told<void> prepare(const CollnetSettings& settings);

  Told<SharedMemory*> register_memory(const Region& region);
  // Waits for the threads that use the memory.
  Told<void> deregister_memory(SharedMemory* memory);

  std::size_t hosts() const { return lanes_.size(); }

  // nullptr: too many calls are under way.
  Told<reduce::Job*> start(const reduce::Operands& operands);

 private:
  Told<void> check_memory(const reduce::Operands& operands) const;
  Result<Ticket> send(std::size_t host, reduce::Lane lane, const reduce::Piece& piece) override;
  Result<Ticket> receive(std::size_t host, reduce::Lane lane, const reduce::Piece& piece) override;
  Result<bool> test(Ticket ticket, std::size_t expected_bytes) override;

  // Where the key of a connection stands in a SharedMemory.
  std::size_t place(std::size_t host, reduce::Lane lane, bool is_send) const {
    return (host * reduce::kLanes + static_cast<std::size_t>(lane)) * 2 + (is_send ? 1 : 0);
  }

  Net& net_;
  const std::size_t rank_;
  const std::vector<PeerLanes> lanes_;
  std::vector<Comm*> comms_;  // By place(); nullptr: none.
  std::unique_ptr<std::byte, UnmapPages> scratch_;
  std::mutex mutex_;  // Guards memories_.
  std::vector<std::unique_ptr<SharedMemory>> memories_;
  std::unique_ptr<reduce::AllReduce> all_reduce_;
  std::atomic<bool> is_closing_{false};  // Workers begin no further task.
  WorkerThreads workers_;                // End before the memory that they use.
};

}  // namespace ztcp::plugin
