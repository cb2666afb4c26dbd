// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/ustack_transport.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/machine/live_machine.h"
#include "core/listen_address.h"
#include "core/log.h"
#include "core/process_mark.h"
#include "transport/comms/comm.h"
#include "transport/comms/connection_limit.h"
#include "transport/comms/listener.h"
#include "transport/comms/process_end.h"
#include "transport/comms/thread_name.h"
#include "transport/plan/device_plan.h"
#include "transport/stats/process_page.h"
#include "transport/ustack/await_router.h"
#include "transport/ustack/capture_server.h"
#include "transport/ustack/device_line.h"
#include "transport/ustack/lane.h"
#include "transport/ustack/nic.h"
#include "transport/ustack/nic_advice.h"
#include "transport/ustack/nic_choice.h"
#include "transport/ustack/nic_config.h"
#include "transport/ustack/nic_links.h"

namespace ztcp::ustack {
namespace {

// Between probes of a peer that is reported dead. A live peer's userspace TCP answers at once.
constexpr Duration kProbeInterval = std::chrono::milliseconds(100);

const char* checksum_text(const link::LinkCapabilities& link) {
  if (link.trusted) return "not needed (both ends agreed: no frame leaves this machine's memory)";
  return link.tx_checksum && !link.sums_as_it_copies ? "offloaded" : "in software";
}

class UstackTransport final : public Transport {
 public:
  UstackTransport(config::Fabric fabric, config::CpuShare cpus, GpuProbe probe,
                  std::shared_ptr<NicSource> source)
      : fabric_(std::move(fabric)),
        cpus_(std::move(cpus)),
        probe_(probe),
        source_(std::move(source)) {
    for (std::size_t i = 0; i < fabric_.nics.size(); ++i) {
      devices_.push_back(device_properties(fabric_, fabric_.nics[i]));
      devices_.back().max_comms =
          static_cast<int>(config::connections_of_nic(fabric_.tcp, fabric_.nics[i].driver));
      plans_.push_back(plan::plan_device(plan::facts_of(fabric_, i), cpus_, fabric_.poller));
    }
    nics_.resize(fabric_.nics.size());
  }
  ~UstackTransport() override {
    if (!in_forked_child()) return;
    // A forked child has no poller threads, so destructors that join them would hang.
    for (auto& nic : nics_) new std::shared_ptr<Nic>(std::move(nic));  // NOLINT: leaked.
  }

  TransportKind kind() const override { return TransportKind::kUstack; }
  const std::vector<DeviceProperties>& devices() const override { return devices_; }
  std::string describe_device(int device) const override {
    const auto index = static_cast<std::size_t>(device);
    return device_line(fabric_, fabric_.nics[index], devices_[index], plans_[index]);
  }
  Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) override;
  Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                    const CommOptions& options) override;
  void drain() override;

 private:
  Result<std::shared_ptr<Nic>> own_nic(std::size_t device, const ListenAddress* peer);
  Result<std::shared_ptr<Nic>> bring_up(std::size_t index, std::unique_ptr<NicClaim> claim);
  plan::DevicePlan plan_for_links(std::size_t index, std::size_t links) const;
  Status add_lane(Nic& nic, std::unique_ptr<link::Link> link, const plan::DevicePlan& plan,
                  const plan::Placement& placement);
  Result<std::size_t> checked(int device) const;
  void keep_to_claimed(std::vector<std::size_t>& order) const;
  void note_stand_in(std::size_t device, std::size_t used, const std::string& why);

  const config::Fabric fabric_;
  const config::CpuShare cpus_;
  const GpuProbe probe_;
  const std::shared_ptr<NicSource> source_;
  std::vector<DeviceProperties> devices_;
  std::vector<plan::DevicePlan> plans_;  // Indexed by device.

  std::mutex mutex_;                                         // Control path only.
  std::vector<std::shared_ptr<Nic>> nics_;                   // Indexed by device; null: not owned.
  std::set<std::pair<std::size_t, std::size_t>> stand_ins_;  // Asked for, used; logged.
  comms::TrafficClasses classes_;
  CaptureOffer captures_;
};

Result<std::size_t> UstackTransport::checked(int device) const {
  const auto index = static_cast<std::size_t>(device);
  if (device < 0 || index >= devices_.size()) return fail(Errc::kInvalidArgument, "device");
  return index;
}

