// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Turns a TxFrame into a chain of mbufs: a header buffer, then user memory attached in place where
// the device (or memif's copying driver) can read it, else copied. Belongs to the link's thread,
// and outlives the use of the port's device, whose driver returns buffers until the end.
#pragma once

#include <cstdint>

#include "core/frame.h"
#include "transport/link/dpdk_port.h"

struct rte_mbuf;

namespace ztcp::link {

class TxBuilder {
 public:
  // The port outlives the builder, which serves one queue.
  TxBuilder(const Port& port, std::uint16_t queue);

  enum class Outcome : std::uint8_t { kBuilt, kNoMemory, kImpossible };
  struct Built {
    Outcome outcome = Outcome::kBuilt;
    rte_mbuf* mbuf = nullptr;  // Owned by the caller when kBuilt.
  };
  Built build(const TxFrame& frame);

  std::uint64_t copied_bytes() const { return copied_bytes_; }
  // Buffers that point at user memory and that the driver has not returned. Zero: the device reads
  // no user memory.
  std::uint64_t attached() const { return attached_; }

 private:
  bool attachable(const TxFrame& frame, const Fragment& fragment) const;
  Built build_chain(const TxFrame& frame, bool copy_all);
  rte_mbuf* attach(const Fragment& fragment);
  bool append_copy(rte_mbuf& head, rte_mbuf*& last, const Fragment& fragment);
  void request_offloads(const TxFrame& frame, rte_mbuf& head) const;

  const PortConfig& config_;
  const PortAbilities& abilities_;
  const PortPools& pools_;
  std::uint32_t max_payload_bytes_;
  std::uint64_t copied_bytes_ = 0;
  std::uint64_t attached_ = 0;
};

}  // namespace ztcp::link
