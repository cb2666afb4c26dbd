// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/connection.h"

#include <bit>
#include <cassert>
#include <utility>

namespace ztcp::plugin {
namespace {

// The transport said what a connection died of when it did, with the peer and its counters.
tl::unexpected<Reported> died(const Error& error) { return pass_on(Reported::earlier(error.code)); }

}  // namespace

Told<bool> RequestSlot::test(std::size_t* size_bytes) {
  const Result<bool> done = request_->test(size_bytes);
  if (!done) [[unlikely]]
    return died(done.error());
  if (*done) connection_->release(*this);
  return *done;
}

Connection::Connection() {
  for (RequestSlot& slot : slots_) slot.connection_ = this;
}

RequestSlot* Connection::take_slot(Request* request) {
  assert(has_free_slot());
  RequestSlot& slot = slots_[static_cast<std::size_t>(std::countr_zero(free_))];
  free_ &= free_ - 1;
  slot.request_ = request;
  return &slot;
}

void Connection::release(const RequestSlot& slot) {
  free_ |= std::uint32_t{1} << static_cast<unsigned>(&slot - slots_.data());
}

Told<MemoryKey*> Connection::register_memory(void* address, std::size_t size_bytes) {
  const Result<MemoryKey*> key = comm().register_memory(address, size_bytes);
  if (!key)
    return report(key.error().code, "registering {} bytes at {} failed: {}", size_bytes, address,
                  explain(key.error()));
  return *key;
}

Told<void> Connection::deregister_memory(MemoryKey* key) {
  if (key == nullptr) return {};
  if (const Status status = comm().deregister_memory(key); !status)
    return report(status.error().code, "deregistering memory failed: {}", explain(status.error()));
  return {};
}

SendConnection::SendConnection(std::unique_ptr<SendComm> comm) : comm_(std::move(comm)) {}

Told<bool> SendConnection::is_ready() {
  const Result<bool> ready = comm_->is_ready();
  if (!ready)
    return report(ready.error().code, "connecting to {} failed: {}", comm_->describe_peer(),
                  explain(ready.error()));
  return *ready;
}

Told<RequestSlot*> SendConnection::isend(std::span<const std::byte> bytes, MemoryKey* key) {
  if (!has_free_slot()) return nullptr;
  const Result<Request*> posted = comm_->post_send(bytes, key);
  if (!posted) [[unlikely]]
    return died(posted.error());
  return *posted == nullptr ? nullptr : take_slot(*posted);
}

RecvConnection::RecvConnection(std::unique_ptr<RecvComm> comm) : comm_(std::move(comm)) {}

Told<RequestSlot*> RecvConnection::irecv(std::span<std::byte> buffer, MemoryKey* key) {
  if (!has_free_slot()) return nullptr;
  const Result<Request*> posted = comm_->post_recv(buffer, key);
  if (!posted) [[unlikely]]
    return died(posted.error());
  return *posted == nullptr ? nullptr : take_slot(*posted);
}

Listening::Listening(std::unique_ptr<Listener> listener, std::string device,
                     std::chrono::milliseconds patience)
    : listener_(std::move(listener)), device_(std::move(device)), patience_(patience) {}

Listening::Listening(Errc code, std::string refusal, std::string device)
    : code_(code), refusal_(std::move(refusal)), device_(std::move(device)) {}

Told<std::unique_ptr<RecvConnection>> Listening::accept() {
  if (!listener_) return report(code_, "accepting on {} failed: {}", device_, refusal_);
  Result<std::unique_ptr<RecvComm>> comm = listener_->accept();
  if (!comm)
    return report(comm.error().code, "accepting on {} failed: {}", device_, explain(comm.error()));
  if (*comm) return std::make_unique<RecvConnection>(std::move(*comm));

  const auto now = std::chrono::steady_clock::now();
  if (!waiting_since_) {
    waiting_since_ = now;
  } else if (!said_waiting_ && now - *waiting_since_ >= patience_) {
    said_waiting_ = true;
    log::warn(
        "no peer has connected to {} for {} ms, still waiting; is the peer's process alive, and "
        "does the network (security group, firewall) let TCP to our listen port through?",
        device_, patience_.count());
  }
  return nullptr;
}

}  // namespace ztcp::plugin
