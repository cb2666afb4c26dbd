// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/verbs_transport.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "core/listen_address.h"
#include "core/log.h"
#include "core/process_mark.h"
#include "transport/comms/session_config.h"
#include "transport/comms/straggler_log.h"
#include "transport/sockets/kernel/advice.h"
#include "transport/verbs/control_thread.h"
#include "transport/verbs/device_list.h"
#include "transport/verbs/recv_comm.h"
#include "transport/verbs/send_comm.h"

namespace ztcp::verbs {
namespace {

DeviceProperties properties_of(const Device& device, int max_comms) {
  DeviceProperties out;
  out.name = device.name;
  out.pci_path = device.pci_path;
  out.guid = device.guid;
  out.speed_mbps = device.speed_mbps;
  out.port = device.port;
  out.max_comms = max_comms;
  out.max_receives = static_cast<int>(kMaxReceives);
  out.host_pointers = true;
  out.cuda_pointers = device.fault.empty() && device.has_peer_memory;
  out.dmabuf = device.fault.empty() && device.has_dmabuf;
  out.registration_is_global = true;
  out.mtu_bytes = device.is_tcp ? device.exchange.mtu_bytes : device.mtu_bytes;
  if (device.is_tcp)
    out.address = to_string(device.exchange.address);
  else if (device.fault.empty())
    out.address = to_string(device.address.gid.gid);
  out.numa_node = device.numa_node;
  out.gpu = device.gpu_pci.empty() ? device.gpu_uuid : device.gpu_pci;
  return out;
}

// The abilities that all usable rails have in common; for GPU memory, the rails of RDMA.
DeviceProperties properties_of(const RailSet& set, int max_comms) {
  DeviceProperties out = properties_of(set.first().device, max_comms);
  out.name = set.name;
  for (const auto& rail : set.rails) {
    if (rail.get() == &set.first() || !rail->is_usable()) continue;
    const DeviceProperties other = properties_of(rail->device, max_comms);
    out.speed_mbps += other.speed_mbps;
    if (!other.address.empty()) out.address += (out.address.empty() ? "" : ", ") + other.address;
    if (rail->device.is_tcp) continue;
    out.cuda_pointers = out.cuda_pointers && other.cuda_pointers;
    out.dmabuf = out.dmabuf && other.dmabuf;
  }
  return out;
}

// Groups devices by the config's merge word; each group takes the position of its first device.
std::vector<Rails> groups_of(std::vector<Device> devices, const sockets::SocketTimes& times) {
  std::vector<Rails> out;
  for (Device& device : devices) {
    const auto group = std::find_if(out.begin(), out.end(), [&](const Rails& rails) {
      return !device.merge.empty() && rails.front()->device.merge == device.merge;
    });
    Rails& to = group == out.end() ? out.emplace_back() : *group;
    to.push_back(std::make_shared<Rail>(std::move(device), times));
  }
  return out;
}

std::shared_ptr<RailSet> set_of(const std::string& name, Rails rails) {
  return std::make_shared<RailSet>(name, std::move(rails));
}

class QueuePairListener final : public Listener {
 public:
  QueuePairListener(std::shared_ptr<ControlThread> control_thread,
                    std::shared_ptr<Arrivals> arrivals, const ListenAddress& address)
      : control_thread_(std::move(control_thread)),
        arrivals_(std::move(arrivals)),
        cookie_(address.cookie),
        handle_{TransportKind::kVerbs, to_bytes(address)} {
    control_thread_->add_listener(cookie_, arrivals_);
  }
  ~QueuePairListener() override { control_thread_->remove_listener(cookie_); }

  const PeerHandle& handle() const override { return handle_; }
  Result<RecvCommPtr> accept() override {
    const auto connection = control_thread_->accept(*arrivals_);
    if (connection == nullptr) return nullptr;
    return QueuePairRecv::open(control_thread_, connection);
  }

