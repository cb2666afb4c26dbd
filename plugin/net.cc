// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/net.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "core/process_mark.h"
#include "plugin/channel_tuner.h"
#include "plugin/peer_check.h"
#include "plugin/statistics_page.h"

namespace ztcp::plugin {
namespace {

constexpr std::chrono::microseconds kBlockingPollInterval{50};

// Overloads give the pointer type behind NCCL's void*: its three closes, and regMr, do not tell
// which object they get.
Listening* nccls_pointer(Listening* listening) { return listening; }
Comm* nccls_pointer(Comm* comm) { return comm; }

// Tells the data that plugin/ keeps beside a comm that NCCL closes it.
void tell_attachment(const std::unique_ptr<Listening>&) {}
template <class Closed, class Closer>
void tell_attachment(const std::unique_ptr<Closed, Closer>& comm) {
  if (const auto& attachment = comm->attachment()) attachment->on_close();
}

// Calls `attempt` until it yields a comm or fails, or until `has_waited_enough`.
template <class Attempt, class Enough>
auto poll_until_connected(Attempt&& attempt, Enough&& has_waited_enough) -> decltype(attempt()) {
  for (;;) {
    auto comm = attempt();
    if (!comm || *comm != nullptr || has_waited_enough()) return comm;
    std::this_thread::sleep_for(kBlockingPollInterval);
  }
}

// A handle names the transport only. Merged NICs always have that of RDMA, also where they are TCP
// NICs.
const char* listens_with(TransportKind kind) {
  return kind == TransportKind::kVerbs ? "RDMA verbs or merged NICs" : to_string(kind);
}

// The values that hold for all devices of this rank.
Agreement agreement_of(const Startup& startup) {
  Agreement out;
  if (startup.tuned) {
    out.tuner = static_cast<std::uint8_t>(*startup.tuned);
    out.tuner_rule = ChannelTuner::kRule;
  }
  out.channels_per_peer = startup.channels_per_peer;
  const auto& devices = startup.devices;
  out.devices = static_cast<std::uint16_t>(devices.size());
  for (auto it = devices.begin(); it != devices.end(); ++it) {
    out.speed_mbps += it->properties.speed_mbps;
    const bool is_shown_before =
        it->transport != nullptr && std::any_of(devices.begin(), it, [&](const Device& earlier) {
          return earlier.transport == it->transport && earlier.number == it->number;
        });
    if (!is_shown_before) ++out.nics;
  }
  return out;
}

Issuer issuer_for(const Startup& startup, const Device& device) {
  Issuer issuer{startup.agreement, startup.host};
  issuer.agreement.max_receives = static_cast<std::uint8_t>(device.properties.max_receives);
  return issuer;
}

}  // namespace

Net::Net(Starter starter, std::chrono::milliseconds forgotten_after)
    : starter_(std::move(starter)), forgotten_after_(forgotten_after) {}

Told<void> Net::start(bool asks_tuner) {
  const std::lock_guard lock(start_mutex_);
  if (startup() != nullptr) return {};
  mark_process();
  Told<Startup> found = starter_(asks_tuner);
  if (!found) return pass_on(found.error());
  startups_.push_back(std::make_unique<Startup>(std::move(*found)));
  startups_.back()->agreement = agreement_of(*startups_.back());
  startup_.store(startups_.back().get(), std::memory_order_release);
  return {};
}

Told<void> Net::init(bool asks_tuner) {
  if (const auto outcome = start(asks_tuner); !outcome) return pass_on(outcome.error());
  const std::lock_guard lock(mutex_);
  is_fresh_ = true;
  return {};
}

Told<Context*> Net::init_context(const CommOptions& options) {
  if (const auto outcome = start(/*asks_tuner=*/true); !outcome) return pass_on(outcome.error());
  auto context = std::make_unique<Context>(options);
  Context* const raw = context.get();
  const std::lock_guard lock(mutex_);
  if (contexts_.empty()) is_fresh_ = true;
  contexts_.emplace(raw, std::move(context));
  return raw;
}

void Net::finalize(Context* context) {
  if (const std::optional<std::uint64_t> communicator = end_context(context))
    report_stragglers(*communicator);
}

std::optional<std::uint64_t> Net::end_context(Context* context) {
  std::vector<Object> reaped;  // Destroyed after the lock is released.
  const std::lock_guard start_lock(start_mutex_);
  const std::lock_guard lock(mutex_);
  const auto ended = contexts_.extract(context);
  if (ended.empty()) return std::nullopt;
  for (auto it = objects_.begin(); it != objects_.end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    reaped.push_back(std::move(it->second.object));
    it = objects_.erase(it);
  }
  // A start-up that refuses is repeated by the next communicator: the operator may have fixed the
  // config. A working one stays: its NICs and threads belong to the process.
  const Startup* const current = startup();
  if (contexts_.empty() && current != nullptr && current->transports.empty())
    startup_.store(nullptr, std::memory_order_release);
  return ended.mapped()->options.communicator;
}

Told<const Startup*> Net::started() const {
  if (const Startup* const current = startup()) return current;
  return report(Errc::kInvalidArgument, "called before a successful init");
}

// NCCL keeps the numbers of merged devices while it keeps the plugin loaded, and starts anew when
// it loads it again; the plugin's memory stays either way. Only after a new load does NCCL ask for
// the count first.
Told<int> Net::device_count() {
  const auto current = started();
  if (!current) return pass_on(current.error());
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_fresh_, false)) shown_merged_.clear();
  return static_cast<int>((*current)->devices.size() + shown_merged_.size());
}

