// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/memory_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace ztcp::test {
namespace {

using FabricPtr = std::shared_ptr<MemoryFabric>;

// The part that both directions share.
template <class Base>
class MemoryComm : public Base {
 public:
  MemoryComm(std::shared_ptr<Pipe> pipe, const DeviceProperties& device)
      : pipe_(std::move(pipe)), device_(device) {
    const std::lock_guard lock(fabric().mutex);
    ++fabric().comms;
  }
  ~MemoryComm() override {
    const std::lock_guard lock(fabric().mutex);
    --fabric().comms;
    fabric().keys -= static_cast<int>(regions_.size());
  }
  void close() override { delete this; }
  Result<MemoryKey*> register_memory(const Region& region) override {
    if (region.kind == MemoryKind::kCuda && !device_.cuda_pointers)
      return fail(Errc::kInvalidArgument, "memory");
    if (region.dmabuf_fd >= 0 && !device_.dmabuf) return fail(Errc::kInvalidArgument, "DMA-BUF");
    RegionPtr made = ZTCP_TRY(MemoryRegion::make(region));
    const std::lock_guard lock(fabric().mutex);
    ++fabric().keys;
    MemoryRegion* const key = made.get();
    regions_[key] = std::move(made);
    return key;
  }
  Status deregister_memory(MemoryKey* key) override {
    const std::lock_guard lock(fabric().mutex);
    if (regions_.erase(key) == 0) return fail(Errc::kInvalidArgument, "memory key");
    --fabric().keys;
    return {};
  }
  std::string describe_peer() const override { return "memory peer of " + device_.name; }

 protected:
  MemoryFabric& fabric() const { return *pipe_->fabric; }
  Pipe& pipe() const { return *pipe_; }
  const DeviceProperties& device() const { return device_; }
  // Under the lock. Null without a key: unregistered host memory.
  Result<RegionPtr> region_of(MemoryKey* key, std::span<const std::byte> bytes) const {
    if (key == nullptr) return nullptr;
    const auto found = regions_.find(key);
    if (found == regions_.end()) return fail(Errc::kInvalidArgument, "memory: unknown key");
    if (!found->second->covers(bytes))
      return fail(Errc::kInvalidArgument, "memory: buffer outside of its registration");
    return found->second;
  }

 private:
  std::shared_ptr<Pipe> pipe_;
  const DeviceProperties device_;
  std::map<const MemoryKey*, RegionPtr> regions_;
};

class MemorySend final : public MemoryComm<SendComm> {
 public:
  MemorySend(std::shared_ptr<Pipe> pipe, const DeviceProperties& device, int ready_delay)
      : MemoryComm(std::move(pipe), device), ready_delay_(ready_delay) {}
  ~MemorySend() override {
    const std::lock_guard lock(fabric().mutex);
    // Aborts messages that the peer has not taken; eager messages are with the peer already.
    std::erase_if(pipe().messages, [](const Pipe::Message& m) { return m.send != nullptr; });
  }
  Result<bool> is_ready() override {
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    return ready_delay_-- <= 0;
  }
  Result<Request*> post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) override {
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    if (pipe().receiver_closed) return fail(Errc::kPeerClosed, "memory");
    const RegionPtr region = ZTCP_TRY(region_of(key, bytes));
    if (fabric().credit_withheld) return nullptr;
    Pipe::Operation* const operation = Pipe::take(pipe().sends, 1);
    if (operation == nullptr) return nullptr;
    Pipe::Buffer& from = operation->parts[0];
    from.bytes = {const_cast<std::byte*>(bytes.data()), bytes.size()};  // It is only read.
    from.tag = tag;
    from.region = region;
    pipe().send(*operation);
    return operation;
  }

 private:
  int ready_delay_;
};

class MemoryRecv final : public MemoryComm<RecvComm> {
 public:
  using MemoryComm::MemoryComm;
  ~MemoryRecv() override {
    const std::lock_guard lock(fabric().mutex);
    pipe().receiver_closed = true;
    pipe().posted.clear();  // NCCL frees the buffers next.
  }
  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override {
    if (buffers.empty() || buffers.size() > static_cast<std::size_t>(device().max_receives))
      return fail(Errc::kInvalidArgument, "memory: more buffers than maxRecvs");
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    std::array<Pipe::Buffer, kMaxReceives> parts;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      parts[i] = {.bytes = buffers[i].bytes,
                  .tag = buffers[i].tag,
                  .region = ZTCP_TRY(region_of(buffers[i].key, buffers[i].bytes))};
    Pipe::Operation* const operation = Pipe::take(pipe().receives, buffers.size());
    if (operation == nullptr) return nullptr;
    operation->parts = std::move(parts);
    pipe().receive(*operation);
    return operation;
  }
  // Done at the second test(): a caller that does not test it sees no bytes.
  Result<Request*> post_flush(std::span<const RecvBuffer> buffers) override {
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    std::vector<std::pair<RegionPtr, std::vector<MemoryRegion::Arrival>>> arrivals;
    for (const RecvBuffer& buffer : buffers) {
      const RegionPtr region = ZTCP_TRY(region_of(buffer.key, buffer.bytes));
      if (region && region->is_gpu())
        arrivals.emplace_back(region, region->take_arrivals(buffer.bytes));
    }
    if (arrivals.empty()) return nullptr;
    Pipe::Operation* const operation = Pipe::take(pipe().flushes, 0);
    // The arrivals stay with the request that NCCL holds; it never holds as many.
    if (operation == nullptr) return fail(Errc::kFull, "memory: too many untested flushes");
    operation->arrivals = std::move(arrivals);
    return operation;
  }
};

