// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/log.h"
#include "transport/comms/comm_settings.h"

namespace ztcp::verbs {

namespace {

// The config's value for the device, else the communicator's. A receiver sends nothing but slots.
std::uint8_t traffic_class_for(const Device& device, int wanted, Direction direction) {
  int chosen = device.traffic_class >= 0 ? device.traffic_class : wanted;
  if (direction == Direction::kReceive && !device.is_infiniband && device.slot_traffic_class >= 0)
    chosen = device.slot_traffic_class;
  return static_cast<std::uint8_t>(std::clamp(chosen, 0, 255));
}

// NCCL's own network uses the communicator's traffic class for the service level, too. RoCE's
// traffic classes have more values than there are levels.
std::uint8_t service_level_for(const Device& device, int wanted) {
  constexpr int kLevels = 16;
  const bool is_level = device.is_infiniband && wanted >= 0 && wanted < kLevels;
  return is_level ? static_cast<std::uint8_t>(wanted) : 0;
}

}  // namespace

Result<void, ReasonedError> Connection::prepare(int traffic_class, const EndFacts* peer) {
  memory_ = std::make_unique<ControlMemory>();
  EndFacts usable;
  std::vector<std::pair<std::size_t, const RailFacts*>> chosen;  // With the peer's facts, if known.
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
    return ztcp::fail({Errc::kNoDevice, 0, "the device"},
                      "all its NICs have failed, or were taken out; dmesg tells of "
                      "them; start the job again once they are back");
  if (chosen.empty())
    return ztcp::fail({Errc::kProtocol, 0, "the exchange"}, mismatch(usable, *peer));
  const auto most = static_cast<std::uint32_t>(kMaxQueuePairs / chosen.size());
  std::optional<ReasonedError> refused;
  for (const auto& [i, theirs] : chosen) {
    const Device& device = rails_->rails[i]->device;
    if (device.is_tcp) {
      RailState& state = new_rail(i);
      state.health = RailState::Health::kDown;
      state.dscp = comms::dscp_of(traffic_class);
      if (direction_ == Direction::kSend) state.due = TimePoint();
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
    if (auto made = add_rail(i, settings); !made) {
      refused = std::move(made.error());
      if (!is_of_dead_device(refused->error.sys_errno) || chosen.size() == 1)
        return tl::unexpected(std::move(*refused));
      device.opened->is_dead = true;
      log::warn("{}: connections go without {}, which has failed: {}", rails_->name, device.place(),
                refused->reason);
    }
  }
  if (traffic_.rails().empty()) return tl::unexpected(std::move(*refused));
  return {};
}

RailState& Connection::new_rail(std::size_t rail) {
  RailState& state = traffic_.add_rail(rails_->rails[rail]);
  state.number = static_cast<std::uint8_t>(rails_->number(rail));
  state.key = static_cast<std::uint8_t>(rail);
  return state;
}

Result<void, ReasonedError> Connection::add_rail(std::size_t rail,
                                                 const QueuePairSettings& settings) {
  const Device& device = rails_->rails[rail]->device;
  const Api& api = *device.opened->api;
  // The sender polls the slots as they arrive, so relaxed ordering is not allowed. A receiver's
  // slots tell where the peer's bytes belong, so nobody else may write them.
  const int access = direction_ == Direction::kSend
                         ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
                         : IBV_ACCESS_LOCAL_WRITE;
  RegionHandle region(
      api.reg_mr(device.opened->domain.get(), memory_.get(), sizeof *memory_, access), {&api});
  if (!region) {
    const int error = errno;
    return ztcp::fail(
        {error == ENOMEM ? Errc::kOutOfMemory : Errc::kSystem, error, "ibv_reg_mr"},
        std::string("ibv_reg_mr of a connection's own memory: ") + std::strerror(error) +
            "; raise ulimit -l (LimitMEMLOCK of the service, --ulimit memlock=-1 of the "
            "container)");
  }
  auto queues = ZTCP_TRY(QueuePairs::create(device, rails_->rails[rail]->address(), settings));
  RailState& state = new_rail(rail);
  state.region = std::move(region);
  state.settings = settings;
  state.queues = std::move(queues);
  return {};
}

EndFacts Connection::facts() const {
  EndFacts out;
  out.memory_address = reinterpret_cast<std::uint64_t>(&memory_->ring);
  out.host = own_host_name();
  out.rails = static_cast<std::uint8_t>(traffic_.rails().size());
  for (std::size_t i = 0; i < traffic_.rails().size(); ++i) traffic_.rails()[i].describe(out.on[i]);
  return out;
}

// Keeps the rails that both ends have, in our order, which is the peer's, too. False: there is
// none.
bool Connection::match(const EndFacts& peer) {
  EndFacts facts{.memory_address = peer.memory_address};
  facts.host = HostName::of({peer.host.chars.data(), peer.host.chars.size()});
  std::vector<RailState> common;
  for (RailState& state : traffic_.rails()) {
    RailFacts ours;
    ours.is_tcp = state.is_tcp() ? 1 : 0;
    ours.number = state.number;
    const RailFacts* const theirs = counterpart(ours, peer);
    if (theirs == nullptr) continue;
    facts.on[facts.rails++] = *theirs;
    common.push_back(std::move(state));
  }
  const bool recovers = common.size() > 1 || (!common.empty() && common.front().is_tcp());
  traffic_.set_rails(std::move(common), facts, recovers);
  return !traffic_.rails().empty();
}

Result<void, ReasonedError> Connection::join(const EndFacts& peer) {
  if (!match(peer)) return ztcp::fail({Errc::kProtocol, 0, "the exchange"}, "no rail in common");
  std::uint32_t next = 0;
  std::optional<ReasonedError> refused;
  for (std::size_t i = 0; i < traffic_.rails().size(); ++i) {
    RailState& state = traffic_.rails()[i];
    if (!state.is_tcp()) {
      if (auto joined = state.queues->join(peer_facts().on[i]); !joined) {
        if (!traffic_.recovers()) return joined;
        state.unjoined = joined.error().reason;
        refused = std::move(joined.error());
      }
      state.settings.count = state.queues->count();
    }
    state.first_queue_pair = next;
    next += state.settings.count;
    traffic_.route(state);
  }
  // Some rails may be missing at first (Recovery::lose_unfit), but not all.
  if (refused &&
      std::all_of(traffic_.rails().begin(), traffic_.rails().end(),
                  [](const RailState& one) { return one.is_tcp() || !one.unjoined.empty(); }))
    return tl::unexpected(std::move(*refused));
  if (const Status begun = traffic_.start(memory_->ring); !begun)
    return ztcp::fail(begun.error(), begun.error().where);
  return {};
}

// Devices that need it are never merged (VerbsTransport::merge).
bool Connection::needs_manager() const { return traffic_.rails().front().rail->device.is_iwarp; }

void Connection::begin_cm_connection(std::shared_ptr<ConnectionManager> manager,
                                     const Nonce& nonce) {
  traffic_.rails().front().queues->connect(std::move(manager), peer_facts().on[0],
                                           direction_ == Direction::kReceive, nonce);
}

void Connection::fail(const Error& error) {
  error_ = error;
  phase_.store(Phase::kFailed, std::memory_order_release);
}

Carried Connection::carried() const {
  Carried out;
  out.messages = traffic_.messages_done();
  for (std::size_t i = 0; i < traffic_.rails().size() && out.messages != 0; ++i) {
    const auto& rails = rails_->rails;
    const auto rail = std::find(rails.begin(), rails.end(), traffic_.rails()[i].rail);
    if (rail == rails.end()) continue;
    out.bytes[static_cast<std::size_t>(rail - rails.begin())] +=
        traffic_.carried_bytes(static_cast<std::uint32_t>(i));
  }
  return out;
}

}  // namespace ztcp::verbs
