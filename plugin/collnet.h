// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's CollNet over Net: lists the same devices, makes groups of hosts, and ends those that NCCL
// forgets with their communicator. Only where the user has switched it on; else there are no
// devices, and NCCL calls nothing here again.
//
// Threads: any, at any time; connect() blocks its service thread until all hosts are connected, or
// until the connect timeout.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "plugin/collnet_group.h"
#include "plugin/net.h"

namespace ztcp::plugin {

// NCCL's listenComm of CollNet.
struct CollListening {
  Context* context = nullptr;  // Null: the process's.
  int device = 0;
  Listening* listening = nullptr;
};

class CollNet {
 public:
  explicit CollNet(Net& net) : net_(net) {}

  // v11+: once per communicator. nullptr: switched off; NCCL will not finalize it.
  Told<Context*> init_context(const CommOptions& options);
  void finalize(Context* context);
  // 0: switched off.
  Told<int> device_count();

  Told<CollListening*> listen(Context* context, int device, HandleBytes handle);
  // `handles` are those of all hosts' listen(), in the order of the ranks. A failure closes
  // `listening`: NCCL forgets it, and may pass NULL in its place later.
  Told<CollGroup*> connect(std::span<void* const> handles, std::size_t rank,
                           CollListening* listening);
  // Take nullptr, and objects closed before.
  void close(CollListening* listening);
  void close(CollGroup* group);

 private:
  struct OwnedGroup {
    std::unique_ptr<CollGroup> group;
    Context* context = nullptr;
  };

  Told<CollGroup*> meet(std::span<void* const> handles, std::size_t rank,
                        const CollListening& listening);

  Net& net_;
  std::mutex mutex_;  // Guards the members below.
  std::unordered_map<CollListening*, std::unique_ptr<CollListening>> listenings_;
  std::unordered_map<CollGroup*, OwnedGroup> groups_;
};

// The process's only instance, over net(). Never destroyed.
CollNet& coll_net();

}  // namespace ztcp::plugin