 private:
  const std::shared_ptr<ControlThread> control_thread_;
  const std::shared_ptr<Arrivals> arrivals_;
  const Cookie cookie_;
  const PeerHandle handle_;
};

class VerbsTransport final : public Transport {
 public:
  VerbsTransport(const config::Fabric& fabric, const ControlSettings& settings,
                 std::vector<Device> found)
      : config_path_(fabric.path),
        max_comms_(
            static_cast<int>(config::connections_of_nic(fabric.tcp, config::NicDriver::kVerbs))),
        control_thread_(std::make_shared<ControlThread>(settings)) {
    for (Rails& rails : groups_of(std::move(found), settings.times)) {
      const Device& first = rails.front()->device;
      sets_.push_back(set_of(first.merge.empty() ? first.name : first.merge, std::move(rails)));
      devices_.push_back(properties_of(*sets_.back(), max_comms_));
      warn_of_faults(*sets_.back());
    }
  }

  TransportKind kind() const override { return TransportKind::kVerbs; }
  const std::vector<DeviceProperties>& devices() const override { return devices_; }
  std::string describe_device(int device) const override {
    const std::lock_guard lock(mutex_);
    const RailSet& set = *sets_[static_cast<std::size_t>(device)];
    std::vector<std::string> rails;
    for (const auto& rail : set.rails) rails.push_back(device_text(rail->device));
    if (rails.size() == 1)
      return fmt::format("{}: RDMA verbs, {}; in NCCL's threads", set.name, rails.front());
    return fmt::format(
        "{}: {} over {} rails{}: {}; in NCCL's threads", set.name, set.kinds(), rails.size(),
        set.name == set.first().device.merge ? fmt::format(" that {} merges", config_path_)
                                             : std::string(),
        fmt::join(rails, "; "));
  }
  std::string carrier(int device) const override {
    const std::lock_guard lock(mutex_);
    const RailSet& set = *sets_[static_cast<std::size_t>(device)];
    return set.rails.front()->device.is_tcp ? "TCP over merged NICs" : set.kinds();
  }
  Result<Merged> merge(std::span<const int> devices) override;
  Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) override;
  Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                    const CommOptions& options) override;
  void drain() override {
    if (in_forked_child()) return;
    control_thread_->drain();
    // The process ends: a thread of NCCL's may have the lock for good.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    for (const auto& set : sets_)
      if (const auto line = set->carried.rest()) log::info("{}", *line);
  }

 private:
  Result<std::shared_ptr<RailSet>> set(int device);
  static void warn_of_faults(const RailSet& set);

  const std::string config_path_;
  const int max_comms_;
  const std::shared_ptr<ControlThread> control_thread_;
  std::vector<DeviceProperties> devices_;
  mutable std::mutex mutex_;  // Guards the next members, which grow.
  std::vector<std::shared_ptr<RailSet>> sets_;
};

Result<std::shared_ptr<RailSet>> VerbsTransport::set(int device) {
  if (in_forked_child()) return fail(Errc::kForked, "verbs");
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(device);
  if (device < 0 || index >= sets_.size()) return fail(Errc::kInvalidArgument, "device");
  const Rail& first = sets_[index]->first();
  if (first.is_usable()) return sets_[index];
  log::warn("{}: no connection over it: {}", sets_[index]->name, first.device.fault);
  return fail(Errc::kNoDevice, "a device that can't be used");
}

// Warns of a merged device with faulty NICs: the others serve, at less speed.
void VerbsTransport::warn_of_faults(const RailSet& set) {
  if (!set.first().is_usable()) return;
  for (const auto& rail : set.rails)
    if (!rail->is_usable())
      log::warn("{}: goes without {}, over the rest of its rails alone: {}", set.name,
                rail->device.name, rail->device.fault);
}

Result<Transport::Merged> VerbsTransport::merge(std::span<const int> devices) {
  Rails rails;
  std::vector<std::string> names;
  for (const int device : devices) {
    const auto one = ZTCP_TRY(set(device));
    if (one->rails.size() > 1) return fail(Errc::kInvalidArgument, "a merged device in another");
    const auto& rail = one->rails.front();
    if (rail->device.is_tcp) return fail(Errc::kInvalidArgument, "TCP alone");
    if (!rail->device.may_merge)
      return fail(Errc::kInvalidArgument, "NCCL_IB_MERGE_NICS=0 forbids it");
    if (rail->device.is_iwarp)
      return fail(Errc::kInvalidArgument, "iWARP devices, which are not merged");
    if (std::find(rails.begin(), rails.end(), rail) != rails.end())
      return fail(Errc::kInvalidArgument, "a device merged with itself");
    rails.push_back(rail);
    names.push_back(one->name);
  }
  if (rails.empty() || rails.size() > kMaxRails)
    return fail(Errc::kInvalidArgument, "a merged device of none, or of more than 8");
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(sets_.begin(), sets_.end(),
                            [&](const auto& known) { return known->rails == rails; });
  if (found == sets_.end())
    found = sets_.insert(sets_.end(),
                         set_of(fmt::format("{}", fmt::join(names, "+")), std::move(rails)));
  return Merged{static_cast<int>(found - sets_.begin()), properties_of(**found, max_comms_)};
}

