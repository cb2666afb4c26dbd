// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's half of connections: what plugin/ holds between connect or accept and close. Thin: the
// state that the engine shares lives in CommState and outlives these.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/transport.h"
#include "transport/ustack/comm_state.h"
#include "transport/ustack/nic.h"

namespace ztcp::ustack {

// A registration: a user range and the link's key for it.
struct Registration final : MemoryKey {
  void* address = nullptr;
  std::size_t size_bytes = 0;
  std::uint32_t link_key = kUnmapped;
};

// What both directions share: a NIC, a CommState and the comm's registrations.
class CommBase {
 public:
  CommBase(std::shared_ptr<Nic> nic, CommState& state) : nic_(std::move(nic)), state_(&state) {
    nic_->poller->end_log().opened();
  }
  ~CommBase();
  CommBase(const CommBase&) = delete;
  CommBase& operator=(const CommBase&) = delete;

  Result<MemoryKey*> register_memory(const Region& region);
  Status deregister_memory(MemoryKey* key);
  std::string describe_peer() const;

  Nic& nic() { return *nic_; }
  CommState& state() { return *state_; }
  const CommState& state() const { return *state_; }

 private:
  std::shared_ptr<Nic> nic_;
  CommState* state_;
  std::mutex registrations_mutex_;
  std::vector<std::unique_ptr<Registration>> registrations_;
};

class UstackSendComm final : public SendComm {
 public:
  UstackSendComm(std::shared_ptr<Nic> nic, CommState& state)
      : base_(std::move(nic), state), begun_(std::chrono::steady_clock::now()) {}

  Result<bool> is_ready() override;
  Result<Request*> post_send(std::span<const std::byte> bytes, int tag, MemoryKey* key) override;
  void close() override { delete this; }
  Result<MemoryKey*> register_memory(const Region& region) override {
    return base_.register_memory(region);
  }
  Status deregister_memory(MemoryKey* key) override { return base_.deregister_memory(key); }
  std::string describe_peer() const override { return base_.describe_peer(); }

 private:
  CommBase base_;
  std::chrono::steady_clock::time_point begun_;
};

class UstackRecvComm final : public RecvComm {
 public:
  UstackRecvComm(std::shared_ptr<Nic> nic, CommState& state) : base_(std::move(nic), state) {}

  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override;
  // Host memory: visible to the GPU when test() says done.
  Result<Request*> post_flush(std::span<const RecvBuffer>) override { return nullptr; }
  void close() override { delete this; }
  Result<MemoryKey*> register_memory(const Region& region) override {
    return base_.register_memory(region);
  }
  Status deregister_memory(MemoryKey* key) override { return base_.deregister_memory(key); }
  std::string describe_peer() const override { return base_.describe_peer(); }

 private:
  CommBase base_;
};

}  // namespace ztcp::ustack
