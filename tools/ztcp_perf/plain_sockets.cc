// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/plain_sockets.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace ztcp::perf {
namespace {

constexpr std::uint64_t kMagic = 0x7a74637072656631;  // In handles and as the first bytes sent.

struct Comm;
struct Request {
  Comm* comm;
  std::byte* data;
  std::uint32_t size;       // Sends: the message's. Receives: the buffer's, then the message's.
  std::uint32_t header;     // The message's size as it travels.
  std::size_t transferred;  // Header and payload.
  bool used;
};

// Requests are served strictly in order, so a ring holds them.
struct Comm {
  int fd = -1;
  bool sends = false;
  std::array<Request, NCCL_NET_MAX_REQUESTS> ring{};
  std::uint32_t posted = 0;
  std::uint32_t finished = 0;
  ~Comm() {
    if (fd >= 0) close(fd);
  }
};

struct Listener {
  int fd = -1;
  // A connection that has not sent its magic yet.
  std::unique_ptr<Comm> half_open;
  ~Listener() {
    if (fd >= 0) close(fd);
  }
};

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  socklen_t length() const { return any.sa_family == AF_INET6 ? sizeof v6 : sizeof v4; }
};

Address g_own{};

struct SocketHandle {
  std::uint64_t magic;
  Address address;
  Comm* connecting;  // Between calls of connect(); NCCL keeps the handle in place for that.
};
static_assert(sizeof(SocketHandle) <= NCCL_NET_HANDLE_MAXSIZE);

bool again() { return errno == EAGAIN || errno == EINTR; }

void set_nodelay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

ncclResult_t plugin_init(void** ctx, std::uint64_t, ncclNetCommConfig_v10_t*, ncclDebugLogger_t,
                         ncclProfilerCallback_t) {
  *ctx = nullptr;
  return ncclSuccess;
}
ncclResult_t plugin_finalize(void*) { return ncclSuccess; }

ncclResult_t plugin_devices(int* count) {
  *count = 1;
  return ncclSuccess;
}

ncclResult_t plugin_properties(int device, ncclNetProperties_v11_t* p) {
  if (device != 0) return ncclInvalidArgument;
  static char name[] = "kernel0";
  *p = {};
  p->name = name;
  p->ptrSupport = NCCL_PTR_HOST;
  p->speed = 10000;
  p->port = 1;
  p->maxComms = 65536;
  p->maxRecvs = 1;
  p->netDeviceType = NCCL_NET_DEVICE_HOST;
  p->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  p->vProps.ndevs = 1;
  p->maxP2pBytes = 1ULL << 30U;
  p->maxCollBytes = 1ULL << 30U;
  p->maxMultiRequestSize = 1;
  return ncclSuccess;
}

ncclResult_t plugin_listen(void*, int, void* handle_memory, void** listen_comm) {
  *listen_comm = nullptr;
  auto listener = std::make_unique<Listener>();
  SocketHandle handle{};
  handle.magic = kMagic;
  handle.address = g_own;
  sockaddr* const own = &handle.address.any;
  if (own->sa_family == AF_UNSPEC) return ncclInvalidUsage;
  socklen_t length = handle.address.length();
  listener->fd = socket(own->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener->fd < 0 || bind(listener->fd, own, length) != 0 || listen(listener->fd, 64) != 0 ||
      getsockname(listener->fd, own, &length) != 0)
    return ncclSystemError;
  std::memcpy(handle_memory, &handle, sizeof handle);
  *listen_comm = listener.release();
  return ncclSuccess;
}

