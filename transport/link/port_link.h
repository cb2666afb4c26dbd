// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The data path over a queue of a Port; open_memif() and open_pci() make it. All work is per burst,
// without allocation or lock. Every 100 ms receive() does work that is not urgent: reading the
// carrier, reconnecting to a memif peer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/link/line_model.h"
#include "transport/link/link.h"
#include "transport/link/memif_guard.h"
#include "transport/link/open_port.h"
#include "transport/link/tx_builder.h"

struct rte_mbuf;

namespace ztcp::link {

class PortLink final : public Link {
 public:
  // Small: frames that do not fit the ring were built in vain.
  static constexpr std::size_t kTxBurst = 16;

  // The port's start may have failed: a memif client without a server keeps trying.
  explicit PortLink(std::shared_ptr<OpenPort> open, std::uint16_t queue = 0);
  ~PortLink() override;

  const LinkCapabilities& capabilities() const override { return capabilities_; }
  std::size_t receive(std::span<RxFrame> frames) override;
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override;
  TransmitRoom transmit_room(TimePoint now) override;
  LinkState state() override;
  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override;
  void unmap_memory(std::uint32_t key) override;
  void note_abandoned_payload() override;
  const LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return open_->options.description; }

 private:
  static constexpr std::size_t kBurst = 32;

  void check_port();
  void leave_lost_port();
  void unmap_abandoned();
  bool read_carrier();
  bool to_frame(rte_mbuf* mbuf, RxFrame& frame);
  bool pull_headers(rte_mbuf& head);

  const std::shared_ptr<OpenPort> open_;
  Port& port_;
  DmaMap* const user_memory_;
  const std::uint16_t queue_;
  std::optional<MemifGuard> guard_;  // memif only.
  TxBuilder builder_;
  LinkCapabilities capabilities_;
  LinkCounters counters_;
  bool has_line_;  // Its speed limits the bytes that leave the device.
  LineModel line_;
  std::uint64_t next_check_tsc_ = 0;
  std::uint64_t check_interval_tsc_;
  bool started_;
  bool has_left_ = false;
  bool carrier_ = false;      // As of the last check_port().
  unsigned checks_down_ = 0;  // In a row.

  // Keys that were unmapped while the ring may still refer to their memory.
  std::mutex abandoned_mutex_;
  std::vector<std::uint32_t> abandoned_keys_;
  bool has_abandoned_ = false;  // Written by the link's thread alone.
  // Once this many frames were sent, the ring has gone round, and its frames of that time have
  // left.
  std::uint64_t abandoned_until_frame_ = 0;
};

}  // namespace ztcp::link
