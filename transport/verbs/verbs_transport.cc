// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/verbs_transport.h"

#include <cstring>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "transport/comms/session_config.h"
#include "transport/core/listen_address.h"
#include "transport/core/log.h"
#include "transport/core/process_mark.h"
#include "transport/verbs/control.h"
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
  return out;
}

class QueuePairListener final : public Listener {
 public:
  QueuePairListener(std::shared_ptr<Control> control, std::shared_ptr<Arrivals> arrivals,
                    const ListenAddress& address)
      : control_(std::move(control)),
        arrivals_(std::move(arrivals)),
        cookie_(address.cookie),
        handle_{TransportKind::kVerbs, to_bytes(address)} {
    control_->add_listener(cookie_, arrivals_);
  }
  ~QueuePairListener() override { control_->remove_listener(cookie_); }

  const PeerHandle& handle() const override { return handle_; }
  Result<RecvCommPtr> accept() override {
    const auto connection = control_->accept(*arrivals_);
    if (connection == nullptr) return nullptr;
    return QueuePairRecv::open(control_, connection);
  }

 private:
  const std::shared_ptr<Control> control_;
  const std::shared_ptr<Arrivals> arrivals_;
  const Cookie cookie_;
  const PeerHandle handle_;
};

class VerbsTransport final : public Transport {
 public:
  VerbsTransport(const config::Fabric& fabric, const ControlSettings& settings,
                 std::vector<Device> found)
      : config_path_(fabric.path), control_(std::make_shared<Control>(settings)) {
    for (Device& device : found) {
      devices_.push_back(properties_of(device, static_cast<int>(fabric.tcp.max_connections)));
      rails_.push_back(std::make_shared<Rail>(std::move(device)));
    }
  }

  TransportKind kind() const override { return TransportKind::kVerbs; }
  const std::vector<DeviceProperties>& devices() const override { return devices_; }
  std::string describe_device(int device) const override {
    const Device& one = rails_[static_cast<std::size_t>(device)]->device;
    return fmt::format("{}: RDMA verbs, {}; in NCCL's threads", one.name, device_text(one));
  }
  Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) override;
  Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                    const CommOptions& options) override;
  void drain() override {
    if (!in_forked_child()) control_->drain();
  }

 private:
  Result<std::shared_ptr<Rail>> rail(int device) const;

  const std::string config_path_;
  const std::shared_ptr<Control> control_;
  std::vector<std::shared_ptr<Rail>> rails_;
  std::vector<DeviceProperties> devices_;
};

Result<std::shared_ptr<Rail>> VerbsTransport::rail(int device) const {
  if (in_forked_child()) return fail(Errc::kForked, "verbs");
  const auto index = static_cast<std::size_t>(device);
  if (device < 0 || index >= rails_.size()) return fail(Errc::kInvalidArgument, "device");
  const auto& rail = rails_[index];
  if (rail->device.fault.empty()) return rail;
  log::warn("{}: no connection over it: {}", rail->device.name, rail->device.fault);
  return fail(Errc::kNoDevice, "an RDMA device that can't be used");
}

Result<std::unique_ptr<Listener>> VerbsTransport::listen(int device, const CommOptions& options) {
  auto found = ZTCP_TRY(rail(device));
  const Device& on = found->device;
  const Result<Endpoint> endpoint = control_->listen(found);
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
  arrivals->traffic_class = traffic_class_for(on, options);
  arrivals->rail = std::move(found);
  return std::make_unique<QueuePairListener>(control_, std::move(arrivals), address);
}

Result<SendCommPtr> VerbsTransport::begin_connect(int device, const PeerHandle& peer,
                                                  const CommOptions& options) {
  auto from = ZTCP_TRY(rail(device));
  const Device& own = from->device;
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
  if (auto made = connection->prepare(own.queue_pairs, traffic_class_for(own, options)); !made) {
    log::warn("{}: no queue pair for {}: {}", own.name, to_string(to.endpoint), made.error().text);
    return tl::unexpected(made.error().error);
  }
  ZTCP_CHECK(control_->dial(connection, to.endpoint, to.cookie));
  return SendCommPtr(new QueuePairSend(control_, std::move(connection)));
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
  return std::make_unique<VerbsTransport>(fabric, settings, std::move(devices));
}

}  // namespace ztcp::verbs