// Returns the NIC that carries the traffic of `device`, to `peer` if it is known. The log line that
// names a substitute, or says that there is none, has the reason for each NIC that was passed over.
Result<std::shared_ptr<Nic>> UstackTransport::own_nic(std::size_t device,
                                                      const ListenAddress* peer) {
  const ProcessGpus gpus = probe_ != nullptr ? probe_() : ProcessGpus{};
  NicChoice choice = choose_nics(fabric_.nics, gpus, device);
  if (!choice.all_are_ours) keep_to_claimed(choice.order);
  const config::Nic& wanted = fabric_.nics[device];
  std::map<std::size_t, std::string> unable;
  const comms::Backend* lost = nullptr;
  std::optional<std::size_t> without_route;
  Errc code = Errc::kNoDevice;
  for (const std::size_t i : choice.order) {
    const config::Nic& nic = nics_[i] != nullptr ? nics_[i]->config : fabric_.nics[i];
    if (!can_stand_in(wanted, nic)) {
      unable[i] = "has another driver";
      continue;
    }
    if (std::string why = peer != nullptr ? obstacle(nic, *peer) : ""; !why.empty()) {
      unable[i] = std::move(why);
      if (code == Errc::kNoDevice) code = Errc::kNoRoute;
      if (!without_route) without_route = i;
      continue;
    }
    if (nics_[i] == nullptr) {
      std::string holder;
      auto claim = source_->claim(nic, &holder);
      if (!claim && claim.error().code != Errc::kBusy) return tl::unexpected(claim.error());
      if (!claim) {
        unable[i] = "is taken by " + holder;
        code = Errc::kBusy;
        continue;
      }
      nics_[i] = ZTCP_TRY(bring_up(i, std::move(*claim)));
    } else if (comms::Poller* const lane = nics_[i]->lost_poller(); lane != nullptr) {
      unable[i] = lane->backend().lost_reason();
      if (lost == nullptr) lost = &lane->backend();
      continue;
    }
    note_stand_in(device, i, unable[device]);
    return nics_[i];
  }
  if (lost != nullptr) {
    log::warn("{}: {}: {}", wanted.name, lost->lost_reason(), lost->lost_advice());
    return tl::unexpected(lost->lost_error());
  }
  if (code == Errc::kNoRoute) {
    const std::shared_ptr<Nic>& open = nics_[*without_route];
    const config::Nic& nic = open != nullptr ? open->config : fabric_.nics[*without_route];
    log::warn("{}", no_route_line(fabric_, nic, *peer, unable[*without_route]));
    return fail(code, "connect");
  }
  log::warn("{}", shortage_line(fabric_, wanted, gpus,
                                {.unable = std::move(unable),
                                 .is_one_taken = code == Errc::kBusy,
                                 .all_are_ours = choice.all_are_ours}));
  return fail(code, "claim NIC");
}

// A process takes only one of the NICs that any process may claim: once it has one, it leaves the
// others to other processes, even if its own is lost.
void UstackTransport::keep_to_claimed(std::vector<std::size_t>& order) const {
  const auto is_free = [&](std::size_t i) { return nics_[i] == nullptr; };
  if (!std::ranges::all_of(order, is_free)) std::erase_if(order, is_free);
}

void UstackTransport::note_stand_in(std::size_t device, std::size_t used, const std::string& why) {
  if (device == used || !stand_ins_.emplace(device, used).second) return;
  const config::Nic& wanted = fabric_.nics[device];
  const config::Nic& nic = fabric_.nics[used];
  log::info("{}: NCCL asked for {}, which {}; {} carries its traffic", nic.name, wanted.name,
            why.empty() ? "is not this process's" : why, nic.name);
  const std::uint32_t planned = config::told_speed_mbps(wanted);
  const std::uint32_t had = config::told_speed_mbps(nic);
  if (planned == had) return;
  log::warn(
      "{} ({} Mb/s) carries the traffic that NCCL planned for {} ({} Mb/s): NCCL prefers a faster "
      "NIC of another process to the nearer one; give all NICs the speed_mbps of the slowest in {}",
      nic.name, had, wanted.name, planned, fabric_.path);
}

