// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What NCCL holds as listenComm, sendComm and recvComm, and the fixed table of requests in each
// comm. Owned by Net's registry from the call that made them to NCCL's close or the context's end.
//
// Threads: one comm is used by one progress thread; register_memory and deregister_memory may run
// beside it from a service thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "plugin/report.h"
#include "transport/transport.h"

namespace ztcp::plugin {

// The root of everything a void* of NCCL's may mean. NCCL always gets a NetObject*, so that one
// registry and one close serve all.
class NetObject {
 public:
  virtual ~NetObject() = default;
  NetObject() = default;
  NetObject(const NetObject&) = delete;
  NetObject& operator=(const NetObject&) = delete;
};

class Connection;

// One operation in flight, as NCCL sees it.
class RequestSlot {
 public:
  // False: not yet. True: done, the slot is free again, and *size_bytes is what was moved.
  Told<bool> test(std::size_t* size_bytes);

 private:
  friend class Connection;
  Request* request_ = nullptr;
  Connection* connection_ = nullptr;
};

class Connection : public NetObject {
 public:
  static constexpr std::size_t kMaxRequests = 32;  // NCCL_NET_MAX_REQUESTS

  Told<MemoryKey*> register_memory(void* address, std::size_t size_bytes);
  Told<void> deregister_memory(MemoryKey* key);

 protected:
  Connection();
  virtual Comm& comm() const = 0;

  bool has_free_slot() const { return free_ != 0; }
  RequestSlot* take_slot(Request* request);

 private:
  friend class RequestSlot;
  void release(const RequestSlot& slot);

  std::array<RequestSlot, kMaxRequests> slots_;
  std::uint32_t free_ = ~std::uint32_t{0};  // A bit per free slot.
};

class SendConnection final : public Connection {
 public:
  explicit SendConnection(std::unique_ptr<SendComm> comm);

  // False while the handshake is under way.
  Told<bool> is_ready();
  // nullptr: no slot or credit now, NCCL asks again.
  Told<RequestSlot*> isend(std::span<const std::byte> bytes, MemoryKey* key);

 private:
  Comm& comm() const override { return *comm_; }
  std::unique_ptr<SendComm> comm_;
};

class RecvConnection final : public Connection {
 public:
  explicit RecvConnection(std::unique_ptr<RecvComm> comm);

  Told<RequestSlot*> irecv(std::span<std::byte> buffer, MemoryKey* key);

 private:
  Comm& comm() const override { return *comm_; }
  std::unique_ptr<RecvComm> comm_;
};

// A listener, or the refusal that stands in for one.
class Listening final : public NetObject {
 public:
  // Says once when nobody has come for `patience`: NCCL itself would wait for ever in silence.
  Listening(std::unique_ptr<Listener> listener, std::string device,
            std::chrono::milliseconds patience);
  // Every accept() fails with `refusal`.
  Listening(Errc code, std::string refusal, std::string device);

  // nullptr: nobody yet.
  Told<std::unique_ptr<RecvConnection>> accept();

 private:
  std::unique_ptr<Listener> listener_;  // Null when refusing.
  Errc code_ = Errc::kBadConfig;
  std::string refusal_;
  std::string device_;
  std::chrono::milliseconds patience_{};
  std::optional<std::chrono::steady_clock::time_point> waiting_since_;  // First empty accept().
  bool said_waiting_ = false;
};

}  // namespace ztcp::plugin
