// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A small learning Ethernet switch on the link interface, with seeded impairments at each port.
// Time is an argument, and it owns neither links nor threads, so tests run it in virtual time.
//
// A frame is forwarded in the turn that received it: the frame to send points into the received
// one, which is returned after transmit(). Only frames that must wait (a delay, a rate limit, a
// full transmit ring), or have a changed payload, are copied, once. A slow port does not stop
// reception: its queue grows to a limit and then drops, so that one stopped peer cannot delay the
// others. Owner: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tools/ztcp_switch/delay_line.h"
#include "tools/ztcp_switch/frame_store.h"
#include "tools/ztcp_switch/mac_table.h"
#include "transport/link/impairment.h"
#include "transport/link/link.h"

namespace ztcp::fabric {

struct SwitchSettings {
  Duration mac_age = std::chrono::seconds(300);
  // Per port and direction; frames beyond it are dropped and counted.
  std::uint64_t queue_limit_bytes = 16ULL << 20U;
  // Memory for the frames that wait for the ports' rate limits; 0: as much as their queues need. A
  // port may have as much as is free (a dynamic threshold of 1), so the ports that are busy share
  // it, and a single one gets half.
  std::uint64_t shared_buffer_bytes = 0;
  std::uint64_t seed = 1;
};

struct PortSettings {
  std::string name;
  link::Impairment to_peer;    // Frames that leave the switch here.
  link::Impairment from_peer;  // Frames that enter here.
};

struct PortCounters {
  std::uint64_t rx_frames = 0;  // Entered the switch.
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_frames = 0;  // Left it, including copies made by `duplicate`.
  std::uint64_t tx_bytes = 0;
  std::uint64_t flooded = 0;  // Entered here for a group or unknown address.
  // Dropped on entry.
  std::uint64_t drop_malformed = 0;  // Shorter than an Ethernet header, or a group as its source.
  std::uint64_t drop_same_port = 0;  // The destination is behind the port it came from.
  // Dropped on the way out, except that impairments count where they are configured.
  std::uint64_t drop_oversize = 0;    // Larger than the port's MTU.
  std::uint64_t drop_queue_full = 0;  // Its limit, the rate limit's or shared_buffer_bytes.
  std::uint64_t drop_link_down = 0;   // No peer connected.
  std::uint64_t impaired_loss = 0;
  std::uint64_t impaired_duplicate = 0;
  std::uint64_t impaired_reorder = 0;
  std::uint64_t impaired_corrupt = 0;
  std::uint64_t impaired_ecn = 0;      // CE was set (or already was).
  std::uint64_t queued_frames = 0;     // Waited for the transmit ring.
  std::uint64_t queued_bytes_max = 0;  // Largest backlog ahead of the transmit ring.
};

class FabricSwitch {
 public:
  using Clock = std::function<TimePoint()>;

  explicit FabricSwitch(const SwitchSettings& settings);

  // Before the first turn. `link` is borrowed and outlives the switch.
  PortIndex add_port(PortSettings settings, link::Link& link);

  // One round over all ports. Returns the number of frames moved; 0 lets the caller back off.
  // `clock` is read again once frames are taken: a thread that lost its CPU since `now` would
  // otherwise shorten their delay.
  std::size_t turn(TimePoint now, const Clock& clock);
  // The next time at which turn() has work without new frames; kNever: none.
  TimePoint next_deadline() const;
  // True while frames wait for a transmit ring: the caller must not sleep long.
  bool backlogged() const;

  std::size_t port_count() const { return ports_.size(); }
  const std::string& port_name(PortIndex port) const { return ports_[port].settings.name; }
  const PortCounters& counters(PortIndex port) const { return ports_[port].counters; }
  const link::Link& port_link(PortIndex port) const { return *ports_[port].link; }
  bool port_up(PortIndex port) const { return ports_[port].up; }
  std::size_t known_addresses(TimePoint now) const { return table_.size(now); }
  std::uint64_t moved_addresses() const { return moved_addresses_; }

 private:
  static constexpr std::size_t kBurst = 32;
  // Querying a driver's carrier costs more than an empty burst.
  static constexpr Duration kCarrierInterval = std::chrono::milliseconds(1);

  struct Port {
    PortSettings settings;
    link::Link* link;
    link::Impairer out;
    link::Impairer in;
    bool impaired_out;
    bool impaired_in;
    PortCounters counters;
    // Frames of this turn that still point into received ones. Filled only while `queue` is empty,
    // so that sending `batch` before `queue` keeps the order.
    std::vector<TxFrame> batch;
    std::deque<StoredFrame> queue;  // Waits for a full transmit ring.
    std::uint64_t queue_bytes = 0;
    DelayLine leaving;
    DelayLine entering;
    bool up = false;
  };

  void check_carriers(TimePoint now);
  std::size_t receive(PortIndex port, TimePoint& now, const Clock& clock);
  void enter(PortIndex port, const TxFrame& frame, TimePoint now);
  std::size_t mature(PortIndex port, TimePoint now);
  void forward(PortIndex ingress, const TxFrame& frame, TimePoint now);
  void leave(Port& port, const TxFrame& frame, TimePoint now);
  bool is_buffer_full(const Port& port, std::uint32_t size_bytes, TimePoint now) const;
  void transmit(Port& port, const TxFrame& frame);
  void enqueue(Port& port, StoredFrame&& frame);
  void delay(DelayLine& line, PortCounters& counters, TimePoint arrives, StoredFrame&& frame);
  std::size_t flush_batch(Port& port);
  std::size_t flush_queue(Port& port);
  StoredFrame copy(const TxFrame& frame);
  StoredFrame altered_copy(const TxFrame& frame, const link::Passage& passage,
                           PortCounters& counters);

  SwitchSettings settings_;
  MacTable table_;
  FrameStore store_;
  std::deque<Port> ports_;           // Ports hold frames and can be moved but not copied.
  std::vector<StoredFrame> in_use_;  // Due frames that batches point to until flushed.
  std::array<RxFrame, kBurst> rx_;
  std::uint64_t moved_addresses_ = 0;
  TimePoint next_carrier_check_ = TimePoint::min();
};

// Makes a frame to send that points into `received`. False if it has more pieces than a TxFrame
// holds: then it must be copied into one first.
bool view_of(const RxFrame& received, TxFrame& out);
// Makes a frame to send that points into `bytes`.
void view_of(std::span<const std::byte> bytes, TxFrame& out);
// Sets Congestion Experienced (RFC 3168 section 5) in the IPv4 or IPv6 packet that begins in
// `header`, and updates the IPv4 checksum (RFC 1624). False when the frame is not ECN-capable.
bool mark_congestion(std::span<std::byte> header);

}  // namespace ztcp::fabric
