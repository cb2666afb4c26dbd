// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/capture_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/log.h"
#include "core/own_thread.h"
#include "core/process_mark.h"

namespace ztcp::ustack {
namespace {

constexpr Duration kAcceptPause = std::chrono::seconds(1);
// Processes of several containers may share a run directory and have the same pid.
constexpr int kNames = 16;

TimePoint read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return fail(Errc::kSystem, "bind", ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  return address;
}

// Whether `path` is a socket of this user that no process serves.
bool is_stale(const std::string& path, const sockaddr_un& address) {
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode) || file.st_uid != geteuid())
    return false;
  const Fd probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe &&
         connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

Result<Fd> listen_at(const std::string& path) {
  const sockaddr_un address = ZTCP_TRY(address_of(path));
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno("socket");
  // bind() gives the file the mode of the socket, less the umask, which other threads share.
  if (fchmod(fd.get(), 0600) != 0) return fail_errno("fchmod");
  const auto try_to_bind = [&] {
    return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  };
  if (!try_to_bind()) {
    if (errno != EADDRINUSE) return fail_errno("bind");
    if (!is_stale(path, address)) return fail(Errc::kBusy, "bind", EADDRINUSE);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("unlink");
    if (!try_to_bind())
      return fail(errno == EADDRINUSE ? Errc::kBusy : Errc::kSystem, "bind", errno);
  }
  if (listen(fd.get(), 4) == 0) return fd;
  const auto failed = fail_errno("listen");
  unlink(path.c_str());
  return failed;
}

bool may_capture(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

// `fds`: none, or the two of a capture. A program that does not read its answer gets none.
void send_answer(int socket, stats::CaptureAnswer answer, std::span<const int> fds) {
  iovec data{.iov_base = &answer, .iov_len = sizeof(answer)};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  [[maybe_unused]] const ssize_t sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

stats::CaptureAnswer refusal(stats::CaptureStatus status, int sys_errno = 0) {
  stats::CaptureAnswer answer;
  answer.status = status;
  answer.sys_errno = sys_errno;
  return answer;
}

// For a connection whose request is not read: unread, it would reset the connection at the close,
// and the program would not get the answer.
void turn_away(int socket, stats::CaptureStatus status) {
  shutdown(socket, SHUT_RD);
  std::array<std::byte, 256> unread{};
  while (recv(socket, unread.data(), unread.size(), MSG_DONTWAIT) > 0) {
  }
  send_answer(socket, refusal(status), {});
}

}  // namespace

Result<std::unique_ptr<CaptureServer>> CaptureServer::start(const std::string& run_dir) {
  std::string path;
  Result<Fd> listener = fail(Errc::kBusy, "bind", EADDRINUSE);
  for (int name = 0; name < kNames && !listener && listener.error().code == Errc::kBusy; ++name) {
    path = fmt::format("{}/capture-{}{}.sock", run_dir, getpid(),
                       name == 0 ? "" : fmt::format("-{}", name));
    listener = listen_at(path);
  }
  if (!listener) return tl::unexpected(listener.error());
  Fd wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake) {
    const auto failed = fail_errno("eventfd");
    unlink(path.c_str());
    return failed;
  }
  std::unique_ptr<CaptureServer> server(
      new CaptureServer(std::move(path), std::move(*listener), std::move(wake)));
  server->clients_.reserve(kMostClients);
  server->thread_ = ZTCP_TRY(start_thread("ztcp-capture", [raw = server.get()] { raw->serve(); }));
  return server;
}

CaptureServer::~CaptureServer() {
  ends_.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  remove_file();
}

void CaptureServer::remove_file() {
  if (has_file_.exchange(false)) unlink(path_.c_str());
}

void CaptureServer::add(const std::string& device, const MacAddress& mac, std::uint16_t mtu_bytes,
                        CaptureTaps taps) {
  const std::lock_guard lock(mutex_);
  std::erase_if(devices_, [&](const Device& before) { return before.name == device; });
  devices_.push_back({device, mac, mtu_bytes, std::move(taps)});
}

void CaptureServer::serve() {
  while (!ends_.load(std::memory_order_relaxed)) {
    TimePoint now = read_clock();
    TimePoint wake_at = kNever;
    const bool accepts = now >= next_accept_;
    if (!accepts) wake_at = next_accept_;
    std::array<pollfd, 2 + kMostClients> fds{};
    fds[0] = {.fd = wake_.get(), .events = POLLIN, .revents = 0};
    fds[1] = {.fd = accepts ? listener_.get() : -1, .events = POLLIN, .revents = 0};
    const std::size_t count = clients_.size();
    for (std::size_t i = 0; i < count; ++i) {
      fds[2 + i] = {.fd = clients_[i].socket.get(), .events = POLLIN, .revents = 0};
      if (clients_[i].session == nullptr) wake_at = std::min(wake_at, clients_[i].request_deadline);
    }
    int timeout_ms = -1;
    if (wake_at != kNever)
      timeout_ms = static_cast<int>(
          std::chrono::ceil<std::chrono::milliseconds>(std::max(wake_at - now, Duration::zero()))
              .count());
    if (poll(fds.data(), 2 + count, timeout_ms) < 0 && errno != EINTR) return;
    now = read_clock();
    for (std::size_t i = count; i-- > 0;) {
      Client& client = clients_[i];
      const bool is_late = client.session == nullptr && now >= client.request_deadline;
      if (fds[2 + i].revents != 0 ? on_readable(client) : !is_late) continue;
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if ((fds[1].revents & POLLIN) != 0) accept_clients(now);
  }
  clients_.clear();
}

void CaptureServer::accept_clients(TimePoint now) {
  for (;;) {
    const int raw = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (raw < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) next_accept_ = now + kAcceptPause;
      return;
    }
    try {
      Fd socket(raw);
      if (!may_capture(socket.get()))
        turn_away(socket.get(), stats::CaptureStatus::kRefusedUser);
      else if (clients_.size() == kMostClients)
        turn_away(socket.get(), stats::CaptureStatus::kBusy);
      else
        clients_.push_back({std::move(socket), now + kRequestTimeout, nullptr});
    } catch (const std::bad_alloc&) {
      next_accept_ = now + kAcceptPause;
      return;
    }
  }
}

bool CaptureServer::on_readable(Client& client) {
  std::array<std::byte, 256> message{};
  const ssize_t got = recv(client.socket.get(), message.data(), message.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  // A running capture ends with the program's socket, or with any further message.
  if (got == 0 || client.session != nullptr) return false;
  const auto request =
      stats::parse_request(std::span(message).first(static_cast<std::size_t>(got)));
  if (!request) {
    send_answer(client.socket.get(), refusal(request.error()), {});
    return false;
  }
  try {
    const stats::CaptureAnswer answer = answer_to(*request, client);
    if (client.session == nullptr) {
      send_answer(client.socket.get(), answer, {});
      return false;
    }
    const std::array fds{client.session->rings_fd(), client.session->cursors_fd()};
    send_answer(client.socket.get(), answer, fds);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

stats::CaptureAnswer CaptureServer::list() {
  stats::CaptureAnswer answer;
  std::string names;
  const std::lock_guard lock(mutex_);
  for (const Device& device : devices_) names += device.name + "\n";
  stats::set_text(answer.devices, names);
  return answer;
}

stats::CaptureAnswer CaptureServer::answer_to(const stats::CaptureRequest& request,
                                              Client& client) {
  if (request.kind == stats::CaptureKind::kList) return list();
  const auto running = std::count_if(clients_.begin(), clients_.end(),
                                     [](const Client& c) { return c.session != nullptr; });
  if (running >= static_cast<std::ptrdiff_t>(stats::kMostCaptures))
    return refusal(stats::CaptureStatus::kBusy);
  stats::CaptureAnswer answer;
  CaptureTaps taps;
  {
    const std::lock_guard lock(mutex_);
    const auto device = std::find_if(
        devices_.begin(), devices_.end(),
        [&](const Device& candidate) { return candidate.name == stats::text_of(request.device); });
    if (device == devices_.end()) return refusal(stats::CaptureStatus::kNoDevice);
    taps = device->taps;
    answer.mac = device->mac.bytes;
    answer.mtu_bytes = device->mtu_bytes;
  }
  answer.lanes = static_cast<std::uint32_t>(taps.size());
  answer.ring_bytes = stats::fitting_ring(request.ring_bytes, taps.size());
  auto session = CaptureSession::start(taps, answer.ring_bytes, request.snap_bytes);
  if (!session)
    return refusal(session.error().code == Errc::kBusy ? stats::CaptureStatus::kBusy
                                                       : stats::CaptureStatus::kNoMemory,
                   session.error().sys_errno);
  client.session = std::move(*session);
  return answer;
}

CaptureOffer::~CaptureOffer() {
  if (in_forked_child()) static_cast<void>(server_.release());
}

void CaptureOffer::add(const std::string& run_dir, const std::string& nic,
                       const link::LinkCapabilities& link, CaptureTaps taps) {
  if (run_dir.empty()) return;
  if (server_ == nullptr) {
    Result<std::unique_ptr<CaptureServer>> started = CaptureServer::start(run_dir);
    if (!started) {
      log::info("{}: ztcp_stat can't capture its frames: no socket in {}: {}: {}", nic, run_dir,
                started.error().where, std::strerror(started.error().sys_errno));
      return;
    }
    server_ = std::move(*started);
    at_end_.store(server_.get(), std::memory_order_release);
  }
  server_->add(nic, link.mac, link.mtu_bytes, std::move(taps));
}

void CaptureOffer::end() {
  if (CaptureServer* const server = at_end_.load(std::memory_order_acquire)) server->remove_file();
}

}  // namespace ztcp::ustack