Result<std::shared_ptr<Nic>> UstackTransport::bring_up(std::size_t index,
                                                       std::unique_ptr<NicClaim> claim) {
  mark_process();
  const config::Nic& config = fabric_.nics[index];
  auto nic = std::make_shared<Nic>(config);
  nic->claim = std::move(claim);
  nic->link_timeout = std::chrono::milliseconds(fabric_.tcp.connect_timeout_ms);
  nic->memory_timeout.set(std::chrono::milliseconds(fabric_.messages.drain_timeout_ms));
  auto [links, taps] = whole_links(ZTCP_TRY(source_->open(config, *nic->claim)));
  const link::LinkCapabilities caps = links.front()->capabilities();
  if (caps.shards > 1) nic->places = std::make_shared<comms::SharedPlaces>(caps.shards);
  if (caps.mtu_bytes < config.mtu_bytes) {
    log::warn(
        "{}: the link carries an MTU of {}, the config says {}: using {}; set mtu_bytes in {}",
        config.name, caps.mtu_bytes, config.mtu_bytes, caps.mtu_bytes, fabric_.path);
  }
  nic->death_watch = comms::DeathWatch::open(
      fabric_, {.nic = config.name,
                .address = config.address.address,
                // Peers share memory with this process.
                .is_of_this_machine = config.driver == config::NicDriver::kMemif,
                .probe_interval = kProbeInterval});
  const std::string description = links.front()->describe();
  const plan::DevicePlan plan = plan_for_links(index, links.size());
  config::LiveMachine machine;
  const plan::Placement placement = plan::place_threads(plan, machine.allowed_cpus());
  for (const std::string* warning : {&plan.warning, &placement.warning})
    if (!warning->empty()) log::warn("{}: {}", config.name, *warning);
  for (auto& link : links) ZTCP_CHECK(add_lane(*nic, std::move(link), plan, placement));
  // The first poller's thread looks at all pollers, so all exist before it starts.
  for (const auto& poller : nic->pollers) ZTCP_CHECK(poller->start());
  captures_.add(source_->run_dir(), config.name, caps, std::move(taps));
  std::string from;
  if (config.address == config::kAutoAddress) {
    const tcp::TakenAddress taken = ZTCP_TRY(await_address(fabric_, *nic));
    nic->config.address = taken.address;
    if (nic->death_watch != nullptr) nic->death_watch->set_address(taken.address.address);
    from = fmt::format(" (advertised by the router {})", to_string(taken.router));
  }
  const std::uint16_t listen_port = nic->claim->slot().listen_port(fabric_.messages.listen_port);
  nic->listen_endpoint = {nic->config.address.address, listen_port};

  log::info(
      "{}: {}, {}{} {}, MTU {}, checksum {}, segmentation {}, {}, congestion control {}, "
      "port {}, {}, {}",
      config.name, description, to_string(nic->config.address), from, to_string(caps.mac),
      std::min(caps.mtu_bytes, config.mtu_bytes), checksum_text(caps),
      caps.max_super_segment_bytes != 0 ? "offloaded" : "in software",
      caps.zero_copy ? "zero-copy send" : "sends copy once",
      config::kCongestionControlNames[static_cast<std::size_t>(fabric_.tcp.congestion_control)],
      listen_port, plan::pollers_text(plan), plan::helpers_text(plan));
  if (config.gateway == config::kAutoGateway) ZTCP_CHECK(await_router(fabric_, *nic));
  return nic;
}

// Returns the plan made at start-up, or a new one over the same CPUs if the NIC has fewer queues
// than that plan asks for.
plan::DevicePlan UstackTransport::plan_for_links(std::size_t index, std::size_t links) const {
  if (links == plans_[index].lanes.size()) return plans_[index];
  plan::DeviceFacts facts = plan::facts_of(fabric_, index);
  facts.available_lanes = static_cast<std::uint32_t>(links);
  return plan::plan_device(facts, cpus_, fabric_.poller);
}

Status UstackTransport::add_lane(Nic& nic, std::unique_ptr<link::Link> link,
                                 const plan::DevicePlan& plan, const plan::Placement& placement) {
  const config::Nic& config = nic.config;
  const std::size_t lane = nic.pollers.size();
  const bool is_alone = plan.lanes.size() == 1;
  EngineConfig engine = ZTCP_TRY(engine_config(fabric_, config, link->capabilities()));
  engine.listen_port = nic.claim->slot().listen_port(engine.listen_port);
  engine.stack.shares_nic = nic.claim->slot().is_shared();
  engine.copies.workers = plan.lanes[lane].helpers;
  engine.places = nic.places;
  comms::PollerConfig poller;
  poller.name = is_alone ? config.name : fmt::format("{} lane {}", config.name, lane);
  const std::string of_lane = is_alone ? "" : fmt::format("-{}", lane);
  poller.thread = comms::thread_name(config.name, of_lane);
  poller.dedicated = plan.is_dedicated;
  poller.spin = plan.spin;
  poller.max_sleep = plan.max_sleep;
  poller.cpus = placement.lane_cpus[lane];
  poller.page = comms::lane_place(stats::process_page(), config.name, lane,
                                  comms::monitor_settings(fabric_.monitor));
  const WorkerThreads::Options workers{
      .name = comms::thread_name(config.name, (is_alone ? "-" : of_lane) + "w",
                                 WorkerThreads::kNumberBytes),
      .cpus = placement.helper_cpus,
      .spin = plan.spin};
  poller.on_thread_start = [source = source_] { source->on_thread_start(); };
  poller.on_thread_end = [source = source_] { source->on_thread_end(); };
  if (nic.death_watch != nullptr && lane == 0)
    poller.on_check = [&nic](TimePoint now) { nic.death_watch->check(nic, now); };
  try {
    auto backend = std::make_unique<Lane>(comms::Poller::read_clock(), poller.name, std::move(link),
                                          engine, carrier_advice(config), workers);
    if (config.driver != config::NicDriver::kMemif) backend->log_carrier();
    nic.pollers.push_back(std::make_unique<comms::Poller>(std::move(poller), std::move(backend)));
  } catch (const std::bad_alloc&) {
    log::warn(
        "{}: can't reserve {} MiB of address space for {} connections: raise the limit (ulimit -v, "
        "sysctl vm.overcommit_memory), or lower max_connections in [tcp] of {}",
        config.name, tcp::Stack::reserved_bytes(engine.stack) >> 20U, engine.session.max_sessions,
        fabric_.path);
    return fail(Errc::kOutOfMemory, "connection table");
  }
  return {};
}

