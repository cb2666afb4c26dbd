// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection_manager.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/own_thread.h"
#include "core/process_mark.h"
#include "core/socket_address.h"
#include "transport/verbs/session/record_codec.h"

namespace ztcp::verbs {
namespace {

constexpr int kBacklog = 1024;
constexpr int kResolveMs = 5000;
constexpr const char* kMayPass = "; may TCP pass to the peer's ports first_port to last_port?";
constexpr auto kMostWait = std::chrono::seconds(2);

// The private data of the initiator's request.
struct Invitation {
  static constexpr std::uint32_t kMagic = 0x57497a54;  // "TzIW"

  std::uint32_t magic = kMagic;
  std::uint32_t queue_pair = 0;
  std::array<std::byte, 16> nonce{};
};

SocketAddress socket_address(const Endpoint& endpoint, std::uint32_t scope) {
  SocketAddress out = to_socket_address(endpoint);
  if (out.family() == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &out.storage, sizeof v6);
    v6.sin6_scope_id = endpoint.address.is_link_local_v6() ? scope : 0;
    std::memcpy(&out.storage, &v6, sizeof v6);
  }
  return out;
}

// Flushes read, one at a time; for the others some drivers refuse zero.
CmParameters parameters_for(std::uint32_t queue_pair) {
  CmParameters out;
  out.responder_resources = out.initiator_depth = 1;
  out.qp_num = queue_pair;
  return out;
}

bool is_of(const CmId& id, const std::string& hca) {
  return id.verbs != nullptr && hca == id.verbs->device->name;
}

}  // namespace

std::string fault_of_manager(const CmApi& api, const Device& device) {
  CmChannel* const channel = api.create_event_channel();
  if (channel == nullptr)
    return fmt::format(
        "iWARP's connection manager can't be used (/dev/infiniband/rdma_cm: {}): "
        "modprobe rdma_ucm, and in a container pass the node in",
        std::strerror(errno));
  std::string why;
  CmId* id = nullptr;
  if (api.create_id(channel, &id, nullptr, kTcpPortSpace) != 0) {
    why = fmt::format("rdma_create_id: {}", std::strerror(errno));
  } else {
    SocketAddress at = socket_address({device.exchange.address, 0}, device.exchange.scope);
    if (api.bind_addr(id, at.get()) != 0 || !is_of(*id, device.hca))
      why = fmt::format(
          "its address {} is not one of {}'s own interface, over which iWARP's queue pairs go: "
          "correct it in the config",
          to_string(device.exchange.address), device.hca);
    api.destroy_id(id);
  }
  api.destroy_event_channel(channel);
  return why;
}

Result<std::shared_ptr<ConnectionManager>> ConnectionManager::start(const CmApi& api, Fd wake) {
  Fd own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!own || !wake) return ztcp::fail_errno("eventfd");
  CmChannel* const channel = api.create_event_channel();
  if (channel == nullptr) return ztcp::fail_errno("rdma_create_event_channel");
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  fcntl(channel->fd, F_SETFD, FD_CLOEXEC);
  std::shared_ptr<ConnectionManager> out(
      new ConnectionManager(api, *channel, std::move(wake), std::move(own)));
  // The thread keeps its object alive, so that no other thread has to wait for the kernel.
  ZTCP_TRY(start_thread("ztcp-iwarp", [out] { out->run(); })).detach();
  return out;
}

ConnectionManager::~ConnectionManager() {
  // A forked child shares the channel's ids with its parent, which owns them.
  if (!in_forked_child()) close_all();
}

void ConnectionManager::close_all() {
  for (const auto& [where, id] : listeners_) api_.destroy_id(id);
  listeners_.clear();
  if (channel_ != nullptr) api_.destroy_event_channel(std::exchange(channel_, nullptr));
}

Result<CmId*> ConnectionManager::bind(const Device& device, std::uint16_t port) {
  CmId* id = nullptr;
  if (api_.create_id(channel_, &id, nullptr, kTcpPortSpace) != 0)
    return ztcp::fail_errno("rdma_create_id");
  SocketAddress at = socket_address({device.exchange.address, port}, device.exchange.scope);
  if (api_.bind_addr(id, at.get()) == 0 && api_.listen(id, kBacklog) == 0) return id;
  const int error = errno;
  api_.destroy_id(id);
  return ztcp::fail(Errc::kSystem, "rdma_listen", error);
}

