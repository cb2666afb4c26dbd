// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/net.h"

#include <thread>
#include <utility>
#include <variant>

#include "transport/core/process_mark.h"

namespace ztcp::plugin {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

constexpr std::chrono::microseconds kBlockingPollInterval{50};

// Calls `attempt` until it yields a connection or fails, or `has_waited_enough`.
template <class Attempt, class Enough>
auto poll_until_connected(Attempt&& attempt, Enough&& has_waited_enough) -> decltype(attempt()) {
  for (;;) {
    auto connection = attempt();
    if (!connection || *connection != nullptr || has_waited_enough()) return connection;
    std::this_thread::sleep_for(kBlockingPollInterval);
  }
}

}  // namespace

Net::Net(Starter starter) : starter_(std::move(starter)) {}

Told<void> Net::start() {
  const std::lock_guard lock(start_mutex_);
  if (startup() != nullptr) return {};
  mark_process();
  Told<Startup> found = starter_();
  if (!found) return pass_on(found.error());
  startups_.push_back(std::make_unique<Startup>(std::move(*found)));
  startup_.store(startups_.back().get(), std::memory_order_release);
  return {};
}

Told<void> Net::init() { return start(); }

Told<Context*> Net::init_context() {
  if (const auto outcome = start(); !outcome) return pass_on(outcome.error());
  auto context = std::make_unique<Context>();
  Context* const raw = context.get();
  const std::lock_guard lock(mutex_);
  contexts_.emplace(raw, std::move(context));
  return raw;
}

void Net::finalize(Context* context) {
  std::vector<std::unique_ptr<NetObject>> reaped;  // Destroyed after the lock is released.
  const std::lock_guard start_lock(start_mutex_);
  const std::lock_guard lock(mutex_);
  if (contexts_.erase(context) == 0) return;
  for (auto it = objects_.begin(); it != objects_.end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    reaped.push_back(std::move(it->second.object));
    it = objects_.erase(it);
  }
  // A refusing start-up is looked at anew by the next communicator: the operator may have mended
  // the config. A working one stays: its NICs and threads are the process's.
  const Startup* const current = startup();
  if (contexts_.empty() && current != nullptr && !current->refusal.empty())
    startup_.store(nullptr, std::memory_order_release);
}

Told<const Startup*> Net::started() const {
  if (const Startup* const current = startup()) return current;
  return report(Errc::kInvalidArgument, "called before a successful init");
}

Told<int> Net::device_count() const {
  const auto current = started();
  if (!current) return pass_on(current.error());
  return static_cast<int>((*current)->devices.size());
}

Told<const DeviceProperties*> Net::device(int index) const {
  const auto current = started();
  if (!current) return pass_on(current.error());
  const auto& devices = (*current)->devices;
  if (index < 0 || static_cast<std::size_t>(index) >= devices.size())
    return report(Errc::kInvalidArgument, "no device {}: there are {}", index, devices.size());
  return &devices[static_cast<std::size_t>(index)];
}

Context* Net::known(Context* context) {
  return contexts_.contains(context) ? context : &process_context_;
}

template <class T>
T* Net::adopt(std::unique_ptr<T> object, Context* context) {
  T* const raw = object.get();
  const std::lock_guard lock(mutex_);
  objects_[raw] = Owned{std::move(object), known(context)};
  return raw;
}

std::unique_ptr<NetObject> Net::disown(const NetObject* object) {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(object);
  if (it == objects_.end()) return nullptr;
  auto owned = std::move(it->second.object);
  objects_.erase(it);
  return owned;
}

Told<Listening*> Net::listen(Context* context, int device, HandleBytes handle) {
  const auto properties = this->device(device);
  if (!properties) return pass_on(properties.error());
  const Startup& current = *startup();
  const std::string& name = (*properties)->name;

  if (!current.refusal.empty()) {
    encode_handle(Poison{Errc::kBadConfig, current.host}, handle);
    return adopt(std::make_unique<Listening>(Errc::kBadConfig, current.refusal, name), context);
  }
  Result<std::unique_ptr<Listener>> listener = current.transport->listen(device);
  if (!listener) {
    // A failing listen() would leave the other ranks in NCCL's bootstrap for ever, so the failure
    // travels in the handle and is told by accept() here and by connect() there.
    const Error error = listener.error();
    std::string refusal = fmt::format("cannot listen on {}: {}", name, explain(error));
    log::warn("{}", refusal);
    encode_handle(Poison{error.code, current.host}, handle);
    return adopt(std::make_unique<Listening>(error.code, std::move(refusal), name), context);
  }
  encode_handle((*listener)->address(), handle);
  return adopt(std::make_unique<Listening>(std::move(*listener), name, current.connect_timeout),
               context);
}

