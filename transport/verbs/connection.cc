// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection.h"

#include <cerrno>
#include <cstring>

#include "transport/verbs/session/recv_session.h"

namespace ztcp::verbs {

Made<void> Connection::prepare(std::uint32_t queue_pairs, std::uint8_t traffic_class) {
  const Device& device = rail_->device;
  const Api& api = *device.opened->api;
  memory_ = std::make_unique<ControlMemory>();
  // A slot is looked at as it comes: no relaxed ordering.
  region_ = RegionHandle(api.reg_mr(device.opened->domain.get(), memory_.get(), sizeof *memory_,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                         {&api});
  if (!region_) {
    const int error = errno;
    return tl::unexpected(
        Refusal{{error == ENOMEM ? Errc::kOutOfMemory : Errc::kSystem, error, "ibv_reg_mr"},
                std::string("ibv_reg_mr of a connection's own memory: ") + std::strerror(error) +
                    "; raise ulimit -l (LimitMEMLOCK of the service, --ulimit memlock=-1 of the "
                    "container)"});
  }
  auto made = QueuePairs::create(
      device, {.count = queue_pairs,
               .receive_depth = direction_ == Direction::kReceive ? RecvSession::kReceiveDepth : 1,
               .traffic_class = traffic_class});
  if (!made) return tl::unexpected(std::move(made.error()));
  queues_ = std::move(*made);
  return {};
}

EndFacts Connection::facts() const {
  EndFacts out;
  queues_->tell(out);
  out.memory_address = direction_ == Direction::kSend
                           ? reinterpret_cast<std::uint64_t>(&memory_->ring)
                           : reinterpret_cast<std::uint64_t>(&memory_->sizes);
  out.memory_rkey = region_->rkey;
  return out;
}

Made<void> Connection::join(const EndFacts& peer) {
  peer_facts_ = peer;
  return queues_->join(peer);
}

void Connection::fail(const Error& error) {
  error_ = error;
  phase_.store(Phase::kFailed, std::memory_order_release);
}

void Connection::hear(News news, Errc code, const std::string& text) {
  const std::lock_guard lock(news_mutex_);
  if (news_.load(std::memory_order_relaxed) != News::kNone) return;
  news_code_ = code;
  news_text_ = text;
  news_.store(news, std::memory_order_release);
}

}  // namespace ztcp::verbs
