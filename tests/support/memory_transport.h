// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Transport inside one process, for tests of plugin/ that need no NIC, thread or clock. It keeps
// the real transports' promises: messages of one tag match in posting order, no tag waits for
// another, a small message needs no posted buffer, a connection becomes ready without a call of
// accept(), and at most kMaxOutstanding operations are outstanding. A device's properties say
// whether it takes groups and "GPU" memory (memory_region.h), with or without DMA-BUF.
//
// Thread-safe as transport.h asks: two threads may use the two ends of a connection.
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
  // The merged device behaves as the first one does and is named after all of them.
  Result<Merged> merge(std::span<const int> devices) override;
  std::string describe_device(int device) const override;
  Result<std::unique_ptr<Listener>> listen(int device, const CommOptions& options) override;
  Result<SendCommPtr> begin_connect(int device, const PeerHandle& peer,
                                    const CommOptions& options) override;
  void drain() override { ++drains_; }

  // --- Arranging and observing, for tests ---
  void fail_listen(std::optional<Error> error);
  void fail_connect(std::optional<Error> error);
  // is_ready() returns false for this many calls.
  void delay_ready(int calls);
  // From now on every connection and every accept fails.
  void kill(Error error);
  // post_send() returns nullptr while no credit is given.
  void withhold_credit(bool withhold);
  // Handles of listeners to come have no zeros in their last bytes.
  void lengthen_handles() { has_long_handles_ = true; }
  int live_listeners() const;
  int live_comms() const;
  int live_keys() const;
  int drains() const { return drains_; }
  // The device and the options of the last listen or connect.
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
  bool has_long_handles_ = false;
  std::atomic<int> last_device_ = -1;
  CommOptions last_options_;
};

}  // namespace ztcp::test
