// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/dpdk_host.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <string_view>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <vector>

#include <rte_interrupts.h>

#include "core/fork_guard.h"
#include "core/log.h"
#include "core/standard_streams.h"
#include "transport/link/memif_guard.h"
#include "transport/link/socket_file.h"

struct rte_eth_dev;

// The linker redirects the caller's `name` to __wrap_name; it knows no other names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
std::FILE* __wrap_stdout = nullptr;
std::FILE* __wrap_stderr = nullptr;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace ztcp::link {
namespace {

std::atomic<bool> g_panicked{false};

[[noreturn]] void sleep_for_ever(std::string_view why) {
  g_panicked.store(true, std::memory_order_release);
  log::warn("DPDK gave up: {}; its NICs are down until this process is started again", why);
  while (true) pause();
}

// Interrupt callbacks that are registered now. If a driver frees a handle without unregistering its
// callback, that would run on freed memory, or with a closed descriptor, on which DPDK panics.
struct Registered {
  int fd;
  rte_intr_callback_fn callback;
  void* argument;
};
std::mutex g_registered_mutex;
std::vector<Registered>& registered() {
  static auto* list = new std::vector<Registered>;  // Outlives DPDK's thread.
  return *list;
}

void remember_callback(const Registered& entry) {
  const std::scoped_lock lock(g_registered_mutex);
  registered().push_back(entry);
}
std::optional<Registered> forget_callback(int fd) {
  const std::scoped_lock lock(g_registered_mutex);
  for (auto it = registered().begin(); it != registered().end(); ++it) {
    if (it->fd != fd) continue;
    const Registered found = *it;
    registered().erase(it);
    return found;
  }
  return std::nullopt;
}

bool is_listening(int fd) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

int guarded(int fd) {
  const int own = off_standard_streams(fd);
  if (own >= 0) close_in_children(own);
  return own;
}

int open_for_dpdk(const char* path, int flags, mode_t mode) {
  const int fd = off_standard_streams(open(path, flags | O_CLOEXEC, mode));
  return std::string_view(path).starts_with("/dev/vfio/") ? guarded(fd) : fd;
}

int print(const char* format, va_list arguments) {
  return __wrap_stderr == nullptr ? 0 : std::vfprintf(__wrap_stderr, format, arguments);
}

}  // namespace

void set_dpdk_output(std::FILE* stream) { __wrap_stdout = __wrap_stderr = stream; }
bool dpdk_panicked() { return g_panicked.load(std::memory_order_acquire); }

}  // namespace ztcp::link

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.
extern "C" {

// --- Output --------------------------------------------------------------------------------------
int __wrap_printf(const char* format, ...);
int __wrap___printf_chk(int flag, const char* format, ...);
int __wrap_puts(const char* text);
int __wrap_putchar(int letter);
void __wrap_perror(const char* text);
void __wrap_openlog(const char*, int, int);
void __wrap_syslog(int, const char*, ...);
void __wrap___syslog_chk(int, int, const char*, ...);
bool __wrap_log_journal_enabled();

int __wrap_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int rc = ztcp::link::print(format, arguments);
  va_end(arguments);
  return rc;
}
int __wrap___printf_chk(int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int rc = ztcp::link::print(format, arguments);
  va_end(arguments);
  return rc;
}
int __wrap_puts(const char* text) { return __wrap_printf("%s\n", text); }
int __wrap_putchar(int letter) { return __wrap_printf("%c", letter); }
void __wrap_perror(const char* text) { __wrap_printf("%s: %m\n", text); }
// The name in syslog belongs to the host process.
void __wrap_openlog(const char*, int, int) {}
void __wrap_syslog(int, const char*, ...) {}
void __wrap___syslog_chk(int, int, const char*, ...) {}
// DPDK 24.11 itself writes to the journal if the host process's stderr is the journal.
bool __wrap_log_journal_enabled() { return false; }

// --- Process exit --------------------------------------------------------------------------------
[[noreturn]] void __wrap___rte_panic(const char* function, const char* format, ...);
[[noreturn]] void __wrap_exit(int status);
[[noreturn]] void __wrap_abort();

void __wrap___rte_panic(const char* function, const char* format, ...) {
  std::array<char, 256> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  std::string_view why(text.data());
  while (!why.empty() && why.back() == '\n') why.remove_suffix(1);
  ztcp::log::warn("DPDK panicked in {}()", function);
  ztcp::link::sleep_for_ever(why);
}
void __wrap_exit(int) { ztcp::link::sleep_for_ever("it called exit()"); }
void __wrap_abort() { ztcp::link::sleep_for_ever("it called abort()"); }

// --- Descriptors, all close-on-exec
// ----------------------------------------------------------------
int __wrap_socket(int domain, int type, int protocol);
int __wrap_accept(int fd, sockaddr* address, socklen_t* size);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_memfd_create(const char* name, unsigned flags);
int __wrap_epoll_create(int size);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_pipe(int* ends);
int __wrap_mkdir(const char* path, mode_t mode);
int __wrap_open(const char* path, int flags, ...);
int __wrap_open64(const char* path, int flags, ...);
void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t at);
void* __wrap_mmap64(void* address, std::size_t size, int protection, int flags, int fd, off_t at);

