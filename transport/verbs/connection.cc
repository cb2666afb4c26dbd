// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "transport/core/log.h"
#include "transport/verbs/session/recv_session.h"

namespace ztcp::verbs {

namespace {

// What the config says of the device, else the communicator. Slots are all that a receiver sends.
std::uint8_t traffic_class_for(const Device& device, int wanted, Direction direction) {
  int chosen = device.traffic_class >= 0 ? device.traffic_class : wanted;
  if (direction == Direction::kReceive && !device.is_infiniband && device.slot_traffic_class >= 0)
    chosen = device.slot_traffic_class;
  return static_cast<std::uint8_t>(std::clamp(chosen, 0, 255));
}

// How long a NIC that waits for an answer is believed: four times what it is told, since hardware
// rounds up, within bounds. 0 has it wait for ever.
Duration answer_timeout(const Device& device) {
  constexpr Duration kLeast = std::chrono::minutes(10);
  constexpr Duration kMost = std::chrono::hours(1);
  constexpr Duration kUnit = std::chrono::nanoseconds(4096);
  if (device.timeout == 0) return kMost;
  return std::clamp(4 * (device.retries + 1) * (kUnit * (std::int64_t{1} << device.timeout)),
                    kLeast, kMost);
}

// NCCL's own network takes the communicator's class for the service level, too; one of RoCE has
// more values than there are levels.
std::uint8_t service_level_for(const Device& device, int wanted) {
  constexpr int kLevels = 16;
  const bool is_level = device.is_infiniband && wanted >= 0 && wanted < kLevels;
  return is_level ? static_cast<std::uint8_t>(wanted) : 0;
}

}  // namespace

Made<void> Connection::prepare(int traffic_class, const EndFacts* peer) {
  memory_ = std::make_unique<ControlMemory>();
  EndFacts usable;
  std::vector<std::pair<std::size_t, const RailFacts*>> chosen;  // And the peer's, if it has told.
  for (std::size_t i = 0; i < rails_->rails.size(); ++i) {
    const Rail& rail = *rails_->rails[i];
    if (!rail.is_usable() || rail.is_dead()) continue;
    RailFacts& ours = usable.on[usable.rails++];
    ours.is_tcp = rail.device.is_tcp ? 1 : 0;
    ours.number = static_cast<std::uint8_t>(rails_->number(i));
    const RailFacts* const theirs = peer == nullptr ? nullptr : counterpart(ours, *peer);
    if (peer == nullptr || theirs != nullptr) chosen.emplace_back(i, theirs);
  }
  if (usable.rails == 0)
    return tl::unexpected(Refusal{{Errc::kNoDevice, 0, "the device"},
                                  "all its NICs have failed, or were taken out; dmesg tells of "
                                  "them; start the job again once they are back"});
  if (chosen.empty())
    return tl::unexpected(Refusal{{Errc::kProtocol, 0, "the exchange"}, mismatch(usable, *peer)});
  const auto most = static_cast<std::uint32_t>(kMaxQueuePairs / chosen.size());
  std::optional<Refusal> refused;
  for (const auto& [i, theirs] : chosen) {
    const Device& device = rails_->rails[i]->device;
    if (device.is_tcp) {
      RailState& rail_state = new_rail_state(i);
      rail_state.health = RailState::Health::kDown;
      if (direction_ == Direction::kSend) rail_state.due = TimePoint();
      continue;
    }
    std::uint32_t count = std::min(device.queue_pairs, most);
    if (theirs != nullptr) count = std::min<std::uint32_t>(count, theirs->queue_pairs);
    const QueuePairSettings settings{
        .count = std::max(1U, count),
        .receive_depth = direction_ == Direction::kReceive ? RecvSession::kReceiveDepth : 1,
        .traffic_class = traffic_class_for(device, traffic_class, direction_),
        .service_level = service_level_for(device, traffic_class),
        .sends_pieces = direction_ == Direction::kSend,
        .takes_notifications = theirs != nullptr && theirs->notifies_separately != 0};
    if (auto made = add_rail_state(i, settings); !made) {
      refused = std::move(made.error());
      if (!is_of_dead_device(refused->error.sys_errno) || chosen.size() == 1)
        return tl::unexpected(std::move(*refused));
      device.opened->is_dead = true;
      log::warn("{}: connections go without {}, which has failed: {}", rails_->name, device.place(),
                refused->text);
    }
  }
  if (rail_states_.empty()) return tl::unexpected(std::move(*refused));
  return {};
}

RailState& Connection::new_rail_state(std::size_t rail) {
  RailState& rail_state = rail_states_.emplace_back();
  rail_state.rail = rails_->rails[rail];
  rail_state.number = static_cast<std::uint8_t>(rails_->number(rail));
  rail_state.key = static_cast<std::uint8_t>(rail);
  return rail_state;
}

Made<void> Connection::add_rail_state(std::size_t rail, const QueuePairSettings& settings) {
  const Device& device = rails_->rails[rail]->device;
  const Api& api = *device.opened->api;
  // A slot is looked at as it comes: no relaxed ordering. A receiver's are its own word for where
  // the peer's bytes belong.
  const int access = direction_ == Direction::kSend
                         ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
                         : IBV_ACCESS_LOCAL_WRITE;
  RegionHandle region(
      api.reg_mr(device.opened->domain.get(), memory_.get(), sizeof *memory_, access), {&api});
  if (!region) {
    const int error = errno;
    return tl::unexpected(
        Refusal{{error == ENOMEM ? Errc::kOutOfMemory : Errc::kSystem, error, "ibv_reg_mr"},
                std::string("ibv_reg_mr of a connection's own memory: ") + std::strerror(error) +
                    "; raise ulimit -l (LimitMEMLOCK of the service, --ulimit memlock=-1 of the "
                    "container)"});
  }
  auto made = QueuePairs::create(device, rails_->rails[rail]->address(), settings);
  if (!made) return tl::unexpected(std::move(made.error()));
  RailState& rail_state = new_rail_state(rail);
  rail_state.region = std::move(region);
  rail_state.settings = settings;
  rail_state.queues = std::move(*made);
  return {};
}

EndFacts Connection::facts() const {
  EndFacts out;
  out.memory_address = reinterpret_cast<std::uint64_t>(&memory_->ring);
  out.rails = static_cast<std::uint8_t>(rail_states_.size());
  for (std::size_t i = 0; i < rail_states_.size(); ++i) tell(rail_states_[i], out.on[i]);
  return out;
}

void Connection::tell(const RailState& rail_state, RailFacts& facts) const {
  facts.number = rail_state.number;
  facts.key = rail_state.key;
  if (!rail_state.is_tcp()) {
    rail_state.queues->tell(facts);
    facts.memory_rkey = rail_state.region->rkey;
  } else {
    facts.is_tcp = 1;
    facts.queue_pairs = 1;
    rail_state.rail->device.hca.copy(facts.device.data(), facts.device.size() - 1);
    facts.ticket = rail_state.ticket;
  }
  if (rail_state.rail->device.is_iwarp) {
    facts.port = rail_state.rail->iwarp_port;
  } else if (rail_state.rail->listening) {
    facts.exchange = gid_of(rail_state.rail->listening->endpoint.address);
    facts.port = rail_state.rail->listening->endpoint.port;
  }
}

// Keeps what both have, in the order of ours, which is the peer's, too. False: they have nothing.
bool Connection::match(const EndFacts& peer) {
  peer_facts_ = {.memory_address = peer.memory_address};
  std::vector<RailState> common;
  for (RailState& rail_state : rail_states_) {
    RailFacts ours;
    ours.is_tcp = rail_state.is_tcp() ? 1 : 0;
    ours.number = rail_state.number;
    const RailFacts* const theirs = counterpart(ours, peer);
    if (theirs == nullptr) continue;
    peer_facts_.on[peer_facts_.rails++] = *theirs;
    common.push_back(std::move(rail_state));
  }
  rail_states_ = std::move(common);
  has_recovery_ =
      rail_states_.size() > 1 || (!rail_states_.empty() && rail_states_.front().is_tcp());
  return !rail_states_.empty();
}

Made<void> Connection::join(const EndFacts& peer) {
  if (!match(peer))
    return tl::unexpected(Refusal{{Errc::kProtocol, 0, "the exchange"}, "no rail in common"});
  std::uint32_t next = 0;
  std::optional<Refusal> refused;
  for (std::size_t i = 0; i < rail_states_.size(); ++i) {
    RailState& rail_state = rail_states_[i];
    if (!rail_state.is_tcp()) {
      if (auto joined = rail_state.queues->join(peer_facts_.on[i]); !joined) {
        if (!has_recovery_) return joined;
        rail_state.unjoined = joined.error().text;
        refused = std::move(joined.error());
      }
      rail_state.settings.count = rail_state.queues->count();
    }
    rail_state.first_queue_pair = next;
    next += rail_state.settings.count;
    place(rail_state);
  }
  // One rail of several may be missing at first (lose_unfit()), but not all.
  if (refused && std::all_of(rail_states_.begin(), rail_states_.end(), [](const RailState& one) {
        return one.is_tcp() || !one.unjoined.empty();
      }))
    return tl::unexpected(std::move(*refused));
  if (const Status begun = start_session(); !begun)
    return tl::unexpected(Refusal{begun.error(), begun.error().where});
  return {};
}

// Never of several rails (VerbsTransport::merge).
bool Connection::needs_manager() const { return rail_states_.front().rail->device.is_iwarp; }

void Connection::begin_cm_connection(std::shared_ptr<ConnectionManager> manager,
                                     const Nonce& nonce) {
  rail_states_.front().queues->connect(std::move(manager), peer_facts_.on[0],
                                       direction_ == Direction::kReceive, nonce);
}

void Connection::place(const RailState& rail_state) {
  if (rail_state.is_tcp()) {
    places_[rail_state.first_queue_pair] = {.stream = rail_state.stream.get(),
                                            .rail = index_of(rail_state)};
    return;
  }
  for (std::uint32_t n = 0; n < rail_state.settings.count; ++n)
    places_[rail_state.first_queue_pair + n] = {
        .queues = rail_state.queues.get(), .index = n, .rail = index_of(rail_state)};
}

// Receives are posted before the peer may send.
Status Connection::start_session() {
  std::vector<QueuePairFacts> all = queue_pairs();
  if (direction_ == Direction::kSend) {
    sender_.emplace(std::move(all), memory_->ring, *this);
    for (std::uint32_t i = 0; i < rail_states_.size(); ++i)
      if (rail_states_[i].health == RailState::Health::kDown) sender_->lose_rail(i);
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
  for (std::uint32_t i = 0; i < rail_states_.size(); ++i)
    if (rail_states_[i].health == RailState::Health::kDown) receiver_->lose_rail(i);
  return receiver_->begin();
}

Status Connection::take(const RailState& rail_state, const ibv_wc& completion) {
  const std::uint32_t queue_pair =
      rail_state.first_queue_pair + rail_state.queues->index_of(completion.qp_num);
  if (completion.wr_id - QueuePairs::kProbeId <= QueuePairs::kWriteId - QueuePairs::kProbeId)
      [[unlikely]] {
    if (completion.wr_id == QueuePairs::kProbeId)
      rail_states_[index_of(rail_state)].is_probed = false;
    return {};
  }
  if (direction_ == Direction::kSend) return sender_->on_completion(queue_pair, completion.wr_id);
  if (completion.wr_id != QueuePairs::kReceiveId)
    return receiver_->on_completion(queue_pair, completion.wr_id);
  const Notification told = rail_state.queues->take_receive(completion);
  return receiver_->on_immediate(queue_pair, told.immediate, told.size_bytes);
}

Status Connection::take(const RailState& rail_state, const PieceStream::Told& told) {
  if (direction_ == Direction::kSend)
    return sender_->on_completion(rail_state.first_queue_pair, told.id);
  return told.is_immediate
             ? receiver_->on_immediate(rail_state.first_queue_pair, told.immediate, told.size_bytes)
             : receiver_->on_completion(rail_state.first_queue_pair, told.id);
}

RailKeys Connection::memory_lkeys() const {
  RailKeys out{};
  for (std::size_t i = 0; i < rail_states_.size(); ++i)
    if (rail_states_[i].region) out[i] = rail_states_[i].region->lkey;
  return out;
}

RemoteMemory Connection::peer_memory() const {
  RemoteMemory out{.address = peer_facts_.memory_address};
  for (std::size_t i = 0; i < rail_states_.size(); ++i)
    out.rkeys[i] = peer_facts_.on[i].memory_rkey;
  return out;
}

std::vector<QueuePairFacts> Connection::queue_pairs() const {
  std::vector<QueuePairFacts> out;
  for (std::uint32_t i = 0; i < rail_states_.size(); ++i) {
    const RailState& rail_state = rail_states_[i];
    const std::uint32_t each = rail_state.rail->device.speed_mbps / rail_state.settings.count;
    out.insert(out.end(), rail_state.settings.count,
               {.rail = i,
                .local_key = rail_state.key,
                .remote_key = peer_facts_.on[i].key,
                .rate_mbps = std::max(1U, each),
                .inline_bytes = rail_state.is_tcp() ? PieceStream::kInlineBytes
                                                    : rail_state.queues->inline_bytes(),
                .is_tcp = rail_state.is_tcp(),
                .is_split = rail_state.rail->device.is_split});
  }
  return out;
}

// A write of no bytes, which reaches no memory, is answered as any.
Status Connection::probe(TimePoint now) {
  bool may_answer = false;
  for (RailState& rail_state : rail_states_) {
    if (rail_state.health != RailState::Health::kUp || !rail_state.queues) {
      // These have deadlines: a stream, a rail that drains, and one that is about to come up.
      may_answer |= rail_state.is_polled() || rail_state.is_awaited ||
                    rail_state.health == RailState::Health::kOffered ||
                    rail_state.health == RailState::Health::kProving;
      continue;
    }
    may_answer |= !rail_state.is_probed ||
                  now - rail_state.probed_at < answer_timeout(rail_state.rail->device);
    if (rail_state.is_probed || now < rail_state.probe_due) continue;
    WorkRequest nothing;
    nothing.is_signalled = true;
    nothing.remote = peer_facts_.memory_address;
    nothing.rkey = peer_facts_.on[index_of(rail_state)].memory_rkey;
    nothing.id = QueuePairs::kProbeId;
    rail_state.is_probed = post(rail_state.first_queue_pair, nothing).has_value();
    rail_state.probed_at = now;
    rail_state.probe_due = now + RailState::kProbeInterval;
  }
  return may_answer ? Status()
                    : ztcp::fail(Errc::kTimedOut, "neither TCP nor the peer's NIC answers");
}

Status Connection::note_broken(const Place& at, const Status& why) {
  if (!has_recovery_) return why;
  // Were a later work to succeed, its completion would speak for this one, too.
  at.queues->abort();
  broken_ |= 1U << at.rail;
  broken_by_ = why.error();
  return {};
}

void Connection::abort() {
  is_aborted_ = true;
  for (RailState& rail_state : rail_states_) {
    if (rail_state.queues) rail_state.queues->abort();
    rail_state.stream.reset();
  }
}

void Connection::fail(const Error& error) {
  error_ = error;
  phase_.store(Phase::kFailed, std::memory_order_release);
}

Carried Connection::carried() const {
  Carried out;
  out.messages = sender_ ? sender_->messages_done() : receiver_ ? receiver_->messages_done() : 0;
  for (std::size_t i = 0; i < rail_states_.size() && out.messages != 0; ++i) {
    const auto& rails = rails_->rails;
    const auto rail = std::find(rails.begin(), rails.end(), rail_states_[i].rail);
    const auto number = static_cast<std::uint32_t>(i);
    if (rail == rails.end()) continue;
    out.bytes[static_cast<std::size_t>(rail - rails.begin())] +=
        sender_ ? sender_->carried_bytes(number) : receiver_->carried_bytes(number);
  }
  return out;
}

}  // namespace ztcp::verbs
