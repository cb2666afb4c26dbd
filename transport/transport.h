// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam between NCCL's door (plugin/) and whatever carries bytes (ustack/, later verbs/ and
// sockets/). Version-free: no NCCL type appears here. Nothing here blocks: what is not ready yet
// says so and is asked again.
//
// Threads, as NCCL uses them: listen, begin_connect, accept, register_memory and every destructor
// run on a proxy service thread; post_send, post_recv and Request::test on that communicator's
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

#include "transport/core/address.h"
#include "transport/core/result.h"

namespace ztcp {

// What a device is, as NCCL asks for it. Strings live as long as the transport.
struct DeviceProperties {
  std::string name;      // Unique per device: "ztcp0".
  std::string pci_path;  // sysfs directory of the NIC's PCI function; empty: none.
  std::uint64_t guid = 0;
  std::uint32_t speed_mbps = 10000;
  std::uint16_t port = 1;
  float latency_us = 0;
  int max_comms = 65536;
  int max_receives = 1;  // Buffers of one grouped receive.
  bool host_pointers = true;
  bool cuda_pointers = false;
  bool dmabuf = false;
  bool registration_is_global = false;
  bool force_flush = false;
};

// What travels in NCCL's handle so that a peer finds a listener: at most 34 bytes, opaque to
// plugin/, which puts magic, version and kind before it (see plugin/handle.h).
struct ListenAddress {
  static constexpr std::size_t kCapacity = 34;
  std::array<std::byte, kCapacity> bytes{};
};

// A registration. NULL is a legal handle to NCCL, so transports return real objects.
class MemoryKey {
 protected:
  ~MemoryKey() = default;
};

// One operation in flight. Lives in its comm's fixed table; dead once test() said done.
class Request {
 public:
  // False: not yet. True: done, and *size_bytes (when not null) is what was sent or received.
  // A failed connection reports its Error on every later call; the transport has warned once, with
  // the peer and the reason, when it was first told.
  virtual Result<bool> test(std::size_t* size_bytes) = 0;

 protected:
  ~Request() = default;
};

// Common to both directions. Destruction is NCCL's close: returns at once, the transport lets the
// streams end in peace behind it.
class Comm {
 public:
  virtual ~Comm() = default;
  virtual Result<MemoryKey*> register_memory(void* address, std::size_t size_bytes) = 0;
  // Waits, bounded, until no unacknowledged byte of the range is in flight, or kills those flows:
  // NCCL frees the memory next.
  virtual Status deregister_memory(MemoryKey* key) = 0;
  // "10.77.1.10:7471 on ztcp0", for messages.
  virtual std::string describe_peer() const = 0;
};

class SendComm : public Comm {
 public:
  // False while the handshake is under way. Once true it stays true.
  virtual Result<bool> is_ready() = 0;
  // nullptr: no slot or credit now, ask again. Order of posting is order of matching.
  virtual Result<Request*> post_send(std::span<const std::byte> bytes, MemoryKey* key) = 0;
};

class RecvComm : public Comm {
 public:
  virtual Result<Request*> post_recv(std::span<std::byte> buffer, MemoryKey* key) = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual const ListenAddress& address() const = 0;
  // nullptr: nobody yet.
  virtual Result<std::unique_ptr<RecvComm>> accept() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const std::vector<DeviceProperties>& devices() const = 0;
  virtual Result<std::unique_ptr<Listener>> listen(int device) = 0;
  // The returned comm is still connecting; see SendComm::is_ready().
  virtual Result<std::unique_ptr<SendComm>> begin_connect(int device,
                                                          const ListenAddress& peer) = 0;
  // The process ends. Bounded: tells the peers of connections that are open still, lets streams
  // finish (FIN acknowledged), resets the rest. Nothing is told or asked of the comms afterwards.
  virtual void drain() = 0;
};

}  // namespace ztcp
