// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The thread's loop, and the calls that NCCL's threads make. The control connections are served in
// control_connections.cc and control_exchange.cc.
#include "transport/verbs/control_thread.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/sockios.h>
#include <new>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <utility>

#include "core/log.h"
#include "core/own_thread.h"
#include "core/process_mark.h"
#include "transport/sockets/kernel/advice.h"

namespace ztcp::verbs {
namespace {

constexpr std::size_t kEventsAtOnce = 64;
// A send buffer of any kernel holds this much, about forty notes, and a close record behind it.
constexpr int kMostUnheardBytes = 24 * 1024;

int unheard_bytes(const Fd& fd) {
  int out = 0;
  return ioctl(fd.get(), SIOCOUTQ, &out) == 0 ? out : 0;
}

}  // namespace

bool ControlConnection::send(std::span<const std::byte> bytes) {
  const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return true;
  // Half a record would corrupt the records behind it.
  if (sent >= 0 || errno == EAGAIN) {
    is_cut = true;
    shutdown(fd.get(), SHUT_RDWR);
  }
  return false;
}

// A path over a link that is down is ended before its send buffer is full, so that the close record
// still fits, and the peer learns that the process has not ended.
bool ControlConnection::has_room() const {
  return is_cut || unheard_bytes(fd) <= kMostUnheardBytes;
}

void ControlConnection::close_path() {
  const CloseRecord record =
      make_close_record(CloseRecord::kThisPath, "it gives up this path alone");
  (void)::send(fd.get(), &record, sizeof record, MSG_NOSIGNAL);
  is_cut = true;
  // Records that the peer still sends are read until it closes its end: the kernel answers unread
  // bytes with a reset, which would overtake the close record.
  shutdown(fd.get(), SHUT_WR);
}

ControlThread::~ControlThread() {
  if (!thread_.joinable()) return;
  if (in_forked_child()) {
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  if (manager_ == nullptr) return;
  controls_.clear();
  manager_->stop();
}

Status ControlThread::start() {
  if (thread_.joinable()) return {};
  mark_process();
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail_errno("epoll_create1");
  wake_fd_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd_) return fail_errno("eventfd");
  if (!watch(wake_fd_.get(), EPOLLIN, {Watched::kWake, nullptr})) return fail_errno("epoll_ctl");
  thread_ = ZTCP_TRY(start_thread("ztcp-verbs", [this] { run(); }));
  return {};
}

void ControlThread::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd_.get(), &one, sizeof one);
}

bool ControlThread::watch(int fd, std::uint32_t events, Watch to) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  watches_[fd] = to;
  return true;
}

void ControlThread::unwatch(int fd) {
  watches_.erase(fd);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void ControlThread::forget(ControlConnection& control) {
  if (!control.fd) return;
  // A forked child before its exec() also has the descriptor, and epoll would go on reporting it.
  unwatch(control.fd.get());
  control.fd = Fd();
}

ControlConnection& ControlThread::add_control(std::unique_ptr<ControlConnection> control) {
  ControlConnection& added = *controls_.emplace_back(std::move(control));
  if (pages_due_ == kNever) refresh_soon();
  if (added.connection) control_of_[added.connection.get()] = &added;
  return added;
}

// There is no memory for the connection, or for a message about it.
void ControlThread::drop(ControlConnection& control) {
  if (control.is_path()) {
    control.close_path();
    return detach_path(control);
  }
  const bool is_ready = control.state == ControlConnection::State::kOpen ||
                        control.state == ControlConnection::State::kLeaving;
  if (control.connection && !is_ready)
    control.connection->fail({Errc::kOutOfMemory, ENOMEM, "exchange"});
  if (!is_ready) control.state = ControlConnection::State::kGone;
}

TimePoint ControlThread::next_deadline() const {
  TimePoint next = resting_.empty() ? pages_due_ : std::min(pages_due_, rest_ends_);
  for (const auto& control : controls_)
    next = std::min(
        {next, control->deadline, control->dial_due, control->rails_due, control->routes_due()});
  return next;
}

void ControlThread::run() {
  std::array<epoll_event, kEventsAtOnce> events;
  while (true) {
    int timeout_ms = -1;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      const TimePoint next = hellos_.empty() ? next_deadline() : TimePoint();
      if (next != kNever) {
        using std::chrono::milliseconds;
        const auto left = std::chrono::ceil<milliseconds>(next - clock_now());
        timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
      }
    }
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, timeout_ms);
    std::unique_lock lock(mutex_);
    const TimePoint now = clock_now();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto found = watches_.find(event.data.fd);
      if (found == watches_.end()) continue;
      const Watch watch = found->second;
      try {
        handle(watch, event.events, now);
      } catch (const std::bad_alloc&) {
        if (watch.kind == Watched::kControl) drop(*static_cast<ControlConnection*>(watch.of));
      }
    }
    sweep(now);
    if (!hellos_.empty()) answer_next(lock);
    write_log(lock);
  }
}

