// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/socket_transport.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "config/machine/live_machine.h"
#include "core/listen_address.h"
#include "core/log.h"
#include "core/process_mark.h"
#include "transport/comms/comm.h"
#include "transport/comms/connection_limit.h"
#include "transport/comms/listener.h"
#include "transport/comms/nic.h"
#include "transport/comms/process_end.h"
#include "transport/comms/session_config.h"
#include "transport/comms/shared_budget.h"
#include "transport/comms/shared_places.h"
#include "transport/comms/thread_name.h"
#include "transport/plan/device_plan.h"
#include "transport/plan/nccl_devices.h"
#include "transport/sockets/kernel/advice.h"
#include "transport/sockets/kernel/congestion_choice.h"
#include "transport/sockets/kernel/device_list.h"
#include "transport/sockets/kernel/packet_class.h"
#include "transport/sockets/lane.h"
#include "transport/stats/process_page.h"

namespace ztcp::sockets {
namespace {

// How long an idle worker spins before it sleeps: about as long as it takes to wake one. A longer
// spin would take CPU time from the threads that share its core.
constexpr Duration kWorkerSpin = std::chrono::microseconds(10);
// The longest sleep of an idle thread. Unexpected events (a stranger's connection, a peer's close)
// may wait so long, because a host has many such threads, and the training needs the CPUs.
constexpr Duration kMaxIdleSleep = std::chrono::milliseconds(32);
// The kernel sends a keepalive after a second of silence at the earliest. With this interval it has
// sent two before a silent peer is declared dead.
constexpr Duration kProbeInterval = std::chrono::milliseconds(300);

class Nic final : public comms::Nic {
 public:
  explicit Nic(const Device& device) : comms::Nic(device.name) {}
  PeerHandle issue_handle(const msg::Cookie& cookie) override {
    if (death_watch != nullptr) death_watch->expect(cookie);
    const Endpoint watch = death_watch != nullptr ? death_watch->endpoint() : Endpoint{};
    return {TransportKind::kSockets, to_bytes({listen_endpoint, watch, cookie})};
  }
};

DeviceProperties properties_of(const Device& device, int max_comms) {
  DeviceProperties out;
  out.name = device.name;
  out.pci_path = device.pci_path;
  out.guid = std::hash<std::string>()(device.interface);
  out.speed_mbps = device.speed_mbps;
  out.max_comms = max_comms;
  out.max_receives = static_cast<int>(kMaxReceives);
  out.host_pointers = true;
  out.mtu_bytes = device.mtu_bytes;
  out.address = to_string(device.address);
  out.numa_node = device.numa_node;
  out.gpu = device.gpu_pci.empty() ? device.gpu_uuid : device.gpu_pci;
  return out;
}

std::vector<Device> with_settings(const config::Fabric& fabric, std::vector<Device> devices) {
  for (Device& device : devices) device.congestion_control = fabric.tcp.kernel_congestion_control;
  return devices;
}

class SocketTransport final : public Transport {
 public:
  SocketTransport(const config::Fabric& fabric, std::vector<Device> found,
                  const config::CpuShare& cpus)
      : fabric_(fabric), found_(with_settings(fabric, std::move(found))), nics_(found_.size()) {
    // In shared mode NCCL's calls send small messages themselves, without waking another thread.
    config::Poller settings = fabric.poller;
    if (settings.mode == config::PollerMode::kAuto) settings.mode = config::PollerMode::kShared;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      devices_.push_back(properties_of(found_[i], static_cast<int>(connections())));
      plans_.push_back(plan::plan_device(facts_of(i), cpus, settings));
      devices_.back().nccl_devices = static_cast<int>(plans_.back().nccl_devices);
    }
  }
  ~SocketTransport() override {
    if (!in_forked_child()) return;
    // A forked child has none of the threads that the destructors would wait for.
    for (auto& nic : nics_) new std::shared_ptr<Nic>(std::move(nic));  // NOLINT: leaked.
  }

