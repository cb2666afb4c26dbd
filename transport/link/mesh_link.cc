// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mesh_link.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace ztcp::link {
namespace {

MacAddress destination(const TxFrame& frame) {
  MacAddress mac;
  static_assert(sizeof(mac.bytes) == 6);
  std::memcpy(mac.bytes.data(), frame.header.data(), mac.bytes.size());
  return mac;
}

class MeshLink final : public Link {
 public:
  MeshLink(std::vector<MeshPort> ports, Duration timeout) : timeout_(timeout) {
    assert(!ports.empty() && ports.size() <= UINT8_MAX);
    capabilities_ = ports.front().link->capabilities();
    assert(!capabilities_.zero_copy);
    for (MeshPort& port : ports) {
      // One flow's frames come by one port, so the limits are those of a single port.
      const LinkCapabilities& own = port.link->capabilities();
      capabilities_.max_kept_bytes = std::min(capabilities_.max_kept_bytes, own.max_kept_bytes);
      capabilities_.max_kept_frames = std::min(capabilities_.max_kept_frames, own.max_kept_frames);
      ports_.push_back({port.peer, std::move(port.link), TimePoint{}, false, false});
    }
  }

  const LinkCapabilities& capabilities() const override { return capabilities_; }

  // Each call begins at another port, so that a busy one does not starve the others.
  std::size_t receive(std::span<RxFrame> frames) override {
    std::size_t count = 0;
    for (std::size_t i = 0; i < ports_.size() && count < frames.size(); ++i) {
      const std::size_t port = (first_ + i) % ports_.size();
      const std::size_t got = ports_[port].link->receive(frames.subspan(count));
      for (RxFrame& frame : frames.subspan(count, got))
        frame.port = static_cast<std::uint8_t>(port);
      count += got;
    }
    first_ = (first_ + 1) % ports_.size();
    return count;
  }

  void release(std::span<RxFrame> frames) override {
    while (!frames.empty()) {
      const std::uint8_t port = frames.front().port;
      const auto end = std::find_if(frames.begin(), frames.end(),
                                    [port](const RxFrame& frame) { return frame.port != port; });
      const auto count = static_cast<std::size_t>(end - frames.begin());
      ports_[port].link->release(frames.first(count));
      frames = frames.subspan(count);
    }
  }

  std::size_t transmit(std::span<const TxFrame> frames) override {
    std::size_t taken = 0;
    while (taken < frames.size()) {
      const std::span rest = frames.subspan(taken);
      const MacAddress to = destination(rest.front());
      if (!is_station(to)) {
        for (Port& port : ports_) flood(port, rest.front());
        ++taken;
        continue;
      }
      const auto end = std::find_if(rest.begin() + 1, rest.end(), [to](const TxFrame& frame) {
        return destination(frame) != to;
      });
      const std::span run = rest.first(static_cast<std::size_t>(end - rest.begin()));
      const std::size_t sent = transmit_to(to, run);
      taken += sent;
      if (sent < run.size()) break;
    }
    return taken;
  }

  // The ports set no limit. They take the time from this call, and so does this link, to measure
  // timeout_.
  TransmitRoom transmit_room(TimePoint now) override {
    now_ = now;
    for (Port& port : ports_) port.link->transmit_room(now);
    return {};
  }

  // Up as soon as one peer can be reached: the others may come later, or be gone.
  LinkState state() override {
    const bool any = std::any_of(ports_.begin(), ports_.end(),
                                 [](const Port& port) { return port.link->is_up(); });
    return any ? LinkState::kUp : LinkState::kDown;
  }

  // All ports copy, by the same driver: the key of one is valid for all.
  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override {
    return ports_.front().link->map_memory(address, size_bytes);
  }
  void unmap_memory(std::uint32_t key) override { ports_.front().link->unmap_memory(key); }

  const LinkCounters& counters() const override {
    counters_ = dropped_here_;
    for (const Port& port : ports_) {
      const LinkCounters& own = port.link->counters();
      counters_.rx_frames += own.rx_frames;
      counters_.rx_bytes += own.rx_bytes;
      counters_.rx_dropped_no_memory += own.rx_dropped_no_memory;
      counters_.rx_bad_checksum += own.rx_bad_checksum;
      counters_.tx_frames += own.tx_frames;
      counters_.tx_bytes += own.tx_bytes;
      counters_.tx_ring_full += own.tx_ring_full;
      counters_.tx_dropped += own.tx_dropped;
      counters_.tx_copied_bytes += own.tx_copied_bytes;
    }
    return counters_;
  }

  std::string describe() const override {
    return fmt::format("a mesh of {}, the first {}", ports_.size(),
                       ports_.front().link->describe());
  }

 private:
  struct Port {
    MacAddress peer;
    std::unique_ptr<Link> link;
    TimePoint full_since;
    bool is_full = false;
    bool is_stalled = false;
  };

  // Returns the length of the prefix sent, as transmit() does.
  std::size_t transmit_to(MacAddress to, std::span<const TxFrame> run) {
    const auto port = std::find_if(ports_.begin(), ports_.end(),
                                   [to](const Port& one) { return one.peer == to; });
    if (port == ports_.end()) {
      dropped_here_.tx_dropped += run.size();
      return run.size();
    }
    const std::size_t sent = port->link->transmit(run);
    if (sent != 0) port->is_full = port->is_stalled = false;
    if (sent == run.size() || ports_.size() == 1) return sent;
    if (!port->is_full) {
      port->is_full = true;
      port->full_since = now_;
    }
    port->is_stalled |= now_ - port->full_since >= timeout_;
    if (!port->is_stalled) return sent;
    dropped_here_.tx_dropped += run.size() - sent;
    return run.size();
  }

  // Dropped if the port is full, as elsewhere: broadcast requests are repeated.
  void flood(Port& port, const TxFrame& frame) {
    if (port.link->is_up() && port.link->transmit(std::span(&frame, 1)) == 0)
      dropped_here_.tx_dropped += 1;
  }

  const Duration timeout_;
  std::vector<Port> ports_;
  std::size_t first_ = 0;  // Port at which the next receive() begins.
  TimePoint now_{};        // Set by transmit_room().
  LinkCapabilities capabilities_;
  LinkCounters dropped_here_;
  mutable LinkCounters counters_;  // The sum made by the last counters().
};

}  // namespace

std::unique_ptr<Link> make_mesh(std::vector<MeshPort> ports, Duration timeout) {
  return std::make_unique<MeshLink>(std::move(ports), timeout);
}

}  // namespace ztcp::link