// From the last port down: kernel sockets take ports from the first up, and not every device knows
// which ones are taken.
Result<std::uint16_t> ConnectionManager::listen(const Device& device) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return ztcp::fail(Errc::kSystem, "the connection manager");
  CmId*& id = listeners_[{device.hca, device.exchange.address}];
  std::uint32_t port = device.exchange.last_port;
  while (id == nullptr) {
    const Result<CmId*> bound = bind(device, static_cast<std::uint16_t>(port));
    if (bound) {
      id = *bound;
      break;
    }
    if (bound.error().sys_errno != EADDRINUSE || port <= device.exchange.first_port) {
      listeners_.erase({device.hca, device.exchange.address});
      return tl::unexpected(bound.error());
    }
    --port;
  }
  return be16toh(api_.get_src_port(id));
}

std::shared_ptr<CmConnection> ConnectionManager::join(CmConnectionPlan plan) {
  auto connection = std::make_shared<CmConnection>(std::move(plan));
  {
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
  }
  eventfd_write(own_wake_.get(), 1);
  return connection;
}

void ConnectionManager::leave(const std::shared_ptr<CmConnection>& connection,
                              QueuePairParts parts) {
  {
    const std::lock_guard lock(mutex_);
    connection->parts_ = std::move(parts);
    connection->is_left_ = true;
  }
  eventfd_write(own_wake_.get(), 1);
}

void ConnectionManager::stop() {
  if (in_forked_child()) return;
  std::unique_lock lock(mutex_);
  stopping_ = true;
  eventfd_write(own_wake_.get(), 1);
  ended_.wait_for(lock, kMostWait, [this] { return has_ended_; });
}

void ConnectionManager::run() {
  std::array<pollfd, 2> watched{{{own_wake_.get(), POLLIN, 0}, {channel_->fd, POLLIN, 0}}};
  for (bool goes_on = true; goes_on;) {
    poll(watched.data(), watched.size(), -1);
    eventfd_t count = 0;
    eventfd_read(own_wake_.get(), &count);
    try {
      goes_on = take_changes();
      while (goes_on && take_event()) {
      }
    } catch (const std::bad_alloc&) {
      // The connection concerned fails when its time is over.
    }
  }
  const std::lock_guard lock(mutex_);
  close_all();
  has_ended_ = true;
  ended_.notify_all();
}

// False: the thread is to end.
bool ConnectionManager::take_changes() {
  std::vector<std::shared_ptr<CmConnection>> fresh;
  std::vector<std::shared_ptr<CmConnection>> left;
  bool is_over = false;
  {
    const std::lock_guard lock(mutex_);
    fresh.reserve(connections_.size());
    left.reserve(connections_.size());
    for (const auto& connection : connections_) {
      if (connection->is_left_)
        left.push_back(connection);
      else if (!std::exchange(connection->is_begun_, true))
        fresh.push_back(connection);
    }
    std::erase_if(connections_, [](const auto& connection) { return connection->is_left_; });
    is_over = stopping_ && connections_.empty();
  }
  for (const auto& connection : left) end(*connection);
  for (const auto& connection : fresh) begin(*connection);
  return !is_over;
}

void ConnectionManager::begin(CmConnection& connection) {
  const CmConnectionPlan& plan = connection.plan_;
  if (!plan.initiates) return;  // The peer initiates.
  SocketAddress from = socket_address({plan.from, 0}, plan.scope);
  SocketAddress to = socket_address(plan.to, plan.scope);
  for (CmId*& id : connection.ids_) {
    if (api_.create_id(channel_, &id, &connection, kTcpPortSpace) != 0)
      return fail(connection, fmt::format("rdma_create_id: {}", std::strerror(errno)));
    if (api_.resolve_addr(id, from.get(), to.get(), kResolveMs) != 0)
      return fail(connection, fmt::format("rdma_resolve_addr: {}", std::strerror(errno)));
  }
}

// The library wants queue pairs destroyed before their ids. That also aborts a connection that is
// being established.
void ConnectionManager::end(CmConnection& connection) {
  for (QueuePairHandle& pair : connection.parts_.pairs) pair.reset();
  for (CmId* const id : connection.ids_)
    if (id != nullptr) api_.destroy_id(id);
  connection.ids_.clear();
  connection.parts_ = {};
}

bool ConnectionManager::take_event() {
  CmEvent* event = nullptr;
  if (api_.get_cm_event(channel_, &event) != 0) return false;
  // The event's data are freed with it, and an id can't be destroyed before all of its events are
  // acknowledged.
  CmEvent copy = *event;
  std::array<std::byte, 256> said{};
  if (copy.kind == CmEventKind::kConnectRequest && copy.parameters.private_data != nullptr)
    std::memcpy(said.data(), copy.parameters.private_data, copy.parameters.private_data_bytes);
  copy.parameters.private_data = said.data();
  api_.ack_cm_event(event);
  if (copy.kind == CmEventKind::kConnectRequest)
    on_request(*copy.id, copy);
  else
    on_event(*copy.id, copy);
  return true;
}