Net::Found Net::look_up(const Startup& startup, int index) const {
  const auto& devices = startup.devices;
  const auto number = static_cast<std::size_t>(index);
  if (index >= 0 && number < devices.size()) return {&devices[number], devices.size()};
  const std::lock_guard lock(mutex_);
  const std::size_t all = devices.size() + shown_merged_.size();
  if (index < 0 || number >= all) return {nullptr, all};
  return {shown_merged_[number - devices.size()], all};
}

Told<const Device*> Net::find_device(const Startup& startup, int index) const {
  const Found found = look_up(startup, index);
  if (found.device != nullptr) return found.device;
  return report(Errc::kInvalidArgument, "no device {}: there are {}", index, found.shown);
}

Told<const Device*> Net::device(int index) {
  const auto current = started();
  if (!current) return pass_on(current.error());
  {
    const std::lock_guard lock(mutex_);
    is_fresh_ = false;
  }
  return find_device(**current, index);
}

Context* Net::known(Context* context) {
  return contexts_.contains(context) ? context : &process_context_;
}

template <class T, class Closer>
T* Net::adopt(std::unique_ptr<T, Closer> object, Context* context) {
  T* const raw = object.get();
  const std::lock_guard lock(mutex_);
  objects_[nccls_pointer(raw)] = Owned{std::move(object), known(context)};
  return raw;
}

// NCCL asks this process for devices that another rank of the host has counted, so the differing
// count is reported at both ends; a failing listen() would leave the other ranks waiting.
Listening* Net::listen_on_none(Context* context, int index, std::size_t shown,
                               const std::string& host, HandleBytes handle) {
  constexpr int kLast = std::numeric_limits<std::int16_t>::max();
  const Poison::Unshown unshown{.device = static_cast<std::int16_t>(std::clamp(index, -1, kLast)),
                                .shown = static_cast<std::uint16_t>(shown)};
  encode_handle(Poison{Errc::kNoDevice, host, unshown}, handle);
  std::string refusal = explain_unshown(index, shown);
  log::warn("cannot listen: {}", refusal);
  return adopt(std::make_unique<Listening>(Errc::kNoDevice, std::move(refusal),
                                           fmt::format("NCCL device {}", index)),
               context);
}