Result<std::unique_ptr<Listener>> VerbsTransport::listen(int device, const CommOptions& options) {
  auto found = ZTCP_TRY(set(device));
  const Device& on = found->first().device;
  const Result<Endpoint> endpoint = control_thread_->listen(*found);
  if (!endpoint) {
    const Error& error = endpoint.error();
    log::warn("{}: can't listen on {} ({}): {}: {}{}", on.name, to_string(on.exchange.address),
              on.exchange.interface, error.where, std::strerror(error.sys_errno),
              sockets::listen_advice(error, on.exchange, config_path_));
    return tl::unexpected(error);
  }
  ListenAddress address{.endpoint = *endpoint, .watch = {}, .cookie = {}};
  if (getrandom(address.cookie.data(), address.cookie.size(), 0) !=
      static_cast<ssize_t>(address.cookie.size()))
    return fail_errno("getrandom");
  auto arrivals = std::make_shared<Arrivals>();
  arrivals->traffic_class = options.traffic_class;
  arrivals->communicator = options.communicator;
  arrivals->rails = std::move(found);
  return std::make_unique<QueuePairListener>(control_thread_, std::move(arrivals), address);
}

Result<SendCommPtr> VerbsTransport::begin_connect(int device, const PeerHandle& peer,
                                                  const CommOptions& options) {
  auto from = ZTCP_TRY(set(device));
  const Device& own = from->first().device;
  const ListenAddress to = ZTCP_TRY(parse_listen_address(peer.bytes));
  if (to.endpoint.address.is_v4() != own.exchange.address.is_v4()) {
    log::warn(
        "{}: no connection from {} to {}: one is IPv4, the other IPv6; give the NICs of both "
        "hosts' "
        "ztcp.conf addresses of one family",
        own.name, to_string(own.exchange.address), to_string(to.endpoint));
    return fail(Errc::kNoRoute, "connect to another family");
  }
  auto connection = std::make_shared<Connection>(from, Direction::kSend, to.endpoint);
  if (auto made = connection->prepare(options.traffic_class); !made) {
    log::warn("{}: no queue pair for {}: {}", own.name, to_string(to.endpoint),
              made.error().reason);
    return tl::unexpected(made.error().error);
  }
  if (const Status dialled =
          control_thread_->dial(connection, to.endpoint, to.cookie, options.communicator);
      !dialled) {
    const Error& error = dialled.error();
    log::warn("{}: no connection to {}: {}: {}", own.name, to_string(to.endpoint), error.where,
              error.sys_errno != 0 ? std::strerror(error.sys_errno) : describe(error.code));
    return tl::unexpected(error);
  }
  return SendCommPtr(new QueuePairSend(control_thread_, std::move(connection)));
}

}  // namespace

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          std::vector<Device> devices) {
  const auto ms = [](std::uint32_t n) { return std::chrono::milliseconds(n); };
  ControlSettings settings;
  settings.times = {.user_timeout = ms(fabric.tcp.user_timeout_ms),
                    .keepalive_idle = ms(fabric.tcp.keepalive_idle_ms),
                    .keepalive_interval = ms(fabric.tcp.keepalive_interval_ms)};
  settings.connect_timeout = ms(fabric.tcp.connect_timeout_ms);
  settings.handshake_timeout = ms(fabric.messages.handshake_timeout_ms);
  settings.drain_timeout = ms(fabric.messages.drain_timeout_ms);
  settings.cluster_key = ZTCP_TRY(comms::cluster_key(fabric));
  settings.config_path = fabric.path;
  settings.monitor = comms::monitor_settings(fabric.monitor);
  return std::make_unique<VerbsTransport>(fabric, settings, std::move(devices));
}

}  // namespace ztcp::verbs