void ConnectionManager::on_request(CmId& id, const CmEvent& event) {
  // A connection is expected before the peer hears of it, so it is in the list by now.
  take_changes();
  const auto told =
      records::load<Invitation>({static_cast<const std::byte*>(event.parameters.private_data),
                                 event.parameters.private_data_bytes});
  std::shared_ptr<CmConnection> connection;
  if (told && told->magic == Invitation::kMagic) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& one) {
      return !one->plan_.initiates && one->plan_.nonce == told->nonce;
    });
    if (found != connections_.end()) connection = *found;
  }
  // The request is a stranger's, or of a connection that was given up.
  if (connection == nullptr || told->queue_pair >= connection->ids_.size() ||
      connection->ids_[told->queue_pair] != nullptr) {
    api_.reject(&id, nullptr, 0);
    api_.destroy_id(&id);
    return;
  }
  id.context = connection.get();
  connection->ids_[told->queue_pair] = &id;
  CmParameters parameters = parameters_for(connection->plan_.numbers[told->queue_pair]);
  if (api_.accept(&id, &parameters) != 0)
    fail(*connection, fmt::format("rdma_accept: {}", std::strerror(errno)));
}

void ConnectionManager::on_event(CmId& id, const CmEvent& event) {
  if (event.kind == CmEventKind::kDeviceRemoval) return on_removal(id);
  if (id.context == nullptr) return;  // The id is a listener's.
  CmConnection& connection = *static_cast<CmConnection*>(id.context);
  switch (event.kind) {
    case CmEventKind::kAddressResolved:
      if (!is_of(id, connection.plan_.hca))
        return fail(connection, fmt::format("the way to {} does not go over {}",
                                            to_string(connection.plan_.to), connection.plan_.hca));
      if (api_.resolve_route(&id, kResolveMs) != 0)
        fail(connection, fmt::format("rdma_resolve_route: {}", std::strerror(errno)));
      return;
    case CmEventKind::kRouteResolved:
      return connect(connection, id);
    case CmEventKind::kEstablished:
      if (++connection.established_ < connection.ids_.size()) return;
      if (connection.state() != CmConnection::State::kJoining) return;
      connection.state_.store(CmConnection::State::kJoined, std::memory_order_release);
      return tell();
    case CmEventKind::kAddressError:
    case CmEventKind::kRouteError:
    case CmEventKind::kConnectError:
    case CmEventKind::kUnreachable:
    case CmEventKind::kRejected:
      return fail(
          connection,
          fmt::format("{}: {}{}", api_.event_str(event.kind),
                      std::strerror(event.status < 0 ? -event.status : event.status), kMayPass));
    default:
      return;  // Queue pairs and the exchange report the end of the connection.
  }
}

// The kernel waits until the device's ids are destroyed; a connection's ids go when the connection
// has failed.
void ConnectionManager::on_removal(const CmId& id) {
  const std::lock_guard lock(mutex_);
  const auto listener = std::find_if(listeners_.begin(), listeners_.end(),
                                     [&](const auto& one) { return one.second == &id; });
  if (listener == listeners_.end()) return;
  api_.destroy_id(listener->second);
  listeners_.erase(listener);
}

void ConnectionManager::connect(CmConnection& connection, CmId& id) {
  const auto at =
      std::find(connection.ids_.begin(), connection.ids_.end(), &id) - connection.ids_.begin();
  const auto index = static_cast<std::uint32_t>(at);
  const Invitation told{.queue_pair = index, .nonce = connection.plan_.nonce};
  CmParameters parameters = parameters_for(connection.plan_.numbers[index]);
  parameters.private_data = &told;
  parameters.private_data_bytes = sizeof told;
  if (api_.connect(&id, &parameters) != 0)
    fail(connection, fmt::format("rdma_connect to {}: {}{}", to_string(connection.plan_.to),
                                 std::strerror(errno), kMayPass));
}

// Later failures are ignored.
void ConnectionManager::fail(CmConnection& connection, const std::string& why) {
  if (connection.state() != CmConnection::State::kJoining) return;
  connection.why_ = why;
  connection.state_.store(CmConnection::State::kFailed, std::memory_order_release);
  tell();
}

void ConnectionManager::tell() const { eventfd_write(wake_.get(), 1); }

}  // namespace ztcp::verbs