// Only a watch needs more bytes than a short handle has (core/listen_address.h).
void Net::tell_short_handle(const std::string& device) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_told_short_, true)) return;
  }
  log::info(
      "{}: peers notice the death of this process by its silence alone: NCCL's tables v3 and v4 "
      "have handles without room for the IPv6 address of the watch; name an interface with an IPv4 "
      "address in watch_interface",
      device);
}

Told<Listening*> Net::listen(Context* context, int index, HandleBytes handle) {
  const auto current = started();
  if (!current) return pass_on(current.error());
  const Found found = look_up(**current, index);
  const std::string& host = (*current)->host;
  if (found.device == nullptr) return listen_on_none(context, index, found.shown, host, handle);
  const Device& device = *found.device;
  const std::string& name = device.properties.name;

  if (device.transport == nullptr) {
    encode_handle(Poison{Errc::kBadConfig, host}, handle);
    return adopt(std::make_unique<Listening>(Errc::kBadConfig, device.refusal, name), context);
  }
  CommOptions options;
  {
    const std::lock_guard lock(mutex_);
    options = known(context)->options;
  }
  Result<std::unique_ptr<Listener>> listener = device.transport->listen(device.number, options);
  if (!listener) {
    // A failing listen() would leave the other ranks in NCCL's bootstrap for ever, so the failure
    // travels in the handle: accept() here and connect() there report it.
    const Error error = listener.error();
    std::string refusal = fmt::format("cannot listen on {}: {}", name, explain(error));
    log::warn("{}", refusal);
    encode_handle(Poison{error.code, host}, handle);
    return adopt(std::make_unique<Listening>(error.code, std::move(refusal), name), context);
  }
  if (!encode_handle((*listener)->handle(), handle)) tell_short_handle(name);
  set_issuer(issuer_for(**current, device), handle);
  return adopt(std::make_unique<Listening>(std::move(*listener), name, (*current)->connect_timeout),
               context);
}

Told<SendCommPtr> Net::begin_connect(const Startup& startup, const Device& device,
                                     ConstHandleBytes handle, const CommOptions& options) {
  const Told<PeerHandle> peer = read_peer(handle);
  if (!peer) return pass_on(peer.error());
  const std::string& name = device.properties.name;
  if (device.transport == nullptr)
    return report(Errc::kBadConfig, "connecting from {} failed: {}", name, device.refusal);
  if (!can_connect(device.transport->kind(), peer->kind)) {
    const auto& all = startup.transports;
    const bool is_here =
        std::ranges::any_of(all, [&](const auto& one) { return one->kind() == peer->kind; });
    return report(Errc::kProtocol,
                  "connecting from {} failed: it carries {}, the peer listens with {}{}; NCCL "
                  "pairs the NICs of two hosts by their order: give both hosts' ztcp.conf NICs of "
                  "the same drivers in the same order",
                  name, device.transport->carrier(device.number), listens_with(peer->kind),
                  is_here ? "" : ", which no NIC of this host carries");
  }
  Result<SendCommPtr> comm = device.transport->begin_connect(device.number, *peer, options);
  if (!comm)
    return report(comm.error().code, "connecting from {} failed: {}", name, explain(comm.error()));
  // Checked last: an earlier error may be one that no setting removes.
  const Told<void> agreed = check_agreement(name, issuer_for(startup, device), issuer_of(handle));
  if (!agreed) return pass_on(agreed.error());
  return std::move(*comm);
}

// The attempt in progress, if the handle names one that still exists.
SendComm* Net::attempt_of(ConstHandleBytes handle) {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(connect_state(handle));
  if (it == objects_.end()) return nullptr;
  const auto* sender = std::get_if<SendCommPtr>(&it->second.object);
  return sender == nullptr ? nullptr : sender->get();
}

void Net::note_attempt(SendComm* comm, bool is_under_way) {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(nccls_pointer(comm));
  if (it == objects_.end()) return;
  it->second.asked.reset();
  if (is_under_way) it->second.asked = std::chrono::steady_clock::now();
}

