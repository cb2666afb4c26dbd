// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/memory_transport.h"

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace ztcp::test {

struct Pipe;

// Everything two ends share. One lock for all: clarity over speed.
struct MemoryFabric {
  std::mutex mutex;
  std::map<std::uint64_t, std::deque<std::shared_ptr<Pipe>>> listeners;
  std::uint64_t next_listener = 1;
  std::optional<Error> listen_error;
  std::optional<Error> connect_error;
  std::optional<Error> dead;
  int ready_delay = 0;
  bool credit_withheld = false;
  int comms = 0;
  int keys = 0;
};

namespace {

using FabricPtr = std::shared_ptr<MemoryFabric>;

class MemoryKeyImpl final : public MemoryKey {};

}  // namespace

// One direction between two comms.
struct Pipe {
  enum class State : std::uint8_t { kFree, kPosted, kDone, kFailed };
  struct Operation final : Request {
    Result<bool> test(std::span<std::size_t> sizes_bytes) override;
    FabricPtr fabric;
    State state = State::kFree;
    std::span<std::byte> buffer;       // Receives.
    std::span<const std::byte> bytes;  // Sends waiting for their receive.
    std::size_t moved = 0;
    Error error;
  };
  struct Message {
    Operation* send = nullptr;  // Null when taken eagerly.
    std::vector<std::byte> eager;
  };

  explicit Pipe(const FabricPtr& f) : fabric(f) {
    for (Operation& o : sends) o.fabric = f;
    for (Operation& o : receives) o.fabric = f;
  }
  static Operation* take(std::array<Operation, MemoryTransport::kMaxOutstanding>& table) {
    for (Operation& o : table)
      if (o.state == State::kFree) return &o;
    return nullptr;
  }
  // Under the lock: joins the oldest message and the oldest receive while there are both.
  void match();

  FabricPtr fabric;
  std::array<Operation, MemoryTransport::kMaxOutstanding> sends;
  std::array<Operation, MemoryTransport::kMaxOutstanding> receives;
  std::deque<Message> messages;
  std::deque<Operation*> posted;
  std::size_t eager_bytes = 0;
  bool receiver_closed = false;
};

void Pipe::match() {
  while (!messages.empty() && !posted.empty()) {
    Message& message = messages.front();
    Operation& receive = *posted.front();
    const std::span<const std::byte> bytes =
        message.send != nullptr ? message.send->bytes : std::span<const std::byte>(message.eager);
    if (bytes.size() > receive.buffer.size()) {
      receive.state = State::kFailed;
      receive.error = {Errc::kTruncated, 0, "memory"};
    } else {
      if (!bytes.empty()) std::memcpy(receive.buffer.data(), bytes.data(), bytes.size());
      receive.state = State::kDone;
      receive.moved = bytes.size();
    }
    if (message.send != nullptr) {
      message.send->state = State::kDone;
      message.send->moved = bytes.size();
    } else {
      eager_bytes -= bytes.size();
    }
    messages.pop_front();
    posted.pop_front();
  }
}

Result<bool> Pipe::Operation::test(std::span<std::size_t> sizes_bytes) {
  const std::lock_guard lock(fabric->mutex);
  if (state == State::kFailed) return tl::unexpected<Error>(error);
  if (state == State::kDone) {
    if (!sizes_bytes.empty()) sizes_bytes[0] = moved;
    state = State::kFree;
    return true;
  }
  if (fabric->dead) return tl::unexpected<Error>(*fabric->dead);
  return false;
}

namespace {

// The part both directions share.
template <class Base>
class MemoryComm : public Base {
 public:
  explicit MemoryComm(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {
    const std::lock_guard lock(fabric().mutex);
    ++fabric().comms;
  }
  ~MemoryComm() override {
    const std::lock_guard lock(fabric().mutex);
    --fabric().comms;
    fabric().keys -= static_cast<int>(keys_.size());
  }
  void close() override { delete this; }
  Result<MemoryKey*> register_memory(const Region& region) override {
    if (region.kind != MemoryKind::kHost) return fail(Errc::kInvalidArgument, "memory");
    const std::lock_guard lock(fabric().mutex);
    ++fabric().keys;
    auto key = std::make_unique<MemoryKeyImpl>();
    MemoryKeyImpl* const raw = key.get();
    keys_[raw] = std::move(key);
    return raw;
  }
  Status deregister_memory(MemoryKey* key) override {
    const std::lock_guard lock(fabric().mutex);
    if (keys_.erase(key) == 0) return fail(Errc::kInvalidArgument, "memory key");
    --fabric().keys;
    return {};
  }
  std::string describe_peer() const override { return "memory peer"; }

 protected:
  MemoryFabric& fabric() const { return *pipe_->fabric; }
  Pipe& pipe() const { return *pipe_; }

 private:
  std::shared_ptr<Pipe> pipe_;
  std::map<const MemoryKey*, std::unique_ptr<MemoryKeyImpl>> keys_;
};

class MemorySend final : public MemoryComm<SendComm> {
 public:
  MemorySend(std::shared_ptr<Pipe> pipe, int ready_delay)
      : MemoryComm(std::move(pipe)), ready_delay_(ready_delay) {}
  ~MemorySend() override {
    const std::lock_guard lock(fabric().mutex);
    // Aborts what the peer has not taken; eager messages are with the peer already.
    std::erase_if(pipe().messages, [](const Pipe::Message& m) { return m.send != nullptr; });
  }
  Result<bool> is_ready() override {
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    return ready_delay_-- <= 0;
  }
  Result<Request*> post_send(std::span<const std::byte> bytes, int, MemoryKey*) override {
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    if (pipe().receiver_closed) return fail(Errc::kPeerClosed, "memory");
    if (fabric().credit_withheld) return nullptr;
    Pipe::Operation* const operation = Pipe::take(pipe().sends);
    if (operation == nullptr) return nullptr;
    if (pipe().eager_bytes + bytes.size() <= MemoryTransport::kEagerBytes) {
      pipe().eager_bytes += bytes.size();
      pipe().messages.push_back({nullptr, {bytes.begin(), bytes.end()}});
      operation->state = Pipe::State::kDone;
      operation->moved = bytes.size();
    } else {
      operation->state = Pipe::State::kPosted;
      operation->bytes = bytes;
      pipe().messages.push_back({operation, {}});
    }
    pipe().match();
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
  Result<Request*> post_flush(std::span<const RecvBuffer>) override { return nullptr; }
  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override {
    if (buffers.size() != 1) return fail(Errc::kInvalidArgument, "memory");
    const std::lock_guard lock(fabric().mutex);
    if (fabric().dead) return tl::unexpected<Error>(*fabric().dead);
    Pipe::Operation* const operation = Pipe::take(pipe().receives);
    if (operation == nullptr) return nullptr;
    operation->state = Pipe::State::kPosted;
    operation->buffer = buffers[0].bytes;
    pipe().posted.push_back(operation);
    pipe().match();
    return operation;
  }
};

class MemoryListener final : public Listener {
 public:
  MemoryListener(FabricPtr fabric, TransportKind kind)
      : fabric_(std::move(fabric)), handle_{.kind = kind} {
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
    return RecvCommPtr(new MemoryRecv(std::move(pipe)));
  }

 private:
  FabricPtr fabric_;
  std::uint64_t id_ = 0;
  PeerHandle handle_;
};

}  // namespace

MemoryTransport::MemoryTransport(std::vector<DeviceProperties> devices, TransportKind kind)
    : kind_(kind), devices_(std::move(devices)), fabric_(std::make_shared<MemoryFabric>()) {}

MemoryTransport::~MemoryTransport() = default;

std::string MemoryTransport::describe_device(int device) const {
  return devices_[static_cast<std::size_t>(device)].name + ": in memory; GPUDirect RDMA off";
}

Result<std::unique_ptr<Listener>> MemoryTransport::listen(int device, const CommOptions& options) {
  last_device_ = device;
  {
    const std::lock_guard lock(fabric_->mutex);
    last_options_ = options;
    if (fabric_->listen_error) return tl::unexpected<Error>(*fabric_->listen_error);
  }
  return std::make_unique<MemoryListener>(fabric_, kind_);
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
  return SendCommPtr(new MemorySend(std::move(pipe), delay));
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
