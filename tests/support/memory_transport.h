// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Transport inside one process: what plugin/ is tested over where no NIC, thread or clock is
// wanted. It keeps the real ones' promises: among messages of one tag posting order is matching
// order, no tag waits for another, a small message needs no posted buffer, a connection becomes
// ready without anybody calling accept(), and at most kMaxOutstanding operations are outstanding.
// What a device can - groups, "GPU" memory (memory_region.h) with and without DMA-BUF - its
// properties say.
//
// Thread-safe as transport.h asks: the two ends of a connection may be used by two threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/memory_pipe.h"
#include "transport/transport.h"

namespace ztcp::test {

class MemoryTransport final : public Transport {
 public:
  static constexpr std::size_t kMaxOutstanding = Pipe::kMaxOutstanding;
  static constexpr std::size_t kEagerBytes = Pipe::kEagerBytes;

  explicit MemoryTransport(std::vector<DeviceProperties> devices,
                           TransportKind kind = TransportKind::kUstack);
  ~MemoryTransport() override;

  TransportKind kind() const override { return kind_; }
  const std::vector<DeviceProperties>& devices() const override { return devices_; }
  // As the first of them does, under a name of all.
  Result<Merged> merge(std::span<const int> devices) override;
  std::string describe_device(int device) const override;
  Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) override;
  Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                    const CommOptions& options) override;
  void drain() override { ++drains_; }

  // --- What a test may arrange and observe ---
  void fail_listen(std::optional<Error> error);
  void fail_connect(std::optional<Error> error);
  // is_ready() says "not yet" this often before it is.
  void delay_ready(int calls);
  // Every connection fails from now on, and accepting, too.
  void kill(Error error);
  // No credit: post_send() returns nullptr.
  void withhold_credit(bool withhold);
  int live_listeners() const;
  int live_comms() const;
  int live_keys() const;
  int drains() const { return drains_; }
  // What the last listen and the last connect were for.
  int last_device() const { return last_device_; }
  CommOptions last_options() const { return last_options_; }

 private:
  const DeviceProperties& properties(int device) const {
    return devices_[static_cast<std::size_t>(device)];
  }

  const TransportKind kind_;
  const std::vector<DeviceProperties> devices_;
  std::shared_ptr<MemoryFabric> fabric_;
  int drains_ = 0;
  std::atomic<int> last_device_ = -1;
  CommOptions last_options_;
};

}  // namespace ztcp::test