  TransportKind kind() const override { return TransportKind::kSockets; }
  const std::vector<DeviceProperties>& devices() const override { return devices_; }
  std::string describe_device(int device) const override;
  Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) override;
  Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                    const CommOptions& options) override;
  void drain() override {
    if (in_forked_child()) return;
    comms::drain(nics_, mutex_, std::chrono::milliseconds(fabric_.messages.drain_timeout_ms));
  }

 private:
  std::uint32_t connections() const {
    return config::connections_of_nic(fabric_.tcp, config::NicDriver::kSocket);
  }
  Result<std::size_t> checked(int device) const;
  plan::DeviceFacts facts_of(std::size_t index) const;
  Result<LaneConfig> lane_config(const Device& device, const plan::DevicePlan& plan) const;
  Result<std::vector<std::unique_ptr<Lane>>> open_lanes(
      const Device& device, const plan::DevicePlan& plan,
      const std::vector<std::uint32_t>& helper_cpus) const;
  Status start_lanes(Nic& nic, const std::string& name, const plan::DevicePlan& plan,
                     const plan::Placement& placement,
                     std::vector<std::unique_ptr<Lane>> lanes) const;
  Result<std::shared_ptr<Nic>> up(std::size_t index);
  Result<std::shared_ptr<Nic>> bring_up(std::size_t index);
  comms::CommSettings settings_for(const Device& device, const CommOptions& options);
  void check_dscp(const Device& device, std::uint8_t dscp);

  const config::Fabric fabric_;
  const std::vector<Device> found_;
  std::vector<DeviceProperties> devices_;
  const std::shared_ptr<DescriptorBudget> descriptors_ = std::make_shared<DescriptorBudget>();
  std::vector<plan::DevicePlan> plans_;  // By device.

  std::mutex mutex_;                        // Control path only.
  std::vector<std::shared_ptr<Nic>> nics_;  // By device; null: not up.
  comms::TrafficClasses classes_;
  std::bitset<64> checked_dscps_;
};

std::string rx_text(const Device& device) {
  if (device.rx_queues == 0) return "RX queues not told by the driver";
  if (device.rx_queues == 1) return "1 RX queue";
  return fmt::format("spread over {} RX queues", device.rx_queues);
}

std::string SocketTransport::describe_device(int device) const {
  const Device& one = found_[static_cast<std::size_t>(device)];
  return fmt::format("{}: kernel sockets, {}; {}, {}{}", one.name, device_text(one),
                     plan::sockets_text(plans_[static_cast<std::size_t>(device)]), rx_text(one),
                     descriptors_text(connections()));
}

plan::DeviceFacts SocketTransport::facts_of(std::size_t index) const {
  const Device& device = found_[index];
  plan::DeviceFacts facts;
  facts.is_kernels = true;
  facts.index = index;
  facts.count = found_.size();
  facts.numa_node = device.numa_node;
  if (device.speed_source == SpeedSource::kTold) facts.speed_mbps = device.speed_mbps;
  facts.nccl_devices = plan::nccl_devices({.told = device.nccl_devices,
                                           .tunes_channels = fabric_.tunes_channels,
                                           .interfaces = found_.size()});
  facts.told_flows = fabric_.messages.flows;
  return facts;
}

Result<std::size_t> SocketTransport::checked(int device) const {
  const auto index = static_cast<std::size_t>(device);
  if (device < 0 || index >= devices_.size()) return fail(Errc::kInvalidArgument, "device");
  return index;
}

Result<LaneConfig> SocketTransport::lane_config(const Device& device,
                                                const plan::DevicePlan& plan) const {
  const auto ms = [](std::uint32_t n) { return std::chrono::milliseconds(n); };
  LaneConfig out;
  out.device = device;
  out.times = {.user_timeout = ms(fabric_.tcp.user_timeout_ms),
               .keepalive_idle = ms(fabric_.tcp.keepalive_idle_ms),
               .keepalive_interval = ms(fabric_.tcp.keepalive_interval_ms)};
  out.connect_timeout = ms(fabric_.tcp.connect_timeout_ms);
  out.session = comms::session_settings(fabric_, config::NicDriver::kSocket, plan.lanes.size());
  out.session.ack_is_delivery = false;
  // Copying a message of this size costs less than the receipt for it.
  out.session.kept_message_bytes = 32U << 10;
  out.session.flows = plan.flows;  // More flows help only if several threads serve them.
  if (plan.helpers != 0) {
    out.session.keeps_first_flow_free = true;
    out.session.multi_flow_threshold_bytes =
        std::min(out.session.multi_flow_threshold_bytes,
                 static_cast<std::uint32_t>(BulkCall::kLeastBytes) - 1);
  }
  out.cluster_key = ZTCP_TRY(comms::cluster_key(fabric_));
  out.descriptors = descriptors_;
  // Pending connections, which may be strangers', get a quarter of the descriptors at most.
  out.max_pending_streams = std::clamp<std::size_t>(
      DescriptorBudget::usable() / 4 / (found_.size() * plan.lanes.size()), 8, 256);
  if (getrandom(out.secret.data(), sizeof out.secret, 0) != static_cast<ssize_t>(sizeof out.secret))
    return fail_errno("getrandom");
  return out;
}

Result<std::shared_ptr<Nic>> SocketTransport::up(std::size_t index) {
  if (nics_[index] == nullptr) nics_[index] = ZTCP_TRY(bring_up(index));
  return nics_[index];
}

