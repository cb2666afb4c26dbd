// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/fake_manager.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <endian.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

#include "core/socket_address.h"
#include "tests/support/verbs/fake_calls.h"

namespace ztcp::test {

using verbs::CmEventKind;

struct FakeCmEvent : verbs::CmEvent {
  std::vector<std::byte> said;
};

struct FakeChannel : verbs::CmChannel {
  std::deque<FakeCmEvent*> waiting;
};

struct FakeId : verbs::CmId {
  IpAddress address;
  std::uint16_t port = 0;
  bool listens = false;
  Endpoint to;
  FakeId* peer = nullptr;  // The other end of a pending connection.
  FakeEnd end;
  int unacknowledged = 0;
};

namespace {

// All ids; under the fabric's lock.
std::vector<FakeId*> ids;
std::uint16_t next_port = 40'000;

Endpoint endpoint_of(const sockaddr* from) {
  SocketAddress out;
  std::memcpy(&out.storage, from,
              from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return to_endpoint(out);
}

FakeEnd end_of(const verbs::CmParameters& parameters) {
  return {.queue_pair = parameters.qp_num,
          .reads = parameters.initiator_depth,
          .answers = parameters.responder_resources};
}

void put(FakeChannel& channel, FakeCmEvent* event) {
  channel.waiting.push_back(event);
  eventfd_write(channel.fd, 1);
}

}  // namespace

FakeFabric& FakeManager::fabric() { return *FakeCalls::the_fabric; }

int FakeManager::refuse(int sys_errno) {
  errno = sys_errno;
  return -1;
}

Result<const verbs::CmApi*, std::string> FakeManager::open() {
  static const verbs::CmApi kTable{.create_event_channel = create_event_channel,
                                   .destroy_event_channel = destroy_event_channel,
                                   .create_id = create_id,
                                   .destroy_id = destroy_id,
                                   .bind_addr = bind_addr,
                                   .listen = listen,
                                   .resolve_addr = resolve_addr,
                                   .resolve_route = resolve_route,
                                   .connect = connect,
                                   .accept = accept,
                                   .reject = reject,
                                   .get_cm_event = get_cm_event,
                                   .ack_cm_event = ack_cm_event,
                                   .event_str = event_str,
                                   .get_src_port = get_src_port};
  return &kTable;
}

verbs::CmChannel* FakeManager::create_event_channel() {
  const Lock lock(fabric().mutex_);
  if (fabric().manager_errno_ != 0) return errno = fabric().manager_errno_, nullptr;
  auto* const channel = new FakeChannel;
  channel->fd = eventfd(0, EFD_SEMAPHORE);
  ++fabric().live_["channel"];
  return channel;
}

void FakeManager::destroy_event_channel(verbs::CmChannel* channel) {
  const Lock lock(fabric().mutex_);
  if (std::any_of(ids.begin(), ids.end(), [&](const FakeId* id) { return id->channel == channel; }))
    fabric().note("a channel goes before its ids");
  --fabric().live_["channel"];
  close(channel->fd);
  delete static_cast<FakeChannel*>(channel);
}

int FakeManager::create_id(verbs::CmChannel* channel, verbs::CmId** out, void* context, int) {
  const Lock lock(fabric().mutex_);
  auto* const id = new FakeId;
  id->channel = channel;
  id->context = context;
  ids.push_back(id);
  ++fabric().live_["id"];
  *out = id;
  return 0;
}

int FakeManager::destroy_id(verbs::CmId* which) {
  const Lock lock(fabric().mutex_);
  auto* const id = static_cast<FakeId*>(which);
  // librdmacm would wait for ever.
  if (id->unacknowledged != 0) fabric().note("an id goes before its events are acknowledged");
  auto& waiting = static_cast<FakeChannel*>(id->channel)->waiting;
  std::erase_if(waiting, [&](FakeCmEvent* event) {
    if (event->id != id) return false;
    eventfd_t one = 0;
    eventfd_read(id->channel->fd, &one);
    delete event;
    return true;
  });
  if (id->peer != nullptr) id->peer->peer = nullptr;
  std::erase(ids, id);
  --fabric().live_["id"];
  delete id;
  return 0;
}

bool FakeManager::bind(FakeId& id, const sockaddr* address) {
  const Endpoint at = endpoint_of(address);
  for (const auto& device : fabric().devices_) {
    if (!device->spec.is_iwarp || device->spec.address != at.address) continue;
    id.verbs = &device->managers;
    id.address = at.address;
    id.port = at.port;
    return true;
  }
  return false;
}

FakeId* FakeManager::listener_at(const verbs::CmId& but, const FakeId& like, std::uint16_t port) {
  const auto found = std::find_if(ids.begin(), ids.end(), [&](const FakeId* id) {
    return id != &but && id->listens && id->address == like.address && id->port == port;
  });
  return found == ids.end() ? nullptr : *found;
}

int FakeManager::bind_addr(verbs::CmId* id, sockaddr* address) {
  const Lock lock(fabric().mutex_);
  return bind(static_cast<FakeId&>(*id), address) ? 0 : refuse(ENODEV);
}

int FakeManager::listen(verbs::CmId* which, int) {
  const Lock lock(fabric().mutex_);
  auto& id = static_cast<FakeId&>(*which);
  if (id.port == 0) id.port = next_port++;
  if (listener_at(id, id, id.port) != nullptr) return refuse(EADDRINUSE);
  id.listens = true;
  return 0;
}

void FakeManager::tell(FakeId& id, CmEventKind kind, int status) {
  auto* const event = new FakeCmEvent;
  event->id = &id;
  event->kind = kind;
  event->status = status;
  put(static_cast<FakeChannel&>(*id.channel), event);
}

int FakeManager::resolve_addr(verbs::CmId* which, sockaddr* from, sockaddr* to, int) {
  const Lock lock(fabric().mutex_);
  auto& id = static_cast<FakeId&>(*which);
  if (!bind(id, from)) return refuse(ENODEV);
  id.to = endpoint_of(to);
  tell(id, CmEventKind::kAddressResolved);
  return 0;
}

int FakeManager::resolve_route(verbs::CmId* id, int) {
  const Lock lock(fabric().mutex_);
  tell(static_cast<FakeId&>(*id), CmEventKind::kRouteResolved);
  return 0;
}

int FakeManager::connect(verbs::CmId* which, verbs::CmParameters* parameters) {
  const Lock lock(fabric().mutex_);
  auto& id = static_cast<FakeId&>(*which);
  id.end = end_of(*parameters);
  if (fabric().ignores_requests_) return 0;
  FakeId like;
  like.address = id.to.address;
  FakeId* const listener = listener_at(id, like, id.to.port);
  if (listener == nullptr) return tell(id, CmEventKind::kRejected, ECONNREFUSED), 0;
  auto* const child = new FakeId;
  child->channel = listener->channel;
  child->context = listener->context;
  child->verbs = listener->verbs;
  child->peer = &id;
  id.peer = child;
  ids.push_back(child);
  ++fabric().live_["id"];
  auto* const event = new FakeCmEvent;
  event->id = child;
  event->listen_id = listener;
  event->kind = CmEventKind::kConnectRequest;
  const auto* const said = static_cast<const std::byte*>(parameters->private_data);
  event->said.assign(said, said + parameters->private_data_bytes);
  event->parameters.private_data = event->said.data();
  event->parameters.private_data_bytes = parameters->private_data_bytes;
  put(static_cast<FakeChannel&>(*listener->channel), event);
  return 0;
}

int FakeManager::accept(verbs::CmId* which, verbs::CmParameters* parameters) {
  const Lock lock(fabric().mutex_);
  auto& id = static_cast<FakeId&>(*which);
  if (id.peer == nullptr) return refuse(ECONNRESET);
  if (!fabric().join(id.peer->end, end_of(*parameters))) return refuse(EINVAL);
  tell(*id.peer, CmEventKind::kEstablished);
  tell(id, CmEventKind::kEstablished);
  return 0;
}

int FakeManager::reject(verbs::CmId* which, const void*, std::uint8_t) {
  const Lock lock(fabric().mutex_);
  auto& id = static_cast<FakeId&>(*which);
  if (id.peer != nullptr) tell(*id.peer, CmEventKind::kRejected, ECONNREFUSED);
  return 0;
}

int FakeManager::get_cm_event(verbs::CmChannel* which, verbs::CmEvent** out) {
  const Lock lock(fabric().mutex_);
  auto& channel = static_cast<FakeChannel&>(*which);
  if (channel.waiting.empty()) return refuse(EAGAIN);
  FakeCmEvent* const event = channel.waiting.front();
  channel.waiting.pop_front();
  eventfd_t one = 0;
  eventfd_read(channel.fd, &one);
  // The listener owns a request until it is acknowledged.
  ++static_cast<FakeId*>(event->listen_id != nullptr ? event->listen_id : event->id)
        ->unacknowledged;
  *out = event;
  return 0;
}

int FakeManager::ack_cm_event(verbs::CmEvent* event) {
  const Lock lock(fabric().mutex_);
  --static_cast<FakeId*>(event->listen_id != nullptr ? event->listen_id : event->id)
        ->unacknowledged;
  delete static_cast<FakeCmEvent*>(event);
  return 0;
}

const char* FakeManager::event_str(CmEventKind kind) {
  return kind == CmEventKind::kRejected ? "RDMA_CM_EVENT_REJECTED" : "another event";
}

std::uint16_t FakeManager::get_src_port(verbs::CmId* id) {
  return htobe16(static_cast<FakeId*>(id)->port);
}

}  // namespace ztcp::test