void ControlThread::handle(const Watch& watch, std::uint32_t events, TimePoint now) {
  switch (watch.kind) {
    case Watched::kWake: {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = read(wake_fd_.get(), &count, sizeof count);
      return check_cm_connections();
    }
    case Watched::kListener:
      return on_listener(*static_cast<Rail*>(watch.of), now);
    case Watched::kControl:
      return on_readable(*static_cast<ControlConnection*>(watch.of), events);
    case Watched::kDevice:
      return on_device(*static_cast<OpenDevice*>(watch.of));
  }
}

Status ControlThread::add_rails(const RailSet& rails) {
  ZTCP_CHECK(start());
  for (const auto& rail : rails.rails) ZTCP_CHECK(add_rail(rail));
  list_on_page(rails);
  return {};
}

Status ControlThread::add_rail(const std::shared_ptr<Rail>& rail) {
  if (std::find(rails_.begin(), rails_.end(), rail) != rails_.end()) return {};
  if (rail->device.is_tcp || !rail->is_usable()) {
    rails_.push_back(rail);
    return {};
  }
  if (rail->device.is_iwarp) ZTCP_CHECK(add_manager(*rail));
  OpenDevice& device = *rail->device.opened;
  const bool is_watched = std::any_of(rails_.begin(), rails_.end(), [&](const auto& other) {
    return other->device.opened.get() == &device;
  });
  if (!is_watched) {
    const int fd = device.context->async_fd;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (!watch(fd, EPOLLIN, {Watched::kDevice, &device})) return fail_errno("epoll_ctl");
  }
  rails_.push_back(rail);
  return {};
}

Status ControlThread::add_manager(Rail& rail) {
  if (manager_ == nullptr)
    manager_ = ZTCP_TRY(ConnectionManager::start(*rail.device.opened->manager,
                                                 Fd(fcntl(wake_fd_.get(), F_DUPFD_CLOEXEC, 0))));
  rail.iwarp_port = ZTCP_TRY(manager_->listen(rail.device));
  return {};
}

Result<Endpoint> ControlThread::listen(const RailSet& rails) {
  const std::lock_guard lock(mutex_);
  ZTCP_CHECK(add_rails(rails));
  for (const auto& rail : rails.rails) {
    if (rail.get() == &rails.first() || !rail->is_usable()) continue;
    // Rails of RDMA may share an address, of the hosts' management network: then one path serves
    // all.
    const bool is_own = rail->device.exchange.address != rails.first().device.exchange.address;
    if (!is_own && !rail->device.is_tcp) continue;
    // Without the listener, connections do without this rail or path.
    if (const Status opened = open_listener(*rail);
        !opened && !std::exchange(rail->is_said_to_be_deaf, true))
      log::warn(
          "{}: no connection has a {} over {}: can't listen on {} ({}): {}: {}{}", rails.name,
          rail->device.is_tcp ? "rail" : "path for notes about rails", rail->device.place(),
          to_string(rail->device.exchange.address), rail->device.exchange.interface,
          opened.error().where, std::strerror(opened.error().sys_errno),
          sockets::listen_advice(opened.error(), rail->device.exchange, settings_.config_path));
  }
  const Status opened = open_listener(rails.first());
  // If the NIC of the first rail is down, peers are asked to dial another one.
  for (const auto& rail : rails.rails)
    if (rail->listening && rail->is_healthy()) return rail->listening->endpoint;
  if (!opened) return tl::unexpected(opened.error());
  return rails.first().listening->endpoint;
}

Status ControlThread::open_listener(Rail& rail) {
  if (rail.listening) return {};
  rail.listening = ZTCP_TRY(sockets::open_listener(rail.device.exchange));
  if (watch(rail.listening->fd.get(), EPOLLIN, {Watched::kListener, &rail})) return {};
  const int error = errno;
  rail.listening.reset();
  return fail(Errc::kSystem, "epoll_ctl", error);
}