ncclResult_t plugin_connect(void*, int, void* handle_memory, void** send_comm,
                            ncclNetDeviceHandle_v7_t**) {
  *send_comm = nullptr;
  auto* handle = static_cast<SocketHandle*>(handle_memory);
  if (handle->magic != kMagic) return ncclInvalidArgument;
  if (handle->connecting == nullptr) {
    handle->connecting = new Comm;
    handle->connecting->sends = true;
    const int fd =
        socket(handle->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return ncclSystemError;
    handle->connecting->fd = fd;
    set_nodelay(fd);
  }
  const int fd = handle->connecting->fd;
  // A second connect() reports the result of the first one.
  if (connect(fd, &handle->address.any, handle->address.length()) != 0 && errno != EISCONN)
    return errno == EINPROGRESS || errno == EALREADY ? ncclSuccess : ncclRemoteError;
  // Eight bytes always fit into a fresh socket.
  if (send(fd, &kMagic, sizeof kMagic, MSG_NOSIGNAL) != sizeof kMagic) return ncclRemoteError;
  *send_comm = std::exchange(handle->connecting, nullptr);
  return ncclSuccess;
}

ncclResult_t plugin_accept(void* listen_comm, void** recv_comm, ncclNetDeviceHandle_v7_t**) {
  *recv_comm = nullptr;
  auto* listener = static_cast<Listener*>(listen_comm);
  if (!listener->half_open) {
    const int fd = accept4(listener->fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return again() ? ncclSuccess : ncclSystemError;
    set_nodelay(fd);
    listener->half_open = std::make_unique<Comm>();
    listener->half_open->fd = fd;
  }
  std::uint64_t magic = 0;
  const ssize_t n = recv(listener->half_open->fd, &magic, sizeof magic, MSG_PEEK);
  if (n < 0 && again()) return ncclSuccess;
  if (n > 0 && n < static_cast<ssize_t>(sizeof magic)) return ncclSuccess;
  if (n <= 0 || magic != kMagic) {
    listener->half_open.reset();  // A connection of another program.
    return ncclSuccess;
  }
  if (recv(listener->half_open->fd, &magic, sizeof magic, 0) != sizeof magic)
    return ncclSystemError;
  *recv_comm = listener->half_open.release();
  return ncclSuccess;
}

ncclResult_t plugin_reg_mr(void*, void*, std::size_t, int type, void** mhandle) {
  *mhandle = nullptr;
  return type == NCCL_PTR_HOST ? ncclSuccess : ncclInternalError;
}
ncclResult_t plugin_dereg_mr(void*, void*) { return ncclSuccess; }

// Moves bytes of the oldest unfinished message. False when the socket can take or give no more.
bool step(Comm& comm, ncclResult_t* result) {
  Request& r = comm.ring[comm.finished % comm.ring.size()];
  constexpr std::size_t kHeader = sizeof r.header;
  const bool in_header = r.transferred < kHeader;
  std::array<iovec, 2> parts{};
  int count = 0;
  if (in_header) {
    parts[0] = {reinterpret_cast<std::byte*>(&r.header) + r.transferred, kHeader - r.transferred};
    count = 1;
  }
  // A receiver reads the size first: bytes behind it may belong to the next message.
  if (comm.sends || !in_header) {
    const std::size_t sent = in_header ? 0 : r.transferred - kHeader;
    parts[static_cast<std::size_t>(count)] = {r.data + sent, r.size - sent};
    ++count;
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = static_cast<std::size_t>(count);
  const ssize_t n =
      comm.sends ? sendmsg(comm.fd, &message, MSG_NOSIGNAL) : recvmsg(comm.fd, &message, 0);
  if (n < 0 && again()) return false;
  if (n <= 0) {
    *result = ncclRemoteError;
    return false;
  }
  r.transferred += static_cast<std::size_t>(n);
  if (!comm.sends && in_header && r.transferred == kHeader) {
    if (r.header > r.size) {
      *result = ncclInvalidUsage;  // Truncated.
      return false;
    }
    r.size = r.header;
  }
  if (r.transferred >= kHeader && r.transferred == kHeader + r.size) ++comm.finished;
  return true;
}

ncclResult_t progress(Comm& comm) {
  ncclResult_t result = ncclSuccess;
  while (comm.finished != comm.posted && step(comm, &result)) {
  }
  return result;
}

void post(Comm& comm, void* data, std::size_t size, void** request) {
  Request& r = comm.ring[comm.posted % comm.ring.size()];
  *request = nullptr;
  if (r.used) return;
  r = {&comm,
       static_cast<std::byte*>(data),
       static_cast<std::uint32_t>(size),
       static_cast<std::uint32_t>(size),
       0,
       true};
  ++comm.posted;
  *request = &r;
}

ncclResult_t plugin_isend(void* comm, void* data, std::size_t size, int, void*, void*,
                          void** request) {
  post(*static_cast<Comm*>(comm), data, size, request);
  return ncclSuccess;
}

ncclResult_t plugin_irecv(void* comm, int n, void** data, std::size_t* sizes, int*, void**, void**,
                          void** request) {
  if (n != 1) return ncclInvalidUsage;
  post(*static_cast<Comm*>(comm), data[0], sizes[0], request);
  return ncclSuccess;
}

ncclResult_t plugin_iflush(void*, int, void**, int*, void**, void**) { return ncclInternalError; }

ncclResult_t plugin_test(void* request, int* done, int* size) {
  auto* r = static_cast<Request*>(request);
  Comm& comm = *r->comm;
  const auto index = static_cast<std::uint32_t>(r - comm.ring.data());
  *done = 0;
  // Its place in the ring shows whether it is before `finished`.
  const auto finished = [&] {
    const std::uint32_t behind = comm.posted - comm.finished;
    const auto slots = static_cast<std::uint32_t>(comm.ring.size());
    const std::uint32_t oldest = comm.finished % slots;
    return (index + slots - oldest) % slots >= behind;
  };
  if (!finished()) {
    const ncclResult_t result = progress(comm);
    if (result != ncclSuccess) return result;
    if (!finished()) return ncclSuccess;
  }
  *done = 1;
  if (size != nullptr) *size = static_cast<int>(r->size);
  r->used = false;
  return ncclSuccess;
}

template <class T>
ncclResult_t plugin_close(void* object) {
  delete static_cast<T*>(object);
  return ncclSuccess;
}

}  // namespace

bool listen_plainly_at(const std::string& address) {
  g_own = {};
  if (inet_pton(AF_INET, address.c_str(), &g_own.v4.sin_addr) == 1)
    g_own.v4.sin_family = AF_INET;
  else if (inet_pton(AF_INET6, address.c_str(), &g_own.v6.sin6_addr) == 1)
    g_own.v6.sin6_family = AF_INET6;
  return g_own.any.sa_family != AF_UNSPEC;
}

const ncclNet_v11_t kPlainSockets = {
    .name = "plain sockets",
    .init = plugin_init,
    .devices = plugin_devices,
    .getProperties = plugin_properties,
    .listen = plugin_listen,
    .connect = plugin_connect,
    .accept = plugin_accept,
    .regMr = plugin_reg_mr,
    .regMrDmaBuf = nullptr,
    .deregMr = plugin_dereg_mr,
    .isend = plugin_isend,
    .irecv = plugin_irecv,
    .iflush = plugin_iflush,
    .test = plugin_test,
    .closeSend = plugin_close<Comm>,
    .closeRecv = plugin_close<Comm>,
    .closeListen = plugin_close<Listener>,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
    .makeVDevice = nullptr,
    .finalize = plugin_finalize,
    .setNetAttr = nullptr,
};

}  // namespace ztcp::perf
