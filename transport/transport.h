// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between NCCL's entry points (plugin/) and the transports: ustack/, sockets/ or verbs/.
// Version-free: no NCCL type appears here. Nothing here blocks: a call that has no result yet says
// so, and the caller polls again.
//
// Threads, as NCCL uses them: listen, begin_connect, accept, register_memory and every close run on
// a proxy service thread; post_send, post_recv, post_flush and Request::test on that communicator's
// progress thread. Calls on one object never overlap, except that register_memory and
// deregister_memory may run beside anything, and that listen and begin_connect of the Transport
// come from the service threads of several communicators at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace ztcp {

// The number stands in the kind nibble of handles (plugin/handle.h), where 2 marks a listener that
// cannot exist.
enum class TransportKind : std::uint8_t { kUstack = 1, kSockets = 3, kVerbs = 4 };

constexpr const char* to_string(TransportKind kind) {
  switch (kind) {
    case TransportKind::kUstack:
      return "userspace TCP";
    case TransportKind::kSockets:
      return "kernel sockets";
    case TransportKind::kVerbs:
      return "RDMA verbs";
  }
  return "unknown";
}

// Whether a connection dialled over `from` reaches a listener of `to`: both TCP transports carry
// the same records (msg/record.h).
constexpr bool can_connect(TransportKind from, TransportKind to) {
  const auto is_tcp = [](TransportKind kind) {
    return kind == TransportKind::kUstack || kind == TransportKind::kSockets;
  };
  return from == to || (is_tcp(from) && is_tcp(to));
}

// Most buffers of one grouped receive, for every transport.
inline constexpr std::size_t kMaxReceives = 8;

// A device's properties, as NCCL asks for them. Strings live as long as the transport.
struct DeviceProperties {
  std::string name;      // Unique per device: "ztcp0".
  std::string pci_path;  // sysfs directory of the NIC's PCI function; empty: none.
  std::uint64_t guid = 0;
  std::uint32_t speed_mbps = 10000;
  std::uint16_t port = 1;
  float latency_us = 0;
  int max_comms = 65536;
  int max_receives = 1;  // Buffers of one grouped receive; at most kMaxReceives.
  // Number of NCCL devices this NIC is exposed as, each a port with its share of the speed: NCCL
  // opens channels for each, and one channel carries only a part of the line.
  int nccl_devices = 1;
  bool host_pointers = true;
  bool cuda_pointers = false;
  bool dmabuf = false;
  bool registration_is_global = false;
  bool force_flush = false;
  // For an operator.
  std::uint32_t mtu_bytes = 0;  // Largest IP packet; RDMA: payload of a packet. 0: unknown.
  std::string address;          // With several NICs all of them, with commas. Empty: unknown.
  std::int32_t numa_node = -1;  // -1: unknown.
  std::string gpu;              // PCI address or UUID of the GPU that it serves; empty: any.
};

// The part of NCCL's handle that leads a peer to a listener. The bytes are opaque to plugin/, which
// puts magic and version before them (plugin/handle.h). Every handle has the first kBaseBytes. A
// handle that is too short for the rest has zeros in its place, and leads to the listener even so.
struct PeerHandle {
  static constexpr std::size_t kBaseBytes = 34;
  static constexpr std::size_t kMoreBytes = 18;
  TransportKind kind = TransportKind::kUstack;
  std::array<std::byte, kBaseBytes + kMoreBytes> bytes{};
};

// A communicator's wishes for its connections.
struct CommOptions {
  std::uint64_t communicator = 0;  // NCCL's number for it; 0: not told (tables before v11).
  int traffic_class = -1;          // From the application's ncclConfig_t; -1: none.
};

enum class MemoryKind : std::uint8_t { kHost, kCuda };

// Memory to register. With a dmabuf_fd the memory begins `offset` bytes into that DMA-BUF; the
// descriptor stays the caller's, which closes it after the call.
struct Region {
  void* address = nullptr;
  std::size_t size_bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  int dmabuf_fd = -1;
  std::uint64_t offset = 0;
};

// A registration. NULL is a legal handle to NCCL, so transports return real objects.
class MemoryKey {
 protected:
  ~MemoryKey() = default;
};

// One buffer of a receive: takes the message with this tag.
struct RecvBuffer {
  std::span<std::byte> bytes;
  int tag = 0;
  MemoryKey* key = nullptr;
  // The GPU may poll flags inside the bytes before the request is done (NCCL's LL and LL128), so
  // within 128 bytes no byte may become visible before those in front of it.
  bool is_polled = true;
};

// The bytes of an operation that one queue pair carries, for a profiler. Without initial values:
// callers have room for the most pieces, and most operations have none or one.
struct PieceFacts {
  std::uint32_t rail;        // Index of the NIC among those that the connection goes over.
  std::uint32_t queue_pair;  // The device's number of it; 0: a rail of TCP, which has none.
  std::uint64_t work_id;
  std::size_t size_bytes;
  std::uint8_t number;  // Its bit in Request::finished_pieces().
};
// Most pieces of one operation.
inline constexpr std::size_t kMaxPieces = 8;