// NCCL stops calling connect when a communicator is aborted. From v11 on finalize() follows;
// before, the descriptor and the memory of each such attempt would be leaked. A handle that is used
// again later begins a new attempt.
void Net::close_forgotten() {
  std::vector<decltype(objects_)::node_type> closed;  // End here, outside the lock.
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  // Not at every connect: scanning all objects takes longer than beginning an attempt.
  if (now < next_check_of_forgotten_) return;
  next_check_of_forgotten_ = now + forgotten_after_ / 16;
  const auto before = now - forgotten_after_;
  for (auto it = objects_.begin(); it != objects_.end();) {
    const auto next = std::next(it);
    const Owned& owned = it->second;
    if (owned.context == &process_context_ && owned.asked && *owned.asked < before)
      closed.push_back(objects_.extract(it));
    it = next;
  }
}

Told<SendComm*> Net::connect(Context* context, int index, HandleBytes handle,
                             const CommOptions& options) {
  const auto current = started();
  if (!current) return pass_on(current.error());

  SendComm* comm = attempt_of(handle);
  CommOptions wanted = options;
  if (context != nullptr) {
    const std::lock_guard lock(mutex_);
    wanted = known(context)->options;
  }
  if (comm == nullptr) {
    const Found device = look_up(**current, index);
    if (device.device == nullptr)
      return report(Errc::kInvalidArgument, "cannot connect: {}",
                    explain_unshown(index, device.shown));
    close_forgotten();
    auto begun = begin_connect(**current, *device.device, handle, wanted);
    if (!begun) return pass_on(begun.error());
    comm = adopt(std::move(*begun), context);
    set_connect_state(handle, nccls_pointer(comm));
  }

  const Result<bool> ready = comm->is_ready();
  note_attempt(comm, ready && !*ready);
  if (ready && !*ready) return nullptr;
  set_connect_state(handle, nullptr);
  if (ready) return comm;
  close(nccls_pointer(comm));
  return pass_on(ready.error());
}

Told<RecvComm*> Net::accept(Listening* listening) {
  Told<RecvCommPtr> accepted = listening->accept();
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

Told<SendComm*> Net::connect_blocking(int device, ConstHandleBytes handle) {
  const auto current = started();
  if (!current) return pass_on(current.error());
  // The caller's handle is too short for the attempt's state.
  std::array<std::byte, kHandleBytes> copy = widen(handle);
  const auto timeout = (*current)->connect_timeout;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto comm =
      poll_until_connected([&] { return connect(nullptr, device, copy); },
                           [&] { return std::chrono::steady_clock::now() >= deadline; });
  if (!comm || *comm != nullptr) return comm;
  SendComm* const attempt = attempt_of(copy);
  const std::string peer = attempt != nullptr ? attempt->describe_peer() : "the peer";
  close(connect_state(copy));  // NCCL will not ask again.
  return report(Errc::kTimedOut, "connecting to {} took longer than {} ms; is it alive?", peer,
                timeout.count());
}

Told<RecvComm*> Net::accept_blocking(Listening* listening) {
  if (const auto current = started(); !current) return pass_on(current.error());
  // No timeout, as in NCCL's own networks: a peer may connect minutes later, when it has loaded its
  // data. Listening warns once that no peer has connected; only the loss of the NIC ends the wait.
  return poll_until_connected([&] { return accept(listening); }, [] { return false; });
}

void Net::close(const void* object) {
  decltype(objects_)::node_type closed;  // Ends here, outside the lock.
  {
    const std::lock_guard lock(mutex_);
    closed = objects_.extract(object);
  }
  if (closed.empty()) return;
  std::visit([](const auto& owner) { tell_attachment(owner); }, closed.mapped().object);
}

void Net::drain() {
  const Startup* const current = startup();
  if (current == nullptr) return;
  for (const auto& transport : current->transports) {
    try {
      transport->drain();
    } catch (const std::exception&) {  // The process is ending: no log is left to report to.
    }
  }
}

}  // namespace ztcp::plugin