void ControlThread::add_listener(const Cookie& cookie, std::shared_ptr<Arrivals> arrivals) {
  const std::lock_guard lock(mutex_);
  listeners_[cookie] = std::move(arrivals);
}

void ControlThread::remove_listener(const Cookie& cookie) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(cookie);
  if (found == listeners_.end()) return;
  for (const auto& connection : found->second->ready)
    leave(connection, static_cast<std::uint8_t>(Errc::kRefused), "the listener was closed");
  listeners_.erase(found);
  wake();
}

std::shared_ptr<Connection> ControlThread::accept(Arrivals& arrivals) {
  const std::lock_guard lock(mutex_);
  if (arrivals.ready.empty()) return nullptr;
  auto connection = std::move(arrivals.ready.front());
  arrivals.ready.pop_front();
  return connection;
}

Status ControlThread::dial(std::shared_ptr<Connection> connection, Endpoint remote,
                           const Cookie& cookie, std::uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  ZTCP_CHECK(add_rails(connection->rails()));
  const TimePoint now = clock_now();
  auto control = std::make_unique<ControlConnection>(
      Fd(), remote, ControlConnection::State::kDialling, now + settings_.connect_timeout);
  control->over = &connection->rails().first();
  control->connection = std::move(connection);
  control->cookie = cookie;
  ControlConnection& added = add_control(std::move(control));
  open_report(added, communicator);
  if (const Status dialled = dial_once(added, now);
      !dialled && !dials_again(added, dialled.error())) {
    added.state = ControlConnection::State::kGone;
    return dialled;
  }
  wake();  // The next deadline may have changed.
  return {};
}

void ControlThread::leave(const std::shared_ptr<Connection>& connection, std::uint8_t code,
                          std::string_view why) {
  const auto found = control_of_.find(connection.get());
  if (found == control_of_.end()) return;
  ControlConnection& control = *found->second;
  if (ConnectionReport* const report = connection->report()) report->note_closed();
  const bool was_open = control.is_heard();
  if (was_open) control.send_close(code, why);
  if (control.state == ControlConnection::State::kOpen) connection->rails().first().ends.closed();
  // The peer may still lack acknowledgements of our NIC.
  control.state = was_open ? ControlConnection::State::kLeaving : ControlConnection::State::kGone;
  control.deadline = clock_now() + settings_.drain_timeout;
}

void ControlThread::close(const std::shared_ptr<Connection>& connection, std::uint8_t code,
                          std::string_view why) {
  const std::lock_guard lock(mutex_);
  leave(connection, code, why);
  wake();
}

void ControlThread::tell(const std::shared_ptr<Connection>& connection, Errc code,
                         std::string_view why) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = control_of_.find(connection.get());
  if (found == control_of_.end() || connection->peer_status().is_unreachable()) return;
  found->second->send_close(static_cast<std::uint8_t>(code), why);
}

void ControlThread::send_notes(const std::shared_ptr<Connection>& connection) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = control_of_.find(connection.get());
  if (found == control_of_.end() || !found->second->is_heard()) return;
  const auto its = connection->lock();
  send_notes(*found->second);
  wake();  // The next deadline may have changed.
}

// Other threads may have stopped anywhere, even while they hold the lock: every wait is bounded.
void ControlThread::drain() {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000};
  const TimePoint ends = clock_now() + settings_.drain_timeout;
  bool has_told = false;
  for (; clock_now() < ends; nanosleep(&kPause, nullptr)) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    if (!std::exchange(has_told, true))
      for (const auto& control : controls_)
        if (control->is_heard())
          control->send_close(static_cast<std::uint8_t>(Errc::kPeerClosed), "its process ended");
    if (std::none_of(controls_.begin(), controls_.end(), [](const auto& control) {
          return control->state == ControlConnection::State::kLeaving;
        }))
      return;
  }
}

Nonce ControlThread::fresh_nonce() {
  Nonce nonce{};
  // Without a nonce from the kernel, the proofs are as strong as the cookie.
  [[maybe_unused]] const auto got = getrandom(nonce.data(), nonce.size(), GRND_NONBLOCK);
  return nonce;
}

}  // namespace ztcp::verbs