// Opens the plan's lanes; the first has the listener.
Result<std::vector<std::unique_ptr<Lane>>> SocketTransport::open_lanes(
    const Device& device, const plan::DevicePlan& plan,
    const std::vector<std::uint32_t>& helper_cpus) const {
  const std::size_t count = plan.lanes.size();
  auto listener = open_listener(device);
  if (!listener) {
    const Error& error = listener.error();
    log::warn("{}: can't listen on {} ({}): {}: {}{}", device.name, to_string(device.address),
              device.interface, error.where, std::strerror(error.sys_errno),
              listen_advice(error, device, fabric_.path));
    return tl::unexpected<Error>(error);
  }
  const Endpoint endpoint = listener->endpoint;
  std::shared_ptr<msg::SessionPlaces> places;
  if (count > 1) places = std::make_shared<comms::SharedPlaces>(count);
  const auto budget = std::make_shared<comms::SharedBudget>(connections());
  std::shared_ptr<RxPlacement> rx_placement;
  if (device.rx_queues > 1) rx_placement = std::make_shared<RxPlacement>(device.rx_queues);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::size_t i = 0; i < count; ++i) {
    LaneConfig config = ZTCP_TRY(lane_config(device, plan));
    config.places = places;
    config.budget = budget;
    config.place = static_cast<std::uint8_t>(i);
    config.rx_placement = rx_placement;
    config.workers = plan.lanes[i].helpers;
    config.worker_options = {
        .name = comms::thread_name(device.name, count == 1 ? "-w" : fmt::format("-{}w", i),
                                   WorkerThreads::kNumberBytes),
        .cpus = helper_cpus,
        .spin = std::min(plan.spin, kWorkerSpin)};
    auto lane = Lane::open(std::move(config), i == 0 ? std::move(*listener)
                                                     : Listening{.fd = {}, .endpoint = endpoint});
    if (!lane) {
      log::warn("{}: can't open lane {} of {}: {}: {}{}", device.name, i, count, lane.error().where,
                std::strerror(lane.error().sys_errno), resource_advice(lane.error().sys_errno));
      return tl::unexpected<Error>(lane.error());
    }
    lanes.push_back(std::move(*lane));
  }
  if (count == 1) return lanes;
  std::vector<Lane*> all;
  all.reserve(count);
  for (const auto& lane : lanes) all.push_back(lane.get());
  // Accepted sessions are assigned from the middle on, since dialled ones begin with the first.
  lanes.front()->deal_to(std::move(all), count / 2);
  return lanes;
}

Result<std::shared_ptr<Nic>> SocketTransport::bring_up(std::size_t index) {
  mark_process();
  const Device& device = found_[index];
  const plan::DevicePlan& plan = plans_[index];
  if (device.dscp != 0) check_dscp(device, device.dscp);
  if (const std::string refusal = congestion_refusal(device); !refusal.empty())
    log::warn("{}: {}", device.name, refusal);
  config::LiveMachine machine;
  const plan::Placement placement = plan::place_threads(plan, machine.allowed_cpus());
  if (!placement.warning.empty()) log::warn("{}: {}", device.name, placement.warning);
  auto lanes = ZTCP_TRY(open_lanes(device, plan, placement.helper_cpus));
  auto nic = std::make_shared<Nic>(device);
  nic->link_timeout = std::chrono::milliseconds(fabric_.tcp.connect_timeout_ms);
  nic->memory_timeout.set(std::chrono::milliseconds(fabric_.messages.drain_timeout_ms));
  nic->listen_endpoint = lanes.front()->listening();
  const std::string congestion_control = lanes.front()->congestion_control();
  nic->death_watch = comms::DeathWatch::open(fabric_, {.nic = device.name,
                                                       .address = device.address,
                                                       .is_kernels = true,
                                                       .probe_interval = kProbeInterval});
  ZTCP_CHECK(start_lanes(*nic, device.name, plan, placement, std::move(lanes)));
  log::info("{}: kernel sockets on {}, listening at {}, congestion control {}, {}", device.name,
            device.interface, to_string(nic->listen_endpoint), congestion_control,
            plan::sockets_text(plan));
  return nic;
}

comms::CommSettings SocketTransport::settings_for(const Device& device,
                                                  const CommOptions& options) {
  const comms::CommSettings settings = classes_.settings_for(options, device.name, device.dscp);
  if (settings.dscp) check_dscp(device, *settings.dscp);
  return settings;
}

// Lanes ignore refusals of single sockets, so the kernel is asked once for each DSCP.
void SocketTransport::check_dscp(const Device& device, std::uint8_t dscp) {
  if (checked_dscps_.test(dscp)) return;
  checked_dscps_.set(dscp);
  const std::string refusal = class_refusal(device, dscp);
  if (!refusal.empty()) log::warn("{}: {}", device.name, refusal);
}

