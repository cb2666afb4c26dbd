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
      Strand& strand = new_strand(i);
      strand.state = Strand::State::kDown;
      if (direction_ == Direction::kSend) strand.due = TimePoint();
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
        .takes_tellings = theirs != nullptr && theirs->tells_apart != 0};
    if (auto made = add_strand(i, settings); !made) {
      refused = std::move(made.error());
      if (!is_of_dead_device(refused->error.sys_errno) || chosen.size() == 1)
        return tl::unexpected(std::move(*refused));
      device.opened->is_dead = true;
      log::warn("{}: connections go without {}, which has failed: {}", rails_->name, device.place(),
                refused->text);
    }
  }
  if (strands_.empty()) return tl::unexpected(std::move(*refused));
  return {};
}

Strand& Connection::new_strand(std::size_t rail) {
  Strand& strand = strands_.emplace_back();
  strand.rail = rails_->rails[rail];
  strand.number = static_cast<std::uint8_t>(rails_->number(rail));
  strand.key = static_cast<std::uint8_t>(rail);
  return strand;
}

Made<void> Connection::add_strand(std::size_t rail, const QueuePairSettings& settings) {
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
  Strand& strand = new_strand(rail);
  strand.region = std::move(region);
  strand.settings = settings;
  strand.queues = std::move(*made);
  return {};
}

EndFacts Connection::facts() const {
  EndFacts out;
  out.memory_address = reinterpret_cast<std::uint64_t>(&memory_->ring);
  out.rails = static_cast<std::uint8_t>(strands_.size());
  for (std::size_t i = 0; i < strands_.size(); ++i) tell(strands_[i], out.on[i]);
  return out;
}

void Connection::tell(const Strand& strand, RailFacts& facts) const {
  facts.number = strand.number;
  facts.key = strand.key;
  if (!strand.is_tcp()) {
    strand.queues->tell(facts);
    facts.memory_rkey = strand.region->rkey;
  } else {
    facts.is_tcp = 1;
    facts.queue_pairs = 1;
    strand.rail->device.hca.copy(facts.device.data(), facts.device.size() - 1);
    facts.ticket = strand.ticket;
  }
  if (strand.rail->device.is_iwarp) {
    facts.port = strand.rail->iwarp_port;
  } else if (strand.rail->listening) {
    facts.exchange = gid_of(strand.rail->listening->endpoint.address);
    facts.port = strand.rail->listening->endpoint.port;
  }
}

// Keeps what both have, in the order of ours, which is the peer's, too. False: they have nothing.
bool Connection::match(const EndFacts& peer) {
  peer_facts_ = {.memory_address = peer.memory_address};
  std::vector<Strand> common;
  for (Strand& strand : strands_) {
    RailFacts ours;
    ours.is_tcp = strand.is_tcp() ? 1 : 0;
    ours.number = strand.number;
    const RailFacts* const theirs = counterpart(ours, peer);
    if (theirs == nullptr) continue;
    peer_facts_.on[peer_facts_.rails++] = *theirs;
    common.push_back(std::move(strand));
  }
  strands_ = std::move(common);
  has_recovery_ = strands_.size() > 1 || (!strands_.empty() && strands_.front().is_tcp());
  return !strands_.empty();
}

Made<void> Connection::join(const EndFacts& peer) {
  if (!match(peer))
    return tl::unexpected(Refusal{{Errc::kProtocol, 0, "the exchange"}, "no rail in common"});
  std::uint32_t next = 0;
  std::optional<Refusal> refused;
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    Strand& strand = strands_[i];
    if (!strand.is_tcp()) {
      if (auto joined = strand.queues->join(peer_facts_.on[i]); !joined) {
        if (!has_recovery_) return joined;
        strand.unjoined = joined.error().text;
        refused = std::move(joined.error());
      }
      strand.settings.count = strand.queues->count();
    }
    strand.first_queue_pair = next;
    next += strand.settings.count;
    place(strand);
  }
  // One rail of several may be missing at first (lose_unfit()), but not all.
  if (refused && std::all_of(strands_.begin(), strands_.end(), [](const Strand& one) {
        return one.is_tcp() || !one.unjoined.empty();
      }))
    return tl::unexpected(std::move(*refused));
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
  if (strand.is_tcp()) {
    places_[strand.first_queue_pair] = {.stream = strand.stream.get(), .strand = index_of(strand)};
    return;
  }
  for (std::uint32_t n = 0; n < strand.settings.count; ++n)
    places_[strand.first_queue_pair + n] = {
        .queues = strand.queues.get(), .index = n, .strand = index_of(strand)};
}