Told<std::unique_ptr<SendConnection>> Net::begin_connect(const Startup& startup, int device,
                                                         ConstHandleBytes handle) const {
  const auto properties = this->device(device);
  if (!properties) return pass_on(properties.error());
  const std::string& name = (*properties)->name;
  using Connecting = Told<std::unique_ptr<SendConnection>>;
  return std::visit(
      Overloaded{
          [&](const ListenAddress& peer) -> Connecting {
            if (!startup.refusal.empty())
              return report(Errc::kBadConfig, "connecting from {} failed: {}", name,
                            startup.refusal);
            Result<std::unique_ptr<SendComm>> comm = startup.transport->begin_connect(device, peer);
            if (!comm)
              return report(comm.error().code, "connecting from {} failed: {}", name,
                            explain(comm.error()));
            return std::make_unique<SendConnection>(std::move(*comm));
          },
          [&](const Poison& poison) -> Connecting {
            return report(Errc::kRefused,
                          "host {} takes no connections: {}; its own warnings say more, run "
                          "there: ztcp_setup --check",
                          poison.host.empty() ? "of the peer" : poison.host,
                          describe(poison.reason));
          },
          [&](const ForeignHandle& foreign) -> Connecting {
            return report(Errc::kProtocol,
                          "the peer{}{} uses another network (NCCL's Socket or IB?): ztcp did not "
                          "start there; is it set up on that host? Run there: ztcp_setup --check",
                          foreign.peer.empty() ? "" : " at ", foreign.peer);
          },
          [&](const OtherVersion& other) -> Connecting {
            return report(Errc::kProtocol,
                          "the peer's ztcp speaks handle version {}, this one {}: install the "
                          "same release on all hosts",
                          other.version, kHandleVersion);
          },
          [&](const UnknownKind& unknown) -> Connecting {
            return report(Errc::kProtocol,
                          "the peer's handle is of kind {}, which this ztcp does not know: the "
                          "peer's is newer, or the handle was damaged on its way; install the same "
                          "release on all hosts",
                          unknown.kind);
          },
      },
      decode_handle(handle));
}

Told<SendConnection*> Net::connect(Context* context, int device, HandleBytes handle) {
  const auto current = started();
  if (!current) return pass_on(current.error());

  // The attempt under way, if the handle remembers one that is still ours.
  auto* const remembered = static_cast<NetObject*>(connect_state(handle));
  SendConnection* connection = nullptr;
  if (remembered != nullptr) {
    const std::lock_guard lock(mutex_);
    if (const auto it = objects_.find(remembered); it != objects_.end())
      connection = dynamic_cast<SendConnection*>(it->second.object.get());
  }
  if (connection == nullptr) {
    auto begun = begin_connect(**current, device, handle);
    if (!begun) return pass_on(begun.error());
    connection = adopt(std::move(*begun), context);
    set_connect_state(handle, static_cast<NetObject*>(connection));
  }

  const Told<bool> ready = connection->is_ready();
  if (ready && !*ready) return nullptr;
  set_connect_state(handle, nullptr);
  if (ready) return connection;
  close(connection);
  return pass_on(ready.error());
}

Told<RecvConnection*> Net::accept(Listening* listening) {
  Told<std::unique_ptr<RecvConnection>> accepted = listening->accept();
  if (!accepted) return pass_on(accepted.error());
  if (!*accepted) return nullptr;
  Context* context = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = objects_.find(listening); it != objects_.end())
      context = it->second.context;
  }
  return adopt(std::move(*accepted), context);
}

Told<SendConnection*> Net::connect_blocking(int device, ConstHandleBytes handle) {
  const auto current = started();
  if (!current) return pass_on(current.error());
  // The caller's handle is too short for the attempt's state.
  std::array<std::byte, kHandleBytes> copy{};
  std::copy_n(handle.begin(), kShortHandleBytes, copy.begin());
  const auto timeout = (*current)->connect_timeout;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto connection =
      poll_until_connected([&] { return connect(nullptr, device, copy); },
                           [&] { return std::chrono::steady_clock::now() >= deadline; });
  if (!connection || *connection != nullptr) return connection;
  close(static_cast<NetObject*>(connect_state(copy)));  // Nobody will ask again.
  return report(Errc::kTimedOut, "connecting took longer than {} ms; is the peer alive?",
                timeout.count());
}

Told<RecvConnection*> Net::accept_blocking(Listening* listening) {
  if (const auto current = started(); !current) return pass_on(current.error());
  // As long as it takes, as NCCL's own networks do: a peer may connect minutes later, when it has
  // loaded its data. Listening says once that nobody has come; what ends the wait is a NIC that is
  // lost.
  return poll_until_connected([&] { return accept(listening); }, [] { return false; });
}

void Net::close(NetObject* object) {
  if (object != nullptr) disown(object);  // Destroyed here, outside the lock.
}

void Net::drain() noexcept {
  const Startup* const current = startup();
  if (current == nullptr || current->transport == nullptr) return;
  try {
    current->transport->drain();
  } catch (...) {  // The process ends; nobody is left to tell.
  }
}

}  // namespace ztcp::plugin
