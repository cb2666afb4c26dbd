// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/socket_file.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "core/log.h"
#include "core/shell_word.h"
#include "transport/link/process_limits.h"

namespace ztcp::link {
namespace {

using namespace std::chrono_literals;

// A starting server holds the lock for a few milliseconds. A process that holds it longer is no
// server and must not keep us from starting: in a world-writable folder any process can take it.
constexpr auto kLockTimeout = 500ms;

struct SocketPath {
  std::string folder;
  std::string name;
};

SocketPath place_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

const char* kind_of(const struct stat& file) {
  if (S_ISREG(file.st_mode)) return "a file";
  if (S_ISDIR(file.st_mode)) return "a folder";
  if (S_ISLNK(file.st_mode)) return "a symbolic link";
  if (S_ISFIFO(file.st_mode)) return "a pipe";
  return "a device";
}

Result<SocketFolder> open_folder(const std::string& folder) {
  int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool readable = fd >= 0;
  // A folder that may be written to but not read can't be locked.
  if (!readable && errno == EACCES) fd = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail_errno("open");
  SocketFolder opened{Fd(fd)};
  const auto deadline = std::chrono::steady_clock::now() + kLockTimeout;
  while (readable && ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(5ms);
  return opened;
}

std::string mend_folder(int why, const std::string& folder) {
  if (std::string limits = advice_on_files(); why == EMFILE && !limits.empty()) return limits;
  if (why == ENOENT) return "make it: mkdir -p " + shell_word(folder);
  return "choose another path";
}

// 0, or the errno of connecting to the socket that `file` is a descriptor of.
int try_to_connect(int file) {
  // Non-blocking: a server with a full backlog would block us.
  const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format_to_n(address.sun_path, sizeof(address.sun_path) - 1, "/proc/self/fd/{}", file);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(socket.get(), generic, sizeof(address)) == 0 ? 0 : errno;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

tl::unexpected<Error> refuse_socket(const std::string& path, const std::string& what, Errc code,
                                    int why = 0) {
  log::warn("memif socket {} {}", path, what);
  return fail(code, "memif socket", why);
}

// Sockets that DPDK's driver has bound, by name.
struct Bound {
  std::mutex mutex;
  std::map<std::string, struct stat> files;
};
Bound& bound() {
  static auto* instance = new Bound;  // Outlives DPDK's thread.
  return *instance;
}

}  // namespace

Result<SocketFolder> make_way_for_server(const std::string& path) {
  const SocketPath place = place_of(path);
  auto folder = open_folder(place.folder);
  if (!folder) {
    const int why = folder.error().sys_errno;
    return refuse_socket(path,
                         fmt::format("can't be made: folder {}: {}; {}", place.folder,
                                     std::strerror(why), mend_folder(why, place.folder)),
                         Errc::kSystem, why);
  }
  struct stat file {};
  const int at = folder->fd.get();
  if (::fstatat(at, place.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return folder;
    return refuse_socket(path, std::strerror(errno), Errc::kSystem, errno);
  }
  if (!S_ISSOCK(file.st_mode))
    return refuse_socket(path,
                         fmt::format("is the name of {}, which was left alone; choose another "
                                     "path, or move it away",
                                     kind_of(file)),
                         Errc::kBadConfig, EEXIST);
  if (file.st_uid != ::geteuid())
    return refuse_socket(path,
                         fmt::format("belongs to user {}, this is user {}; if its server is gone, "
                                     "remove it: rm {}",
                                     file.st_uid, ::geteuid(), shell_word(path)),
                         Errc::kBusy, EPERM);
  const Fd found(::openat(at, place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat opened {};
  const bool same = found && ::fstat(found.get(), &opened) == 0 && is_same(file, opened);
  const int why = same ? try_to_connect(found.get()) : EAGAIN;
  if (why != ECONNREFUSED)
    return refuse_socket(path,
                         why == 0 || why == EAGAIN || why == EPROTOTYPE
                             ? "is served by another process already; stop that one, or choose "
                               "another run directory"
                             : fmt::format("may still be served ({}); if not, remove it: rm {}",
                                           std::strerror(why), shell_word(path)),
                         Errc::kBusy, why);
  if (::unlinkat(at, place.name.c_str(), 0) != 0 && errno != ENOENT)
    return refuse_socket(path,
                         fmt::format("was left by a server that is gone, and can't be removed: {}; "
                                     "remove it: sudo rm {}",
                                     std::strerror(errno), shell_word(path)),
                         Errc::kSystem, errno);
  return folder;
}

int bind_socket_file(int fd, const sockaddr* address, socklen_t size) {
  const int rc = ::bind(fd, address, size);
  if (rc != 0 || address->sa_family != AF_UNIX) return rc;
  const auto* local = reinterpret_cast<const sockaddr_un*>(address);
  const std::string path(local->sun_path,
                         ::strnlen(local->sun_path, size - offsetof(sockaddr_un, sun_path)));
  struct stat made {};
  if (path.empty() || ::lstat(path.c_str(), &made) != 0) return rc;
  const std::scoped_lock lock(bound().mutex);
  bound().files[path] = made;
  return rc;
}

int remove_socket_file(const char* path) {
  const SocketPath place = place_of(path);
  struct stat made {};
  {
    const std::scoped_lock lock(bound().mutex);
    const auto at = bound().files.find(path);
    if (at == bound().files.end()) return 0;
    made = at->second;
    bound().files.erase(at);
  }
  const Fd folder(::open(place.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat file {};
  if (!folder || ::fstatat(folder.get(), place.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISSOCK(file.st_mode) || !is_same(file, made))
    return 0;  // Another process's by now.
  return ::unlinkat(folder.get(), place.name.c_str(), 0);
}

}  // namespace ztcp::link