Status SocketTransport::start_lanes(Nic& nic, const std::string& name, const plan::DevicePlan& plan,
                                    const plan::Placement& placement,
                                    std::vector<std::unique_ptr<Lane>> lanes) const {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const bool is_alone = lanes.size() == 1;
    comms::PollerConfig poller;
    poller.name = is_alone ? name : fmt::format("{} lane {}", name, i);
    poller.thread = comms::thread_name(name, is_alone ? "" : fmt::format("-{}", i));
    poller.dedicated = plan.is_dedicated;
    poller.spin = plan.spin;
    poller.max_sleep = plan.max_sleep;
    poller.max_idle_sleep = kMaxIdleSleep;
    poller.wake = lanes[i]->wake();
    poller.takes_over = plan.takes_over;
    poller.cpus = placement.lane_cpus[i];
    poller.page =
        comms::lane_place(stats::process_page(), name, i, comms::monitor_settings(fabric_.monitor));
    if (nic.death_watch != nullptr && i == 0)
      poller.on_check = [&watched = nic](TimePoint now) {
        watched.death_watch->check(watched, now);
      };
    nic.pollers.push_back(std::make_unique<comms::Poller>(std::move(poller), std::move(lanes[i])));
  }
  for (const auto& poller : nic.pollers) {
    if (const Status started = poller->start(); !started) {
      log::warn("{}: can't start its thread: {}: {}{}", poller->name(), started.error().where,
                std::strerror(started.error().sys_errno),
                resource_advice(started.error().sys_errno));
      return tl::unexpected<Error>(started.error());
    }
  }
  return {};
}

Result<std::unique_ptr<Listener>> SocketTransport::listen(int device, const CommOptions& options) {
  const std::size_t index = ZTCP_TRY(checked(device));
  const std::lock_guard lock(mutex_);
  auto nic = ZTCP_TRY(up(index));
  return comms::CommListener::open(std::move(nic), settings_for(found_[index], options));
}

Result<SendCommPtr> SocketTransport::begin_connect(int device, const PeerHandle& peer,
                                                   const CommOptions& options) {
  const std::size_t index = ZTCP_TRY(checked(device));
  const Device& from = found_[index];
  const ListenAddress to = ZTCP_TRY(parse_listen_address(peer.bytes));
  if (to.in_shared_memory) {
    log::warn(
        "{}: no connection from {} to {}: the peer's NIC is shared memory between processes of its "
        "host (memif_role = \"mesh\"), which kernel sockets can't reach; give both ends NICs of "
        "one "
        "network in their ztcp.conf",
        from.name, to_string(from.address), to_string(to.endpoint));
    return fail(Errc::kNoRoute, "connect to shared memory");
  }
  if (to.shares_nic) {
    log::warn(
        "{}: no connection from {} to {}: processes of the peer's host share its AF_XDP interface, "
        "and kernel sockets can't choose the port by which its NIC finds the right one; write "
        "processes = 1 there, or use AF_XDP at both ends",
        from.name, to_string(from.address), to_string(to.endpoint));
    return fail(Errc::kNoRoute, "connect to a shared NIC");
  }
  if (to.endpoint.address.is_v4() != from.address.is_v4()) {
    log::warn(
        "{}: no connection from {} to {}: one is IPv4, the other IPv6; give both hosts' "
        "interfaces addresses of one family, and choose it by NCCL_SOCKET_FAMILY",
        from.name, to_string(from.address), to_string(to.endpoint));
    return fail(Errc::kNoRoute, "connect to another family");
  }
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Nic> nic = ZTCP_TRY(up(index));
  Result<SendCommPtr> comm =
      comms::SendingComm::connect(nic, to.endpoint, to.cookie, settings_for(from, options));
  if (!comm) {
    if (comm.error().code == Errc::kFull)
      log::warn("{}", comms::connection_limit_line(from.name, fabric_, connections()));
    return comm;
  }
  if (peer.kind == TransportKind::kUstack && nic->death_watch != nullptr && to.watch.port != 0)
    nic->death_watch->dial(to.endpoint.address, to.watch, to.cookie);
  return comm;
}

}  // namespace

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, std::vector<Device> devices,
                                          const config::CpuShare& cpus) {
  return std::make_unique<SocketTransport>(fabric, std::move(devices), cpus);
}

int nccl_devices(const config::Fabric& fabric, const config::Nic& nic) {
  const auto interfaces = std::ranges::count_if(fabric.nics, carries);
  return static_cast<int>(plan::nccl_devices({.told = nic.nccl_devices,
                                              .tunes_channels = fabric.tunes_channels,
                                              .interfaces = static_cast<std::size_t>(interfaces)}));
}

}  // namespace ztcp::sockets
