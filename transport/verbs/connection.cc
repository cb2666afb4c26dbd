// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/verbs/session/recv_session.h"

namespace ztcp::verbs {

namespace {

// What the config says of the device, else the communicator.
std::uint8_t traffic_class_for(const Device& device, int wanted) {
  const int chosen = device.traffic_class >= 0 ? device.traffic_class : wanted;
  return static_cast<std::uint8_t>(std::clamp(chosen, 0, 255));
}

}  // namespace

Made<void> Connection::prepare(int traffic_class, const EndFacts* peer) {
  memory_ = std::make_unique<ControlMemory>();
  const std::size_t rails = peer == nullptr
                                ? rails_->rails.size()
                                : std::min<std::size_t>(rails_->rails.size(), peer->rails);
  const auto most = static_cast<std::uint32_t>(kMaxQueuePairs / rails);
  for (std::size_t i = 0; i < rails; ++i) {
    const auto& rail = rails_->rails[i];
    std::uint32_t count = std::min(rail->device.queue_pairs, most);
    if (peer != nullptr) count = std::min<std::uint32_t>(count, peer->on[i].queue_pairs);
    const QueuePairSettings settings{
        .count = std::max(1U, count),
        .receive_depth = direction_ == Direction::kReceive ? RecvSession::kReceiveDepth : 1,
        .traffic_class = traffic_class_for(rail->device, traffic_class),
        .sends_pieces = direction_ == Direction::kSend,
        .takes_tellings = peer != nullptr && peer->on[i].tells_apart != 0};
    if (auto made = add_strand(rail, settings); !made)
      return tl::unexpected(std::move(made.error()));
  }
  return {};
}

Made<void> Connection::add_strand(const std::shared_ptr<Rail>& rail,
                                  const QueuePairSettings& settings) {
  const Device& device = rail->device;
  const Api& api = *device.opened->api;
  // A slot is looked at as it comes: no relaxed ordering.
  RegionHandle region(api.reg_mr(device.opened->domain.get(), memory_.get(), sizeof *memory_,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                      {&api});
  if (!region) {
    const int error = errno;
    return tl::unexpected(
        Refusal{{error == ENOMEM ? Errc::kOutOfMemory : Errc::kSystem, error, "ibv_reg_mr"},
                std::string("ibv_reg_mr of a connection's own memory: ") + std::strerror(error) +
                    "; raise ulimit -l (LimitMEMLOCK of the service, --ulimit memlock=-1 of the "
                    "container)"});
  }
  auto made = QueuePairs::create(device, settings);
  if (!made) return tl::unexpected(std::move(made.error()));
  Strand& strand = strands_.emplace_back();
  strand.rail = rail;
  strand.region = std::move(region);
  strand.settings = settings;
  strand.queues = std::move(*made);
  return {};
}

EndFacts Connection::facts() const {
  EndFacts out;
  out.memory_address = reinterpret_cast<std::uint64_t>(&memory_->ring);
  out.rails = static_cast<std::uint8_t>(strands_.size());
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    strands_[i].queues->tell(out.on[i]);
    out.on[i].memory_rkey = strands_[i].region->rkey;
    out.on[i].port = strands_[i].rail->iwarp_port;
  }
  return out;
}

Made<void> Connection::join(const EndFacts& peer) {
  peer_facts_ = peer;
  if (peer.rails < strands_.size()) strands_.resize(peer.rails);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    Strand& strand = strands_[i];
    if (auto joined = strand.queues->join(peer.on[i]); !joined) return joined;
    strand.settings.count = strand.queues->count();
    strand.first_queue_pair = next;
    next += strand.queues->count();
    place(strand);
  }
  if (const Status begun = start_session(); !begun)
    return tl::unexpected(Refusal{begun.error(), begun.error().where});
  return {};
}

// Never of several rails (VerbsTransport::merge).
bool Connection::is_bonded() const { return strands_.front().rail->device.is_iwarp; }

void Connection::bond(std::shared_ptr<ConnectionManager> manager, const Nonce& nonce) {
  strands_.front().queues->bond(std::move(manager), peer_facts_.on[0],
                                direction_ == Direction::kReceive, nonce);
}

void Connection::place(const Strand& strand) {
  for (std::uint32_t n = 0; n < strand.settings.count; ++n)
    places_[strand.first_queue_pair + n] = {strand.queues.get(), n};
}

// Receives are posted before the peer may send.
Status Connection::start_session() {
  std::vector<QueuePairFacts> all = queue_pairs();
  if (direction_ == Direction::kSend) {
    sender_.emplace(std::move(all), memory_->ring, *this);
    return {};
  }
  RecvSettings settings{.rails = {},
                        .inline_bytes = QueuePairs::kInlineBytes,
                        .ring = peer_memory(),
                        .ring_lkeys = memory_lkeys()};
  for (const QueuePairFacts& one : all) {
    settings.rails.push_back(one.rail);
    settings.inline_bytes = std::min(settings.inline_bytes, one.inline_bytes);
  }
  receiver_.emplace(std::move(settings), memory_->ring, *this);
  return receiver_->begin();
}

Status Connection::take(const Strand& strand, const ibv_wc& completion) {
  const std::uint32_t queue_pair =
      strand.first_queue_pair + strand.queues->index_of(completion.qp_num);
  if (completion.wr_id == QueuePairs::kWriteId) return {};
  if (direction_ == Direction::kSend) return sender_->on_completion(queue_pair, completion.wr_id);
  if (completion.wr_id != QueuePairs::kReceiveId)
    return receiver_->on_completion(queue_pair, completion.wr_id);
  const Telling told = strand.queues->take_receive(completion);
  return receiver_->on_immediate(queue_pair, told.immediate, told.size_bytes);
}

RailKeys Connection::memory_lkeys() const {
  RailKeys out{};
  for (std::size_t i = 0; i < strands_.size(); ++i) out[i] = strands_[i].region->lkey;
  return out;
}

RemoteMemory Connection::peer_memory() const {
  RemoteMemory out{.address = peer_facts_.memory_address};
  for (std::size_t i = 0; i < strands_.size(); ++i) out.rkeys[i] = peer_facts_.on[i].memory_rkey;
  return out;
}

std::vector<QueuePairFacts> Connection::queue_pairs() const {
  std::vector<QueuePairFacts> out;
  for (std::uint32_t i = 0; i < strands_.size(); ++i) {
    const QueuePairs& queues = *strands_[i].queues;
    const std::uint32_t each = strands_[i].rail->device.speed_mbps / queues.count();
    out.insert(out.end(), queues.count(), {i, std::max(1U, each), queues.inline_bytes()});
  }
  return out;
}

void Connection::abort() {
  is_aborted_ = true;
  for (const Strand& strand : strands_)
    if (strand.queues) strand.queues->abort();
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