Result<std::unique_ptr<Listener>> UstackTransport::listen(int device, const CommOptions& options) {
  const std::size_t index = ZTCP_TRY(checked(device));
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Nic> nic = ZTCP_TRY(own_nic(index, nullptr));
  const auto& lane = static_cast<const Lane&>(nic->pollers.front()->backend());
  if (lane.address_has_ended()) {
    log::warn("{}: no listening at {}: {}", nic->config.name, to_string(nic->config.address),
              lane.advice_for(Errc::kNoRoute));
    return fail(Errc::kNoRoute, "end of the address's lifetime");
  }
  return comms::CommListener::open(
      nic, classes_.settings_for(options, nic->config.name, nic->config.dscp));
}

Result<SendCommPtr> UstackTransport::begin_connect(int device, const PeerHandle& peer,
                                                   const CommOptions& options) {
  const std::size_t index = ZTCP_TRY(checked(device));
  const ListenAddress to = ZTCP_TRY(parse_listen_address(peer.bytes));
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Nic> nic = ZTCP_TRY(own_nic(index, &to));
  if (to.shares_nic && to.endpoint.address == nic->config.address.address &&
      to.endpoint != nic->listen_endpoint) {
    log::warn(
        "{}: no connection to {}: that process shares this NIC, and no frame between the two "
        "passes it; leave NCCL its shared memory within a host (NCCL_SHM_DISABLE, "
        "NCCL_P2P_DISABLE)",
        nic->config.name, to_string(to.endpoint));
    return fail(Errc::kNoRoute, "connect within a host");
  }
  comms::CommSettings settings = classes_.settings_for(options, nic->config.name, nic->config.dscp);
  settings.peer_shares_nic = to.shares_nic;
  Result<SendCommPtr> comm = comms::SendingComm::connect(nic, to.endpoint, to.cookie, settings);
  if (!comm) {
    if (comm.error().code == Errc::kFull)
      log::warn("{}", comms::connection_limit_line(
                          nic->config.name, fabric_,
                          config::connections_of_nic(fabric_.tcp, nic->config.driver)));
    return comm;
  }
  if (nic->death_watch != nullptr && to.watch.port != 0 &&
      to.endpoint.address != nic->config.address.address)
    nic->death_watch->dial(to.endpoint.address, to.watch, to.cookie);
  return comm;
}

void UstackTransport::drain() {
  if (in_forked_child()) return;
  captures_.end();
  comms::drain(nics_, mutex_, std::chrono::milliseconds(fabric_.messages.drain_timeout_ms));
}

}  // namespace

bool carries(const config::Nic& nic) {
  switch (nic.driver) {
    case config::NicDriver::kPci:
    case config::NicDriver::kMemif:
    case config::NicDriver::kTap:
    case config::NicDriver::kXdp:
    case config::NicDriver::kMlx5:
      return true;
    case config::NicDriver::kSocket:
    case config::NicDriver::kVerbs:
      break;
  }
  return false;
}

bool is_shown_often(const config::Fabric& fabric) {
  return std::ranges::any_of(fabric.nics, [&](const config::Nic& nic) {
    return nccl_devices(fabric, nic, /*tunes_channels=*/true) > 1;
  });
}

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& cpus, GpuProbe probe,
                                          std::shared_ptr<NicSource> source) {
  return std::make_unique<UstackTransport>(fabric, cpus, probe, std::move(source));
}

}  // namespace ztcp::ustack
