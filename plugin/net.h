// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plugin without NCCL's versions: what all tables do, said once. Starts the transports at the
// first init, hands out their devices, sends each listen and each connect to the transport of its
// device, if that one can reach the peer, and owns every listener and comm that NCCL holds, so that
// what NCCL forgets (it leaks half-open ones) is reaped with its communicator. NCCL's sendComm and
// recvComm are the transport's objects themselves: posts and tests do not come by here.
//
// Threads: any, at any time. Calls on one comm follow NCCL's rules (transport/transport.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "plugin/agreement.h"
#include "plugin/handle.h"
#include "plugin/listening.h"
#include "plugin/report.h"
#include "transport/transport.h"

namespace ztcp::plugin {

// What NCCL numbers from 0 up: one of the devices of one transport, or several of them in one.
struct Device {
  DeviceProperties properties;
  Transport* transport = nullptr;  // Null when refusing.
  int number = 0;                  // Among its transport's.
  // Of a device that the config promises and that can't be had: connections over it fail with this;
  // it is still shown, so that jobs inside one host run on. Empty: all is well.
  std::string refusal;
  int rail = -1;             // The same on all hosts for NICs of one network; -1: not told.
  int plane = -1;            // Of that network; -1: not told.
  std::vector<int> parts{};  // Of a merged one, in NCCL's numbers.
};

// What start-up found. Immutable afterwards.
struct Startup {
  std::vector<std::unique_ptr<Transport>> transports;  // None: every device refuses.
  std::vector<Device> devices;
  std::string host;  // For poisoned handles.
  // Of all NICs, where NCCL's choices of channels are this library's to make: all hosts' by the
  // same rule, or none's (ChannelTuner).
  std::optional<TransportKind> tuned;
  // NCCL_NCHANNELS_PER_NET_PEER, 0: not set.
  std::uint8_t channels_per_peer = 0;
  // What handles say of this rank; Net fills it in, but for what depends on the device.
  Agreement agreement{};
  // Of the blocking connect of v3 and v4; after it, a waiting accept of any version says so.
  std::chrono::milliseconds connect_timeout{};
};

// NCCL's per-communicator context (v11 and later); older tables share one for the process.
class Context {
 public:
  explicit Context(const CommOptions& wanted) : options(wanted) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const CommOptions options;
};

class Net {
 public:
  // Run at the first init; failure fails that init, and the next one tries again. It is told
  // whether NCCL will ask this library for a tuner.
  using Starter = std::function<Told<Startup>(bool asks_tuner)>;
  // `forgotten_after`: a connect of a table without finalize that NCCL has not asked for so long is
  // one that it gave up, and is closed when the next begins.
  explicit Net(Starter starter,
               std::chrono::milliseconds forgotten_after = std::chrono::minutes(5));

  // v3-v10: once per load. Calling again is harmless.
  Told<void> init(bool asks_tuner = true);
  // v11+: once per communicator.
  Told<Context*> init_context(const CommOptions& options);
  // Closes everything the context still holds. nullptr and unknown contexts are ignored: NCCL
  // finalizes after a failed init too.
  void finalize(Context* context);

  Told<int> device_count();
  Told<const Device*> device(int index);
  // Whose channels this library chooses, if it does. Not before init, though NCCL asks a library
  // for a tuner whose network it did not take.
  std::optional<TransportKind> tuned() const {
    const Startup* const current = startup();
    return current == nullptr ? std::nullopt : current->tuned;
  }
  // One more, whose connections go over all of these. It lasts until NCCL loads the plugin anew.
  // NCCL 2.24 to 2.26 ask for each NIC that they merge with no other, too, and show no NIC then
  // that is none of these; 2.26 asks without end where one is refused. What can't be merged for
  // them is one more each.
  enum class Unmerged : std::uint8_t { kFails, kShownAlone };
  Told<int> merge(std::span<const int> devices, Unmerged unmerged);

  // `context` nullptr: the process's. A device that is not shown, or cannot listen, gives a
  // poisoned handle and a Listening that refuses.
  Told<Listening*> listen(Context* context, int device, HandleBytes handle);
  // Ranks that differ in their Agreement are refused (plugin/agreement.h).
  // nullptr: not yet; call again with the same handle, which remembers the attempt. `options`
  // without a context: v10's connect brings them.
  Told<SendComm*> connect(Context* context, int device, HandleBytes handle,
                          const CommOptions& options = {});
  Told<RecvComm*> accept(Listening* listening);
  // v3 and v4: polls until done or the connect timeout is over.
  Told<SendComm*> connect_blocking(int device, ConstHandleBytes handle);
  // Polls until a peer has come, however late.
  Told<RecvComm*> accept_blocking(Listening* listening);

  // Any of NCCL's three closes: a Listening* or a Comm*. nullptr, and what was closed before, are
  // ignored.
  void close(const void* object);

  // The process ends: tells its peers, lets streams finish, bounded. Everything else is
  // left to the kernel, because NCCL's threads may still be inside.
  void drain();

 private:
  using Object = std::variant<std::unique_ptr<Listening>, SendCommPtr, RecvCommPtr>;
  struct Owned {
    Object object;
    Context* context = nullptr;
    std::optional<std::chrono::steady_clock::time_point> asked{};  // Last; while it connects.
  };

  struct Found {
    const Device* device = nullptr;  // Null: none of that number.
    std::size_t shown = 0;           // How many there are.
  };

  // nullptr before init.
  const Startup* startup() const { return startup_.load(std::memory_order_acquire); }
  Told<const Startup*> started() const;
  Told<void> start(bool asks_tuner);
  Found look_up(const Startup& startup, int index) const;
  Told<const Device*> find_device(const Startup& startup, int index) const;
  static Told<Device> merged(std::span<const Device* const> parts);
  int show(Device device, std::span<const int> parts);
  Context* known(Context* context);
  template <class T, class Closer>
  T* adopt(std::unique_ptr<T, Closer> object, Context* context);
  SendComm* attempt_of(ConstHandleBytes handle);
  void note_attempt(SendComm* comm, bool is_under_way);
  void close_forgotten();
  Listening* listen_on_none(Context* context, int index, std::size_t shown, const std::string& host,
                            HandleBytes handle);
  static Told<SendCommPtr> begin_connect(const Startup& startup, const Device& device,
                                         ConstHandleBytes handle, const CommOptions& options);

  const Starter starter_;
  const std::chrono::milliseconds forgotten_after_;
  std::mutex start_mutex_;
  std::atomic<const Startup*> startup_{nullptr};
  // Kept for good: NCCL borrows device names, and threads of it may linger in an old one.
  std::vector<std::unique_ptr<Startup>> startups_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::unordered_map<const Context*, std::unique_ptr<Context>> contexts_;
  std::unordered_map<const void*, Owned> objects_;
  Context process_context_{CommOptions{}};
  // Kept for good, too; and those of them that NCCL has made since it loaded us, in its order.
  std::deque<Device> merged_;
  std::vector<const Device*> shown_merged_;
  std::chrono::steady_clock::time_point next_look_at_forgotten_{};
  bool is_fresh_ = false;  // NCCL has asked for nothing since its first communicator.
};

// The process's only one. Never destroyed. Defined by the plugin (instance.cc) and by tests.
Net& net();

}  // namespace ztcp::plugin