class MemoryListener final : public Listener {
 public:
  MemoryListener(FabricPtr fabric, const DeviceProperties& device, TransportKind kind,
                 bool has_long_handle)
      : fabric_(std::move(fabric)), device_(device), handle_{.kind = kind} {
    if (has_long_handle)
      std::fill(handle_.bytes.begin() + PeerHandle::kBaseBytes, handle_.bytes.end(), std::byte{1});
    const std::lock_guard lock(fabric_->mutex);
    id_ = fabric_->next_listener++;
    fabric_->listeners[id_];
    std::memcpy(handle_.bytes.data(), &id_, sizeof id_);
  }
  ~MemoryListener() override {
    const std::lock_guard lock(fabric_->mutex);
    fabric_->listeners.erase(id_);
  }
  const PeerHandle& handle() const override { return handle_; }
  Result<RecvCommPtr> accept() override {
    std::shared_ptr<Pipe> pipe;
    {
      const std::lock_guard lock(fabric_->mutex);
      if (fabric_->dead) return tl::unexpected(*fabric_->dead);
      auto& waiting = fabric_->listeners[id_];
      if (waiting.empty()) return nullptr;
      pipe = std::move(waiting.front());
      waiting.pop_front();
    }
    return RecvCommPtr(new MemoryRecv(std::move(pipe), device_));
  }

 private:
  FabricPtr fabric_;
  const DeviceProperties device_;
  std::uint64_t id_ = 0;
  PeerHandle handle_;
};

}  // namespace

MemoryTransport::MemoryTransport(std::vector<DeviceProperties> devices, TransportKind kind)
    : kind_(kind), devices_(std::move(devices)), fabric_(std::make_shared<MemoryFabric>()) {}

MemoryTransport::~MemoryTransport() = default;

std::string MemoryTransport::describe_device(int device) const {
  const DeviceProperties& d = properties(device);
  return d.name + ": in memory; GPUDirect RDMA " + (d.cuda_pointers ? "on" : "off");
}

Result<Transport::Merged> MemoryTransport::merge(std::span<const int> devices) {
  if (devices.size() == 1) return fail(Errc::kInvalidArgument, "one alone");
  Merged out{.number = devices[0], .properties = properties(devices[0])};
  for (const int other : devices.subspan(1)) out.properties.name += "+" + properties(other).name;
  return out;
}

Result<std::unique_ptr<Listener>> MemoryTransport::listen(int device, const CommOptions& options) {
  last_device_ = device;
  {
    const std::lock_guard lock(fabric_->mutex);
    last_options_ = options;
    if (fabric_->listen_error) return tl::unexpected<Error>(*fabric_->listen_error);
  }
  return std::make_unique<MemoryListener>(fabric_, properties(device), kind_, has_long_handles_);
}

Result<SendCommPtr> MemoryTransport::begin_connect(int device, const PeerHandle& peer,
                                                   const CommOptions& options) {
  last_device_ = device;
  std::shared_ptr<Pipe> pipe;
  int delay = 0;
  {
    const std::lock_guard lock(fabric_->mutex);
    last_options_ = options;
    if (fabric_->connect_error) return tl::unexpected<Error>(*fabric_->connect_error);
    std::uint64_t id = 0;
    std::memcpy(&id, peer.bytes.data(), sizeof id);
    const auto listener = fabric_->listeners.find(id);
    if (listener == fabric_->listeners.end()) return fail(Errc::kRefused, "memory");
    pipe = std::make_shared<Pipe>(fabric_);
    listener->second.push_back(pipe);
    delay = fabric_->ready_delay;
  }
  return SendCommPtr(new MemorySend(std::move(pipe), properties(device), delay));
}

void MemoryTransport::fail_listen(std::optional<Error> error) {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->listen_error = error;
}
void MemoryTransport::fail_connect(std::optional<Error> error) {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->connect_error = error;
}
void MemoryTransport::delay_ready(int calls) {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->ready_delay = calls;
}
void MemoryTransport::kill(Error error) {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->dead = error;
}
void MemoryTransport::withhold_credit(bool withhold) {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->credit_withheld = withhold;
}
int MemoryTransport::live_listeners() const {
  const std::lock_guard lock(fabric_->mutex);
  return static_cast<int>(fabric_->listeners.size());
}
int MemoryTransport::live_comms() const {
  const std::lock_guard lock(fabric_->mutex);
  return fabric_->comms;
}
int MemoryTransport::live_keys() const {
  const std::lock_guard lock(fabric_->mutex);
  return fabric_->keys;
}

}  // namespace ztcp::test
