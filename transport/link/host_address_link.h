// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A link to a NIC that stays with the kernel and shares the host's address. Only TCP segments reach
// the link that it wraps: the stack's ARP and neighbour discovery are answered out of the kernel's
// tables.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/address.h"
#include "transport/link/link.h"
#include "transport/link/xdp/host_tables.h"
#include "transport/link/xdp/neighbour_answer.h"

namespace ztcp::link {

class HostAddressLink final : public Link {
 public:
  // `tables` are shared by the links of a NIC's queues; this one is of `lane`.
  HostAddressLink(std::unique_ptr<Link> inner, std::shared_ptr<xdp::HostTables> tables,
                  std::size_t lane, IpAddress own)
      : inner_(std::move(inner)), tables_(std::move(tables)), lane_(lane), own_(own) {}

  const LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  const LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return inner_->describe(); }
  // The worse one of the NIC's port and the kernel's interface.
  LinkState state() override {
    const LinkState of_port = inner_->state();
    const LinkState of_kernel = tables_->state();
    return is_lost(of_port) || of_kernel == LinkState::kUp ? of_port : of_kernel;
  }
  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override {
    return inner_->map_memory(address, size_bytes);
  }
  void unmap_memory(std::uint32_t key) override { inner_->unmap_memory(key); }
  void note_abandoned_payload() override { inner_->note_abandoned_payload(); }
  TransmitRoom transmit_room(TimePoint now) override { return inner_->transmit_room(now); }

  std::size_t receive(std::span<RxFrame> frames) override;
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override;

 private:
  const std::unique_ptr<Link> inner_;
  const std::shared_ptr<xdp::HostTables> tables_;
  const std::size_t lane_;
  const IpAddress own_;
  xdp::NeighbourAnswers answers_;
};

}  // namespace ztcp::link