int __wrap_socket(int domain, int type, int protocol) {
  return ztcp::link::guarded(socket(domain, type | SOCK_CLOEXEC, protocol));
}
int __wrap_accept(int fd, sockaddr* address, socklen_t* size) {
  return ztcp::link::guarded(accept4(fd, address, size, SOCK_CLOEXEC));
}
int __wrap_eventfd(unsigned value, int flags) {
  return ztcp::off_standard_streams(eventfd(value, flags | EFD_CLOEXEC));
}
int __wrap_memfd_create(const char* name, unsigned flags) {
  return ztcp::link::guarded(memfd_create(name, flags | MFD_CLOEXEC));
}
int __wrap_epoll_create(int) { return ztcp::off_standard_streams(epoll_create1(EPOLL_CLOEXEC)); }
int __wrap_timerfd_create(int clock, int flags) {
  return ztcp::off_standard_streams(timerfd_create(clock, flags | TFD_CLOEXEC));
}
int __wrap_pipe(int* ends) {
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  for (int* end : {ends, ends + 1}) *end = ztcp::off_standard_streams(*end);
  return 0;
}
// EAL makes a run-time folder even if it puts nothing into it, and leaves the parent folder behind
// in /var/run or /tmp.
int __wrap_mkdir(const char*, mode_t) { return 0; }
int __wrap_open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return ztcp::link::open_for_dpdk(path, flags, mode);
}
int __wrap_open64(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return ztcp::link::open_for_dpdk(path, flags, mode);
}

// A mapping holds its object open as a descriptor does: a child with a NIC's registers in its
// address space keeps the NIC from the next job. Mappings without a descriptor are EAL's own, see
// eal.cc.
void* __wrap_mmap64(void* address, std::size_t size, int protection, int flags, int fd, off_t at) {
  void* const mapped = mmap(address, size, protection, flags, fd, at);
  if (mapped != MAP_FAILED && fd >= 0) {
    const int before = errno;
    madvise(mapped, size, MADV_DONTFORK);
    errno = before;
  }
  return mapped;
}
void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t at) {
  return __wrap_mmap64(address, size, protection, flags, fd, at);
}

// --- The interrupt thread ------------------------------------------------------------------------
int __wrap_epoll_wait(int fd, epoll_event* events, int capacity, int timeout);
int __wrap_connect(int fd, const sockaddr* address, socklen_t size);

// One event at a time: its handler may close a descriptor and open another of the same number, and
// a second event, meant for the first, would block in the second one's accept() or recvmsg().
int __wrap_epoll_wait(int fd, epoll_event* events, int, int timeout) {
  return epoll_wait(fd, events, 1, timeout);
}
// A stopped memif server with a full backlog must not block its clients.
int __wrap_connect(int fd, const sockaddr* address, socklen_t size) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const int rc = connect(fd, address, size);
  const int why = errno;
  fcntl(fd, F_SETFL, flags);
  errno = why;
  return rc;
}

// --- memif ---------------------------------------------------------------------------------------
void memif_free_regions(rte_eth_dev* device);
void __wrap_memif_free_regions(rte_eth_dev* device);
int __wrap_rte_intr_callback_register(const rte_intr_handle* handle, rte_intr_callback_fn callback,
                                      void* argument);
void __wrap_rte_intr_instance_free(rte_intr_handle* handle);
int __wrap_bind(int fd, const sockaddr* address, socklen_t size);
int __wrap_remove(const char* path);

// See socket_file.h.
int __wrap_bind(int fd, const sockaddr* address, socklen_t size) {
  return ztcp::link::bind_socket_file(fd, address, size);
}
int __wrap_remove(const char* path) { return ztcp::link::remove_socket_file(path); }

// See memif_guard.h.
void __wrap_memif_free_regions(rte_eth_dev* device) {
  ztcp::link::MemifGuard::wait_until_outside();
  memif_free_regions(device);
}

int __wrap_rte_intr_callback_register(const rte_intr_handle* handle, rte_intr_callback_fn callback,
                                      void* argument) {
  const int rc = rte_intr_callback_register(handle, callback, argument);
  if (rc == 0) ztcp::link::remember_callback({rte_intr_fd_get(handle), callback, argument});
  return rc;
}
int __wrap_rte_intr_callback_unregister(const rte_intr_handle* handle,
                                        rte_intr_callback_fn callback, void* argument) {
  const int rc = rte_intr_callback_unregister(handle, callback, argument);
  if (rc > 0) ztcp::link::forget_callback(rte_intr_fd_get(handle));
  return rc;
}
int __wrap_rte_intr_callback_unregister_pending(const rte_intr_handle* handle,
                                                rte_intr_callback_fn callback, void* argument,
                                                rte_intr_unregister_callback_fn done) {
  const int rc = rte_intr_callback_unregister_pending(handle, callback, argument, done);
  if (rc > 0) ztcp::link::forget_callback(rte_intr_fd_get(handle));
  return rc;
}
// memif does not unregister its callback in two cases: when a server closes (the listening socket
// stays open, too) and when a client ended before it could be greeted (the socket is closed
// already).
void __wrap_rte_intr_instance_free(rte_intr_handle* handle) {
  const int fd = handle == nullptr ? -1 : rte_intr_fd_get(handle);
  if (const auto left = fd < 0 ? std::nullopt : ztcp::link::forget_callback(fd)) {
    rte_intr_callback_unregister(handle, left->callback, left->argument);
    if (ztcp::link::is_listening(fd)) close(fd);
  }
  rte_intr_instance_free(handle);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
