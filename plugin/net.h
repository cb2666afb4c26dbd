// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The version-free core of the plugin, which all tables call. Starts the transports at the first
// init, lists their devices, dispatches each listen and connect to its device's transport, if that
// transport can reach the peer, and owns every listener and comm that NCCL holds, so that those
// NCCL forgets (it leaks half-open ones) are reaped with their communicator. NCCL's sendComm and
// recvComm are the transport's objects themselves: posting and testing do not pass through here.
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
#include "plugin/collnet_sizes.h"
#include "plugin/handle.h"
#include "plugin/listening.h"
#include "plugin/report.h"
#include "transport/reduce/segment.h"
#include "transport/transport.h"

namespace ztcp::plugin {

// A device as NCCL numbers them from 0 up: one device of a transport, or several merged into one.
struct Device {
  DeviceProperties properties;
  Transport* transport = nullptr;  // Null when refusing.
  int number = 0;                  // The transport's number for it.
  // Set for a device that the config promises but that cannot be used: connections over it fail
  // with this text, and NCCL is still shown the device, so that jobs inside one host run on. Empty:
  // usable.
  std::string refusal;
  int rail = -1;             // Equal on all hosts for NICs of one network; -1: unknown.
  int plane = -1;            // The plane within that network; -1: unknown.
  std::vector<int> parts{};  // Parts of a merged device, as NCCL's numbers.
};

// NCCL's CollNet over the same devices.
struct CollnetSettings {
  bool is_on = false;
  reduce::Wire wire = reduce::Wire::kAsIs;
  std::size_t workers = 0;       // Each group has so many.
  std::uint32_t speed_mbps = 0;  // The sum over the host's NICs, as NCCL is told them.
  CollnetRows sizes = 0;         // The tuner offers CollNet for these.
};

// The result of start-up. Immutable afterwards.
struct Startup {
  std::vector<std::unique_ptr<Transport>> transports;  // Empty: every device refuses.
  std::vector<Device> devices;
  std::string host;  // For poisoned handles.
  // The transport of all NICs, where this library chooses NCCL's channels. All hosts choose by the
  // same rule, or none does (ChannelTuner).
  std::optional<TransportKind> tuned;
  // NCCL_NCHANNELS_PER_NET_PEER; 0: not set.
  std::uint8_t channels_per_peer = 0;
  CollnetSettings collnet;
  // This rank's values for its handles. Net fills them in, except those that depend on the device.
  Agreement agreement{};
  // Limits the blocking connect of v3 and v4; after this time a waiting accept of any version
  // warns.
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
  // Runs at the first init; a failure fails that init, and the next one tries again. `asks_tuner`:
  // NCCL will ask this library for a tuner.
  using Starter = std::function<Told<Startup>(bool asks_tuner)>;
  // `forgotten_after`: a connect of a table without finalize counts as given up when NCCL has not
  // asked for it for this long, and is closed when the next connect begins.
  explicit Net(Starter starter,
               std::chrono::milliseconds forgotten_after = std::chrono::minutes(5));

  // v3-v10: once per load. A repeated call is harmless.
  Told<void> init(bool asks_tuner = true);
  // v11+: once per communicator.
  Told<Context*> init_context(const CommOptions& options);
  // Closes everything the context still holds. nullptr and unknown contexts are ignored: NCCL also
  // finalizes after a failed init.
  void finalize(Context* context);

  // The same without a line about the communicator. Returns the communicator's number; nothing: no
  // such context.
  std::optional<std::uint64_t> end_context(Context* context);

  Told<const Startup*> started() const;
  Told<int> device_count();
  Told<const Device*> device(int index);
  // The transport that chooses NCCL's channels; empty: NCCL chooses. Empty before init: NCCL
  // asks for a tuner even where it did not take this library's network.
  std::optional<TransportKind> tuned() const {
    const Startup* const current = startup();
    return current == nullptr ? std::nullopt : current->tuned;
  }
  // Switched off before init.
  CollnetSettings collnet() const {
    const Startup* const current = startup();
    return current == nullptr ? CollnetSettings{} : current->collnet;
  }
  // Adds a device whose connections go over all of `devices`. It lasts until NCCL loads the plugin
  // anew. NCCL 2.24 to 2.26 also call this for each NIC that they merge with no other, and then
  // show no NIC that is not among the results; 2.26 repeats the call without end after a failure.
  // For these, kShownAlone adds each NIC that cannot be merged as a device of its own.
  enum class Unmerged : std::uint8_t { kFails, kShownAlone };
  Told<int> merge(std::span<const int> devices, Unmerged unmerged);

  // `context` nullptr: the process's. A device that does not exist, or cannot listen, gives a
  // poisoned handle and a Listening that refuses.
  Told<Listening*> listen(Context* context, int device, HandleBytes handle);
  // Refuses ranks that differ in their Agreement (plugin/agreement.h). nullptr: not connected yet;
  // call again with the same handle, which remembers the attempt. `options` are used without a
  // context: v10 passes them to connect.
  Told<SendComm*> connect(Context* context, int device, HandleBytes handle,
                          const CommOptions& options = {});
  Told<RecvComm*> accept(Listening* listening);
  // v3 and v4: polls until connected or until the connect timeout.
  Told<SendComm*> connect_blocking(int device, ConstHandleBytes handle);
  // Polls until a peer connects, without a timeout.
  Told<RecvComm*> accept_blocking(Listening* listening);

  // Implements NCCL's three closes: takes a Listening* or a Comm*. nullptr and objects closed
  // before are ignored.
  void close(const void* object);

  // Called when the process ends: tells the peers, and lets streams finish within a time limit. All
  // else is left to the kernel, because NCCL's threads may still be inside the plugin.
  void drain();

 private:
  using Object = std::variant<std::unique_ptr<Listening>, SendCommPtr, RecvCommPtr>;
  struct Owned {
    Object object;
    Context* context = nullptr;
    std::optional<std::chrono::steady_clock::time_point> asked{};  // Last call; while it connects.
  };

  struct Found {
    const Device* device = nullptr;  // Null: no such device.
    std::size_t shown = 0;           // Number of devices.
  };

  // nullptr before init.
  const Startup* startup() const { return startup_.load(std::memory_order_acquire); }
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
  void tell_short_handle(const std::string& device);
  Listening* listen_on_none(Context* context, int index, std::size_t shown, const std::string& host,
                            HandleBytes handle);
  static Told<SendCommPtr> begin_connect(const Startup& startup, const Device& device,
                                         ConstHandleBytes handle, const CommOptions& options);

  const Starter starter_;
  const std::chrono::milliseconds forgotten_after_;
  std::mutex start_mutex_;
  std::atomic<const Startup*> startup_{nullptr};
  // Never freed: NCCL borrows device names, and its threads may linger in an old one.
  std::vector<std::unique_ptr<Startup>> startups_;

  mutable std::mutex mutex_;  // Guards the members below.
  std::unordered_map<const Context*, std::unique_ptr<Context>> contexts_;
  std::unordered_map<const void*, Owned> objects_;
  Context process_context_{CommOptions{}};
  bool has_told_short_ = false;
  // Never freed, either. shown_merged_ lists those made since NCCL loaded the plugin, in order.
  std::deque<Device> merged_;
  std::vector<const Device*> shown_merged_;
  std::chrono::steady_clock::time_point next_check_of_forgotten_{};
  bool is_fresh_ = false;  // NCCL has made no call since its first communicator.
};

// The process's only instance. Never destroyed. Defined by the plugin (instance.cc) and by tests.
Net& net();

}  // namespace ztcp::plugin
