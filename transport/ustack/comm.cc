// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/comm.h"

#include <algorithm>
#include <sched.h>

#include <fmt/format.h>

#include "transport/core/log.h"
#include "transport/core/process_mark.h"

namespace ztcp::ustack {

CommBase::~CommBase() {
  // A child owns nothing here; its copy of the NIC is abandoned, not ended.
  if (in_forked_child()) {
    new std::shared_ptr<Nic>(std::move(nic_));  // NOLINT: leaked on purpose.
    return;
  }
  nic_->poller->with_engine([&](Engine&, TimePoint now) { state_->close(now); });
  for (const auto& r : registrations_) nic_->poller->link().unmap_memory(r->link_key);
  nic_->poller->end_log().closed();
}

Result<MemoryKey*> CommBase::register_memory(const Region& region) {
  if (in_forked_child()) return fail(Errc::kForked, "register_memory");
  if (region.kind != MemoryKind::kHost || region.dmabuf_fd >= 0)
    return fail(Errc::kInvalidArgument, "userspace TCP, which moves host memory only");
  const std::uint32_t key = nic_->poller->link().map_memory(region.address, region.size_bytes);
  auto registration = std::make_unique<Registration>();
  registration->address = region.address;
  registration->size_bytes = region.size_bytes;
  registration->link_key = key;
  const std::lock_guard lock(registrations_mutex_);
  registrations_.push_back(std::move(registration));
  return registrations_.back().get();
}

Status CommBase::deregister_memory(MemoryKey* key) {
  if (in_forked_child()) return fail(Errc::kForked, "deregister_memory");
  std::unique_ptr<Registration> registration;
  {
    const std::lock_guard lock(registrations_mutex_);
    const auto found = std::find_if(registrations_.begin(), registrations_.end(),
                                    [&](const auto& r) { return r.get() == key; });
    if (found == registrations_.end()) return fail(Errc::kInvalidArgument, "deregister_memory");
    registration = std::move(*found);
    registrations_.erase(found);
  }
  // A posted receive may never be matched, so there is nothing to wait for.
  const bool sends = state_->direction() == Direction::kSend;
  const Ipv4Address peer = state_->remote().address;
  const auto begun = std::chrono::steady_clock::now();
  const auto patience_ends =
      begun + (sends ? nic_->memory_patience.for_peer(peer) : Duration::zero());
  while (state_->touches(registration->address, registration->size_bytes)) {
    if (const auto at = std::chrono::steady_clock::now(); at >= patience_ends) {
      if (sends) nic_->memory_patience.ran_out(peer, at - begun);
      nic_->poller->end_log().cut(
          fmt::format("memory with bytes in flight is deregistered: the connection {} {} is ended",
                      sends ? "to" : "from", to_string(state_->remote())));
      nic_->poller->with_engine([&](Engine&, TimePoint now) {
        state_->fail_now(now, Error{Errc::kAborted, 0, "deregister_memory"});
      });
      break;
    }
    nic_->poller->progress();
    sched_yield();
  }
  nic_->poller->link().unmap_memory(registration->link_key);
  return {};
}

std::string CommBase::describe_peer() const {
  return to_string(state_->remote()) + " on " + nic_->config.name;
}

Result<bool> UstackSendComm::is_ready() {
  if (in_forked_child()) return fail(Errc::kForked, "connect");
  CommState& state = base_.state();
  Nic& nic = base_.nic();
  if (!state.ready() && !state.failed()) nic.poller->progress();
  if (state.failed()) return tl::unexpected(state.report());
  if (state.ready()) return true;
  if (nic.poller->link_state() != link::LinkState::kUp &&
      std::chrono::steady_clock::now() - begun_ >= nic.link_patience) {
    nic.poller->with_engine([&](Engine&, TimePoint now) {
      state.fail_now(now, Error{Errc::kNoRoute, 0, "the link never came up"});
    });
    return tl::unexpected(state.report());
  }
  return false;
}

Result<Request*> UstackSendComm::post_send(std::span<const std::byte> bytes, int, MemoryKey* key) {
  const auto* registration = static_cast<const Registration*>(key);
  // The slot table is one for both directions; a sender never writes through the pointer.
  return base_.state().post(const_cast<std::byte*>(bytes.data()), bytes.size(),
                            registration != nullptr ? registration->link_key : kUnmapped);
}

Result<Request*> UstackRecvComm::post_recv(std::span<const RecvBuffer> buffers) {
  if (buffers.size() != 1) {
    log::warn("irecv of {} buffers: userspace TCP takes 1 at a time (maxRecvs)", buffers.size());
    return fail(Errc::kInvalidArgument, "irecv");
  }
  return base_.state().post(buffers[0].bytes.data(), buffers[0].bytes.size(), kUnmapped);
}

}  // namespace ztcp::ustack