// One operation in flight. Lives in its comm's fixed table; invalid once test() returned true.
class Request {
 public:
  // False: not yet. True: done, and `sizes_bytes` holds the bytes sent or received for each buffer,
  // as far as it reaches. A failed connection reports its Error on every later call; the transport
  // logs the failure once, with the peer and the reason, when it first reports it.
  virtual Result<bool> test(std::span<std::size_t> sizes_bytes) = 0;
  // Number of sizes: one for a send, one for each buffer of a receive, none for a flush. To be read
  // before a test() that may end the request.
  std::size_t buffers() const { return buffers_; }
  // For a profiler, directly after the operation was posted: writes its pieces and returns their
  // number. 0: no queue pairs carry it. A receive has one piece, which stands for each of its
  // buffers: the sender chooses the queue pairs.
  virtual std::size_t pieces(std::span<PieceFacts, kMaxPieces>) const { return 0; }
  // A bit for each piece that has completed. Not to be called once test() returned true.
  virtual std::uint32_t finished_pieces() const { return 0; }

 protected:
  ~Request() = default;
  std::uint8_t buffers_ = 1;
};

// Data that plugin/ keeps beside a comm. Transports only carry it.
class CommAttachment {
 public:
  virtual ~CommAttachment() = default;
  // NCCL closes the comm. Not called for comms that NCCL forgets.
  virtual void on_close() = 0;
};

// Common to both directions.
class Comm {
 public:
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // NCCL's close: returns at once, and the caller must not use the object again. The comm lets its
  // streams finish, or resets them where an operation is in flight, and then deletes itself.
  virtual void close() = 0;

  virtual Result<MemoryKey*> register_memory(const Region& region) = 0;
  // Waits, for a bounded time, until no unacknowledged byte of the range is in flight, else kills
  // those flows: NCCL frees the memory next.
  virtual Status deregister_memory(MemoryKey* key) = 0;
  // "10.77.1.10:7471 on ztcp0", for messages.
  virtual std::string describe_peer() const = 0;

  // Null until plugin/ sets it. Used by the threads that post, test and close.
  std::unique_ptr<CommAttachment>& attachment() { return attachment_; }

 protected:
  Comm() = default;
  virtual ~Comm() = default;

 private:
  std::unique_ptr<CommAttachment> attachment_;
};

class SendComm : public Comm {
 public:
  // False while the handshake is under way. Once true it stays true. The transport has logged a
  // failure, as it does for a request.
  virtual Result<bool> is_ready() = 0;
  // nullptr: no room or credit now, call again.
  virtual Result<Request*> post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) = 0;
};

class RecvComm : public Comm {
 public:
  // One request for 1 to max_receives buffers, each for one message. Messages meet posts in order;
  // the tags choose among the buffers of one post. nullptr: no room now, call again.
  virtual Result<Request*> post_recv(std::span<const RecvBuffer> buffers) = 0;
  // Makes the bytes received into these buffers visible to the GPU. nullptr: they are visible
  // already.
  virtual Result<Request*> post_flush(std::span<const RecvBuffer> buffers) = 0;
};

// Deleter for the owner of a comm.
struct CloseComm {
  void operator()(Comm* comm) const { comm->close(); }
};
using SendCommPtr = std::unique_ptr<SendComm, CloseComm>;
using RecvCommPtr = std::unique_ptr<RecvComm, CloseComm>;

class Listener {
 public:
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;
  virtual const PeerHandle& handle() const = 0;
  // nullptr: no connection yet.
  virtual Result<RecvCommPtr> accept() = 0;

 protected:
  Listener() = default;
};

class Transport {
 public:
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;
  virtual TransportKind kind() const = 0;
  virtual const std::vector<DeviceProperties>& devices() const = 0;
  // For the init line: the device's name, transport, NIC and GPU, and why a feature is off.
  virtual std::string describe_device(int device) const = 0;
  // Name of the device's transport, for messages.
  virtual std::string carrier(int) const { return to_string(kind()); }
  // Makes a device that stripes each of its connections over all members; the same members give the
  // same device. Its number is not in devices(), which keeps its numbers.
  struct Merged {
    int number = 0;
    DeviceProperties properties;
  };
  virtual Result<Merged> merge(std::span<const int> /*devices*/) {
    return fail(Errc::kInvalidArgument, "NICs of this kind cannot be merged");
  }
  virtual Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) = 0;
  // `peer` is of a kind that kind() can_connect() to. The returned comm is still connecting; see
  // SendComm::is_ready().
  virtual Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                            const CommOptions& options) = 0;
  // Called at process exit. Bounded: notifies the peers of open connections, lets streams finish
  // (FIN acknowledged) and resets the rest. No comm is used afterwards.
  virtual void drain() = 0;

 protected:
  Transport() = default;
};

}  // namespace ztcp
