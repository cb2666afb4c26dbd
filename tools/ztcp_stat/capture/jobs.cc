// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/jobs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/common/printable.h"
#include "transport/stats/capture_tap.h"

namespace ztcp::capture {
namespace {

constexpr timeval kAnswerTimeout{.tv_sec = 5, .tv_usec = 0};

// The pid in "capture-4711.sock" or "capture-4711-2.sock".
std::optional<pid_t> pid_in(std::string_view name) {
  constexpr std::string_view kPrefix = "capture-";
  constexpr std::string_view kSuffix = ".sock";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  pid_t pid = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool ends_well = read.ptr == name.data() + name.size() || *read.ptr == '-';
  if (read.ec != std::errc() || pid <= 0 || !ends_well) return std::nullopt;
  return pid;
}

std::string command_of(pid_t pid) {
  std::string command;
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::getline(file, command);
  return tools::printable(command, 32);
}

struct Connection {
  Descriptor socket;
  ucred peer{};
  int sys_errno = 0;  // Why there is no socket.
};

Connection connect_to(const std::string& path) {
  Connection connection;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return {{}, {}, ENAMETOOLONG};
  path.copy(address.sun_path, path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  // A process that is stopped must not stop this program.
  if (!socket ||
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof(kAnswerTimeout)) !=
          0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerTimeout, sizeof(kAnswerTimeout)) !=
          0 ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return {{}, {}, errno};
  socklen_t size = sizeof(connection.peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &connection.peer, &size) != 0)
    return {{}, {}, errno};
  connection.socket = std::move(socket);
  return connection;
}

// In a folder that others may write to, the socket may be anybody's.
bool is_trusted(const ucred& peer) {
  return geteuid() == 0 || peer.uid == geteuid() || peer.uid == 0;
}

tl::expected<stats::CaptureAnswer, std::string> ask(int socket,
                                                    const stats::CaptureRequest& request,
                                                    std::array<Descriptor, 2>& fds) {
  // A process that turns this program away has closed its side already, and its answer is there.
  if (send(socket, &request, sizeof(request), MSG_NOSIGNAL) < 0 && errno != EPIPE)
    return tl::unexpected<std::string>(std::strerror(errno));
  std::array<std::byte, sizeof(stats::CaptureAnswer) + 8> bytes{};
  iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0)
    return tl::unexpected<std::string>(
        errno == EAGAIN ? fmt::format("no answer in {} s; is it stopped?", kAnswerTimeout.tv_sec)
                        : std::strerror(errno));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    std::array<int, 2> raw{-1, -1};
    const std::size_t size = header->cmsg_len - CMSG_LEN(0);
    std::memcpy(raw.data(), CMSG_DATA(header), std::min(size, sizeof(raw)));
    for (std::size_t i = 0; i < raw.size(); ++i) fds[i] = Descriptor(raw[i]);
  }
  const auto answer = stats::parse_answer(std::span(bytes).first(static_cast<std::size_t>(got)));
  if (!answer)
    return tl::unexpected<std::string>(
        "it speaks another version of the protocol; use the ztcp_stat of its release");
  switch (answer->status) {
    case stats::CaptureStatus::kOk:
      return *answer;
    case stats::CaptureStatus::kRefusedUser:
      return tl::unexpected<std::string>("it belongs to another user; run as that user, or root");
    case stats::CaptureStatus::kNoDevice:
      return tl::unexpected<std::string>("it does not drive that device");
    case stats::CaptureStatus::kBusy:
      return tl::unexpected(
          fmt::format("{} captures of it are running; end one of them", stats::kMostCaptures));
    case stats::CaptureStatus::kNoMemory:
      return tl::unexpected(
          fmt::format("it could not share memory for the frames ({}); give a "
                      "smaller --buffer",
                      std::strerror(answer->sys_errno)));
    case stats::CaptureStatus::kOtherVersion:
    case stats::CaptureStatus::kBadRequest:
      break;
  }
  return tl::unexpected<std::string>(
      "it speaks another version of the protocol; use the ztcp_stat of its release");
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(tools::printable(text.substr(0, end), 64));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Only a socket of this user, and of a dead pid: a process that just starts does not listen yet.
void remove_if_stale(const std::string& path, pid_t pid) {
  struct stat file {};
  if (lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode) && file.st_uid == geteuid() &&
      kill(pid, 0) != 0 && errno == ESRCH)
    unlink(path.c_str());
}

}  // namespace

std::string to_string(const Job& job) {
  if (job.pid == 0) return "a process that can't be seen from here (another container?)";
  return fmt::format("process {} ({})", job.pid, job.command);
}

Jobs find_jobs(const std::string& run_dir) {
  Jobs jobs;
  std::error_code failed;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(run_dir, failed), end; !failed && at != end;
       at.increment(failed))
    names.push_back(at->path().filename().string());
  if (failed)
    jobs.passed_over.push_back(fmt::format("{} can't be read: {}", run_dir, failed.message()));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::optional<pid_t> pid = pid_in(name);
    if (!pid) continue;
    const std::string path = fmt::format("{}/{}", run_dir, name);
    const Connection connection = connect_to(path);
    if (connection.sys_errno == ECONNREFUSED) {
      remove_if_stale(path, *pid);
      continue;
    }
    if (!connection.socket) {
      jobs.passed_over.push_back(
          fmt::format("process {}: {}{}", *pid, std::strerror(connection.sys_errno),
                      connection.sys_errno == EACCES ? "; run as its user, or root" : ""));
      continue;
    }
    Job job{path, connection.peer.pid, command_of(connection.peer.pid), {}};
    if (!is_trusted(connection.peer)) {
      jobs.passed_over.push_back(to_string(job) + " belongs to another user");
      continue;
    }
    std::array<Descriptor, 2> none;
    const auto answer = ask(connection.socket.get(), {}, none);
    if (!answer) {
      jobs.passed_over.push_back(fmt::format("{}: {}", to_string(job), answer.error()));
      continue;
    }
    job.devices = lines_of(stats::text_of(answer->devices));
    jobs.found.push_back(std::move(job));
  }
  return jobs;
}

tl::expected<StartedCapture, std::string> start(const Job& job, const std::string& device,
                                                std::uint32_t ring_bytes,
                                                std::uint32_t snap_bytes) {
  const auto failed = [&](const std::string& why) {
    return tl::unexpected(fmt::format("{}: {}", to_string(job), why));
  };
  Connection connection = connect_to(job.socket_path);
  if (!connection.socket) return failed(std::strerror(connection.sys_errno));
  if (!is_trusted(connection.peer)) return failed("it belongs to another user");
  stats::CaptureRequest request;
  request.kind = stats::CaptureKind::kStart;
  request.ring_bytes = ring_bytes;
  request.snap_bytes = snap_bytes;
  stats::set_text(request.device, device);
  std::array<Descriptor, 2> fds;
  const auto answer = ask(connection.socket.get(), request, fds);
  if (!answer) return failed(answer.error());
  if (answer->lanes == 0 || !fds[0] || !fds[1]) return failed("its answer is incomplete");
  return StartedCapture{std::move(connection.socket), std::move(fds[0]), std::move(fds[1]),
                        *answer};
}

}  // namespace ztcp::capture