// Receives are posted before the peer may send.
Status Connection::start_session() {
  std::vector<QueuePairFacts> all = queue_pairs();
  if (direction_ == Direction::kSend) {
    sender_.emplace(std::move(all), memory_->ring, *this);
    for (std::uint32_t i = 0; i < strands_.size(); ++i)
      if (strands_[i].state == Strand::State::kDown) sender_->lose_rail(i);
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
  for (std::uint32_t i = 0; i < strands_.size(); ++i)
    if (strands_[i].state == Strand::State::kDown) receiver_->lose_rail(i);
  return receiver_->begin();
}

Status Connection::take(const Strand& strand, const ibv_wc& completion) {
  const std::uint32_t queue_pair =
      strand.first_queue_pair + strand.queues->index_of(completion.qp_num);
  if (completion.wr_id - QueuePairs::kProbeId <= QueuePairs::kWriteId - QueuePairs::kProbeId)
      [[unlikely]] {
    if (completion.wr_id == QueuePairs::kProbeId) strands_[index_of(strand)].is_probed = false;
    return {};
  }
  if (direction_ == Direction::kSend) return sender_->on_completion(queue_pair, completion.wr_id);
  if (completion.wr_id != QueuePairs::kReceiveId)
    return receiver_->on_completion(queue_pair, completion.wr_id);
  const Telling told = strand.queues->take_receive(completion);
  return receiver_->on_immediate(queue_pair, told.immediate, told.size_bytes);
}

Status Connection::take(const Strand& strand, const PieceStream::Told& told) {
  if (direction_ == Direction::kSend)
    return sender_->on_completion(strand.first_queue_pair, told.id);
  return told.is_immediate
             ? receiver_->on_immediate(strand.first_queue_pair, told.immediate, told.size_bytes)
             : receiver_->on_completion(strand.first_queue_pair, told.id);
}

RailKeys Connection::memory_lkeys() const {
  RailKeys out{};
  for (std::size_t i = 0; i < strands_.size(); ++i)
    if (strands_[i].region) out[i] = strands_[i].region->lkey;
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
    const Strand& strand = strands_[i];
    const std::uint32_t each = strand.rail->device.speed_mbps / strand.settings.count;
    out.insert(out.end(), strand.settings.count,
               {.rail = i,
                .local_key = strand.key,
                .remote_key = peer_facts_.on[i].key,
                .rate_mbps = std::max(1U, each),
                .inline_bytes =
                    strand.is_tcp() ? PieceStream::kInlineBytes : strand.queues->inline_bytes(),
                .is_tcp = strand.is_tcp(),
                .is_split = strand.rail->device.is_split});
  }
  return out;
}

void Connection::set_silent(bool is_silent) {
  const std::lock_guard lock(news_mutex_);
  if (!has_news()) news_.store(is_silent ? News::kSilent : News::kNone, std::memory_order_release);
}

// A write of no bytes, which reaches no memory, is answered as any.
Status Connection::probe(TimePoint now) {
  bool may_answer = false;
  for (Strand& strand : strands_) {
    if (strand.state != Strand::State::kUp || !strand.queues) {
      // These have deadlines: a stream, a rail that drains, and one that is about to come up.
      may_answer |= strand.is_polled() || strand.is_awaited ||
                    strand.state == Strand::State::kOffered ||
                    strand.state == Strand::State::kProving;
      continue;
    }
    may_answer |= !strand.is_probed || now - strand.probed_at < answer_timeout(strand.rail->device);
    if (strand.is_probed || now < strand.probe_due) continue;
    WorkRequest nothing;
    nothing.is_signalled = true;
    nothing.remote = peer_facts_.memory_address;
    nothing.rkey = peer_facts_.on[index_of(strand)].memory_rkey;
    nothing.id = QueuePairs::kProbeId;
    strand.is_probed = post(strand.first_queue_pair, nothing).has_value();
    strand.probed_at = now;
    strand.probe_due = now + Strand::kProbeInterval;
  }
  return may_answer ? Status()
                    : ztcp::fail(Errc::kTimedOut, "neither TCP nor the peer's NIC answers");
}

Status Connection::note_broken(const Place& at, const Status& why) {
  if (!has_recovery_) return why;
  // Were a later work to succeed, its completion would speak for this one, too.
  at.queues->abort();
  broken_ |= 1U << at.strand;
  broken_by_ = why.error();
  return {};
}

void Connection::abort() {
  is_aborted_ = true;
  for (Strand& strand : strands_) {
    if (strand.queues) strand.queues->abort();
    strand.stream.reset();
  }
}

void Connection::fail(const Error& error) {
  error_ = error;
  phase_.store(Phase::kFailed, std::memory_order_release);
}

void Connection::hear(News news, Errc code, const std::string& text) {
  const std::lock_guard lock(news_mutex_);
  if (has_news()) return;
  news_code_ = code;
  news_text_ = text;
  news_.store(news, std::memory_order_release);
}

Carried Connection::carried() const {
  Carried out;
  out.messages = sender_ ? sender_->messages_done() : receiver_ ? receiver_->messages_done() : 0;
  for (std::size_t i = 0; i < strands_.size() && out.messages != 0; ++i) {
    const auto& rails = rails_->rails;
    const auto rail = std::find(rails.begin(), rails.end(), strands_[i].rail);
    const auto number = static_cast<std::uint32_t>(i);
    if (rail == rails.end()) continue;
    out.bytes[static_cast<std::size_t>(rail - rails.begin())] +=
        sender_ ? sender_->carried_bytes(number) : receiver_->carried_bytes(number);
  }
  return out;
}

}  // namespace ztcp::verbs
