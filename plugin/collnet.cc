// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet.h"

#include <utility>

#include "plugin/collnet_meeting.h"

namespace ztcp::plugin {

Told<Context*> CollNet::init_context(const CommOptions& options) {
  const Startup& startup = *ZTCP_TRY(net_.started());
  return startup.collnet.is_on ? net_.init_context(options) : nullptr;
}

void CollNet::finalize(Context* context) {
  if (context == nullptr) return;
  std::vector<OwnedGroup> reaped;  // Destroyed after the lock is released.
  {
    const std::lock_guard lock(mutex_);
    for (auto it = groups_.begin(); it != groups_.end();) {
      if (it->second.context != context) {
        ++it;
        continue;
      }
      reaped.push_back(std::move(it->second));
      it = groups_.erase(it);
    }
    std::erase_if(listenings_, [&](const auto& one) { return one.second->context == context; });
  }
  reaped.clear();
  // Ends the listeners, too. The communicator's stragglers are told with the network's context.
  net_.end_context(context);
}

Told<int> CollNet::device_count() {
  const Told<const Startup*> startup = net_.started();
  if (!startup) return pass_on(startup.error());
  // Devices that NCCL merges have no place here: NCCL numbers those of CollNet by itself.
  return (*startup)->collnet.is_on ? static_cast<int>((*startup)->devices.size()) : 0;
}

Told<CollListening*> CollNet::listen(Context* context, int device, HandleBytes handle) {
  Listening* const listening = ZTCP_TRY(net_.listen(context, device, handle));
  auto made = std::make_unique<CollListening>(
      CollListening{.context = context, .device = device, .listening = listening});
  CollListening* const raw = made.get();
  const std::lock_guard lock(mutex_);
  listenings_.emplace(raw, std::move(made));
  return raw;
}

Told<CollGroup*> CollNet::connect(std::span<void* const> handles, std::size_t rank,
                                  CollListening* listening) {
  {
    const std::lock_guard lock(mutex_);
    if (!listenings_.contains(listening))
      return report(Errc::kInvalidArgument,
                    "CollNet's connect of rank {} without a listener; an earlier connect failed",
                    rank);
  }
  Told<CollGroup*> group = meet(handles, rank, *listening);
  if (!group) close(listening);
  return group;
}

Told<CollGroup*> CollNet::meet(std::span<void* const> handles, std::size_t rank,
                               const CollListening& listening) {
  const Startup& startup = *ZTCP_TRY(net_.started());
  CollMeeting meeting(net_, listening, handles, rank, startup.collnet);
  auto group =
      std::make_unique<CollGroup>(net_, rank, ZTCP_TRY(meeting.meet(startup.connect_timeout)));
  ZTCP_CHECK(group->prepare(startup.collnet));
  ZTCP_CHECK(meeting.confirm(startup.connect_timeout));
  CollGroup* const raw = group.get();
  const std::lock_guard lock(mutex_);
  groups_.emplace(raw, OwnedGroup{std::move(group), listening.context});
  return raw;
}

void CollNet::close(CollListening* listening) {
  Listening* ended = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listenings_.find(listening);
    if (found == listenings_.end()) return;
    ended = found->second->listening;
    listenings_.erase(found);
  }
  net_.close(ended);
}

void CollNet::close(CollGroup* group) {
  OwnedGroup ended;  // Destroyed after the lock is released.
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  ended = std::move(found->second);
  groups_.erase(found);
}

CollNet& coll_net() {
  static CollNet* const instance = new CollNet(net());
  return *instance;
}

}  // namespace ztcp::plugin
