// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plugin without NCCL's versions: what all tables do, said once. Starts the transport at the
// first init, hands out devices, and owns every listener and connection that NCCL holds, so that
// what NCCL forgets (it leaks half-open ones) is reaped with its communicator.
//
// Threads: any, at any time. Calls on one connection follow NCCL's rules (connection.h).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugin/connection.h"
#include "plugin/handle.h"
#include "plugin/report.h"
#include "transport/transport.h"

namespace ztcp::plugin {

// What start-up found. Immutable afterwards.
struct Startup {
  std::unique_ptr<Transport> transport;  // Null when refusing.
  std::vector<DeviceProperties> devices;
  // A config that exists but can't be honoured: connections fail with this, devices are still
  // shown, so that jobs inside one host run on. Empty: all is well.
  std::string refusal;
  std::string host;  // For poisoned handles.
  // Of the blocking connect of v3 and v4; after it, a waiting accept of any version says so.
  std::chrono::milliseconds connect_timeout;
};

// NCCL's per-communicator context (v11 and later); older tables share one for the process.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

class Net {
 public:
  // Run at the first init; failure fails that init, and the next one tries again.
  using Starter = std::function<Told<Startup>()>;
  explicit Net(Starter starter);

  // v3-v10: once per load. Calling again is harmless.
  Told<void> init();
  // v11+: once per communicator.
  Told<Context*> init_context();
  // Closes everything the context still holds. nullptr and unknown contexts are ignored: NCCL
  // finalizes after a failed init too.
  void finalize(Context* context);

  Told<int> device_count() const;
  Told<const DeviceProperties*> device(int index) const;

  // `context` nullptr: the process's.
  Told<Listening*> listen(Context* context, int device, HandleBytes handle);
  // nullptr: not yet; call again with the same handle, which remembers the attempt.
  Told<SendConnection*> connect(Context* context, int device, HandleBytes handle);
  Told<RecvConnection*> accept(Listening* listening);
  // v3 and v4: polls until done or the connect timeout is over.
  Told<SendConnection*> connect_blocking(int device, ConstHandleBytes handle);
  // Polls until a peer has come, however late.
  Told<RecvConnection*> accept_blocking(Listening* listening);

  // Any of NCCL's three closes. nullptr, and what was closed before, are ignored.
  void close(NetObject* object);

  // The process ends: tells its peers, lets streams finish, bounded. Everything else is
  // left to the kernel, because NCCL's threads may still be inside.
  void drain() noexcept;

 private:
  struct Owned {
    std::unique_ptr<NetObject> object;
    Context* context = nullptr;
  };

  // nullptr before init.
  const Startup* startup() const { return startup_.load(std::memory_order_acquire); }
  Told<const Startup*> started() const;
  Told<void> start();
  Context* known(Context* context);
  template <class T>
  T* adopt(std::unique_ptr<T> object, Context* context);
  std::unique_ptr<NetObject> disown(const NetObject* object);
  Told<std::unique_ptr<SendConnection>> begin_connect(const Startup& startup, int device,
                                                      ConstHandleBytes handle) const;

  const Starter starter_;
  std::mutex start_mutex_;
  std::atomic<const Startup*> startup_{nullptr};
  // Kept for good: NCCL borrows device names, and threads of it may linger in an old one.
  std::vector<std::unique_ptr<Startup>> startups_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::unordered_map<const Context*, std::unique_ptr<Context>> contexts_;
  std::unordered_map<const NetObject*, Owned> objects_;
  Context process_context_;
};

// The process's only one. Never destroyed. Defined by the plugin (instance.cc) and by tests.
Net& net();

}  // namespace ztcp::plugin
