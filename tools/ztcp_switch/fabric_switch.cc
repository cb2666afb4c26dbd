// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_switch/fabric_switch.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ztcp::fabric {
namespace {

constexpr std::uint32_t kEthernetBytes = 14;
constexpr std::uint32_t kVlanBytes = 4;

std::uint32_t size_of(const TxFrame& frame) { return frame.header_bytes + frame.payload_bytes; }

MacAddress mac_at(const TxFrame& frame, std::size_t offset) {
  MacAddress mac;
  std::memcpy(mac.bytes.data(), frame.header.data() + offset, mac.bytes.size());
  return mac;
}
bool is_group(const MacAddress& mac) { return (mac.bytes[0] & 1U) != 0; }

void add_fragment(TxFrame& frame, std::span<const std::byte> piece) {
  if (piece.empty()) return;
  frame.fragments[frame.fragment_count++] = {piece.data(), static_cast<std::uint32_t>(piece.size()),
                                             kUnmapped};
  frame.payload_bytes += static_cast<std::uint32_t>(piece.size());
}

// Copies the first bytes, so that the header can be changed without touching the payload; an ACK
// fits as a whole.
std::span<const std::byte> begin_view(std::span<const std::byte> head, TxFrame& out) {
  const std::size_t in_header = std::min(head.size(), TxFrame::kHeaderCapacity);
  std::memcpy(out.header.data(), head.data(), in_header);
  out.header_bytes = static_cast<std::uint16_t>(in_header);
  out.l2_bytes = kEthernetBytes;
  out.l3_bytes = 0;
  out.fragment_count = 0;
  out.checksum_offload = false;
  out.copy_payload = true;  // The received frame is returned right after transmit().
  out.segment_size_bytes = 0;
  out.payload_bytes = 0;
  return head.subspan(in_header);
}

}  // namespace

bool view_of(const RxFrame& received, TxFrame& out) {
  add_fragment(out, begin_view(received.head, out));
  if (out.fragment_count + received.more.size() > TxFrame::kMaxFragments) return false;
  for (const std::span<const std::byte> piece : received.more) add_fragment(out, piece);
  return true;
}

void view_of(std::span<const std::byte> bytes, TxFrame& out) {
  add_fragment(out, begin_view(bytes, out));
}

bool mark_congestion(std::span<std::byte> header) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(header[i]); };
  std::size_t ip = kEthernetBytes;
  if (header.size() < ip + 20) return false;
  unsigned ethertype = at(12) << 8U | at(13);
  if (ethertype == 0x8100) {
    ip += kVlanBytes;
    if (header.size() < ip + 20) return false;
    ethertype = at(16) << 8U | at(17);
  }
  if (ethertype == 0x0800 && at(ip) >> 4U == 4) {
    const unsigned ecn = at(ip + 1) & 3U;
    if (ecn == 0) return false;
    const unsigned old_word = at(ip) << 8U | at(ip + 1);
    const unsigned new_word = old_word | 3U;
    header[ip + 1] = static_cast<std::byte>(new_word & 0xffU);
    // RFC 1624 section 3: HC' = ~(~HC + ~m + m').
    unsigned sum =
        (~(at(ip + 10) << 8U | at(ip + 11)) & 0xffffU) + (~old_word & 0xffffU) + new_word;
    sum = (sum & 0xffffU) + (sum >> 16U);
    sum = ~((sum & 0xffffU) + (sum >> 16U)) & 0xffffU;
    header[ip + 10] = static_cast<std::byte>(sum >> 8U);
    header[ip + 11] = static_cast<std::byte>(sum & 0xffU);
    return true;
  }
  if (ethertype == 0x86dd && at(ip) >> 4U == 6) {
    // The traffic class straddles the first two bytes; its ECN bits are 0x30 of the second.
    if ((at(ip + 1) & 0x30U) == 0) return false;
    header[ip + 1] |= std::byte{0x30};
    return true;
  }
  return false;
}

FabricSwitch::FabricSwitch(const SwitchSettings& settings)
    : settings_(settings), table_(settings.mac_age) {}

PortIndex FabricSwitch::add_port(PortSettings settings, link::Link& link) {
  const auto index = static_cast<PortIndex>(ports_.size());
  // Every direction of every port has its own random numbers: traffic at one port does not change
  // the impairments at another.
  link::Dice seeds(settings_.seed + std::uint64_t{index} * 0x10001);
  link::Impairer out(settings.to_peer, seeds.draw());
  link::Impairer in(settings.from_peer, seeds.draw());
  const bool impaired_out = settings.to_peer.any();
  const bool impaired_in = settings.from_peer.any();
  ports_.push_back(Port{.settings = std::move(settings),
                        .link = &link,
                        .out = out,
                        .in = in,
                        .impaired_out = impaired_out,
                        .impaired_in = impaired_in,
                        .counters = {},
                        .batch = {},
                        .queue = {},
                        .queue_bytes = 0,
                        .leaving = {},
                        .entering = {},
                        .up = false});
  ports_.back().batch.reserve(2 * kBurst);
  return index;
}

std::size_t FabricSwitch::turn(TimePoint now, const Clock& clock) {
  check_carriers(now);
  std::size_t moved = 0;
  for (Port& port : ports_) moved += flush_queue(port);
  for (PortIndex i = 0; i < ports_.size(); ++i) {
    moved += mature(i, now);
    moved += receive(i, now, clock);
  }
  return moved;
}

void FabricSwitch::check_carriers(TimePoint now) {
  if (now < next_carrier_check_) return;
  next_carrier_check_ = now + kCarrierInterval;
  for (Port& port : ports_) port.up = port.link->is_up();
}

TimePoint FabricSwitch::next_deadline() const {
  TimePoint next = kNever;
  for (const Port& port : ports_)
    next = std::min({next, port.leaving.next_arrival(), port.entering.next_arrival()});
  return next;
}

bool FabricSwitch::backlogged() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const Port& p) { return !p.queue.empty(); });
}

std::size_t FabricSwitch::receive(PortIndex index, TimePoint& now, const Clock& clock) {
  Port& port = ports_[index];
  const std::size_t count = port.link->receive(rx_);
  if (count == 0) return 0;
  now = clock();
  for (RxFrame& received : std::span(rx_).first(count)) {
    TxFrame frame;
    if (received.head.size() < kEthernetBytes) {
      ++port.counters.drop_malformed;
      continue;
    }
    if (view_of(received, frame)) {
      enter(index, frame, now);
      continue;
    }
    std::size_t total = received.head.size();
    for (const auto piece : received.more) total += piece.size();
    StoredFrame whole = store_.take(static_cast<std::uint32_t>(total));
    std::byte* to = whole.bytes().data();
    to = std::copy(received.head.begin(), received.head.end(), to);
    for (const auto piece : received.more) to = std::copy(piece.begin(), piece.end(), to);
    view_of(whole.bytes(), frame);
    enter(index, frame, now);
    in_use_.push_back(std::move(whole));
  }
  for (Port& egress : ports_) flush_batch(egress);
  for (StoredFrame& frame : in_use_) store_.give(std::move(frame));
  in_use_.clear();
  port.link->release(std::span(rx_).first(count));
  return count;
}

void FabricSwitch::enter(PortIndex index, const TxFrame& frame, TimePoint now) {
  Port& port = ports_[index];
  ++port.counters.rx_frames;
  port.counters.rx_bytes += size_of(frame);
  if (!port.impaired_in) return forward(index, frame, now);

  const link::Passage passage = port.in.admit(now, size_of(frame), port.entering.held_bytes());
  port.counters.impaired_loss += passage.fate == link::Passage::Fate::kLost;
  port.counters.drop_queue_full += passage.fate == link::Passage::Fate::kQueueFull;
  port.counters.impaired_reorder += passage.reordered;
  port.counters.impaired_duplicate += passage.copies == 2;
  port.counters.impaired_corrupt += passage.corrupted;
  for (std::uint8_t i = 0; i < passage.copies; ++i) {
    if (passage.at[i] <= now && !passage.corrupted && !passage.mark_ecn &&
        port.entering.next_arrival() > now) {
      forward(index, frame, now);
    } else {
      delay(port.entering, port.counters, passage.at[i],
            altered_copy(frame, passage, port.counters));
    }
  }
}

std::size_t FabricSwitch::mature(PortIndex index, TimePoint now) {
  Port& port = ports_[index];
  std::size_t moved = 0;
  while (port.entering.next_arrival() <= now && moved < kBurst) {
    in_use_.push_back(port.entering.take());
    TxFrame frame;
    view_of(in_use_.back().bytes(), frame);
    forward(index, frame, now);
    ++moved;
  }
  if (moved > 0) {
    for (Port& egress : ports_) flush_batch(egress);
    for (StoredFrame& frame : in_use_) store_.give(std::move(frame));
    in_use_.clear();
  }
  if (port.leaving.next_arrival() > now) return moved;
  while (port.leaving.next_arrival() <= now) {
    enqueue(port, port.leaving.take());
    ++moved;
  }
  flush_queue(port);
  return moved;
}

void FabricSwitch::forward(PortIndex ingress, const TxFrame& frame, TimePoint now) {
  PortCounters& counters = ports_[ingress].counters;
  const MacAddress source = mac_at(frame, 6);
  if (is_group(source)) {
    ++counters.drop_malformed;
    return;
  }
  moved_addresses_ += table_.learn(now, source, ingress);

  const MacAddress destination = mac_at(frame, 0);
  if (!is_group(destination)) {
    if (const auto known = table_.find(now, destination)) {
      if (*known == ingress) {
        ++counters.drop_same_port;
      } else {
        leave(ports_[*known], frame, now);
      }
      return;
    }
  }
  ++counters.flooded;
  for (PortIndex i = 0; i < ports_.size(); ++i)
    if (i != ingress && ports_[i].up) leave(ports_[i], frame, now);
}

void FabricSwitch::leave(Port& port, const TxFrame& frame, TimePoint now) {
  const std::uint32_t size = size_of(frame);
  if (!port.up) {
    ++port.counters.drop_link_down;
    return;
  }
  if (size > port.link->capabilities().mtu_bytes + kEthernetBytes + kVlanBytes) {
    ++port.counters.drop_oversize;
    return;
  }
  if (!port.impaired_out) return transmit(port, frame);

  if (settings_.shared_buffer_bytes > 0 && is_buffer_full(port, size, now)) {
    ++port.counters.drop_queue_full;
    return;
  }
  const link::Passage passage =
      port.out.admit(now, size, port.queue_bytes + port.leaving.held_bytes());
  port.counters.impaired_loss += passage.fate == link::Passage::Fate::kLost;
  port.counters.drop_queue_full += passage.fate == link::Passage::Fate::kQueueFull;
  port.counters.impaired_reorder += passage.reordered;
  port.counters.impaired_duplicate += passage.copies == 2;
  port.counters.impaired_corrupt += passage.corrupted;
  for (std::uint8_t i = 0; i < passage.copies; ++i) {
    // Forwarded directly only when no frame in the line is due.
    if (passage.at[i] <= now && !passage.corrupted && !passage.mark_ecn &&
        port.leaving.next_arrival() > now) {
      transmit(port, frame);
    } else {
      delay(port.leaving, port.counters, passage.at[i],
            altered_copy(frame, passage, port.counters));
    }
  }
}

bool FabricSwitch::is_buffer_full(const Port& port, std::uint32_t size_bytes, TimePoint now) const {
  std::uint64_t used_bytes = 0;
  for (const Port& other : ports_) used_bytes += other.out.queued_bytes(now);
  const std::uint64_t own_bytes = port.out.queued_bytes(now);
  return used_bytes + own_bytes + size_bytes > settings_.shared_buffer_bytes;
}

void FabricSwitch::transmit(Port& port, const TxFrame& frame) {
  if (!port.queue.empty()) {
    ++port.counters.queued_frames;
    return enqueue(port, copy(frame));
  }
  port.batch.push_back(frame);
  if (port.batch.size() == 2 * kBurst) flush_batch(port);
}

void FabricSwitch::enqueue(Port& port, StoredFrame&& frame) {
  // Frames of this turn that were due earlier go first.
  if (port.queue.empty() && !port.batch.empty()) flush_batch(port);
  if (port.queue_bytes + frame.size_bytes() > settings_.queue_limit_bytes) {
    ++port.counters.drop_queue_full;
    store_.give(std::move(frame));
    return;
  }
  port.queue_bytes += frame.size_bytes();
  port.counters.queued_bytes_max = std::max(port.counters.queued_bytes_max, port.queue_bytes);
  port.queue.push_back(std::move(frame));
}

void FabricSwitch::delay(DelayLine& line, PortCounters& counters, TimePoint arrives,
                         StoredFrame&& frame) {
  if (line.held_bytes() + frame.size_bytes() > settings_.queue_limit_bytes) {
    ++counters.drop_queue_full;
    store_.give(std::move(frame));
    return;
  }
  line.put(arrives, std::move(frame));
}

std::size_t FabricSwitch::flush_batch(Port& port) {
  if (port.batch.empty()) return 0;
  std::vector<TxFrame>& batch = port.batch;
  const std::size_t sent = port.link->transmit(batch);
  for (std::size_t i = 0; i < sent; ++i) port.counters.tx_bytes += size_of(batch[i]);
  port.counters.tx_frames += sent;
  // Frames that did not fit into the ring must outlive the received frame.
  std::vector<TxFrame> rest;
  std::swap(rest, batch);
  for (std::size_t i = sent; i < rest.size(); ++i) {
    ++port.counters.queued_frames;
    enqueue(port, copy(rest[i]));
  }
  std::swap(rest, batch);
  batch.clear();
  return sent;
}

std::size_t FabricSwitch::flush_queue(Port& port) {
  std::size_t total = 0;
  while (!port.queue.empty()) {
    std::array<TxFrame, kBurst> frames;
    const std::size_t count = std::min(port.queue.size(), kBurst);
    for (std::size_t i = 0; i < count; ++i) view_of(port.queue[i].bytes(), frames[i]);
    const std::size_t sent = port.link->transmit(std::span(frames).first(count));
    for (std::size_t i = 0; i < sent; ++i) {
      port.queue_bytes -= port.queue.front().size_bytes();
      port.counters.tx_bytes += port.queue.front().size_bytes();
      store_.give(std::move(port.queue.front()));
      port.queue.pop_front();
    }
    port.counters.tx_frames += sent;
    total += sent;
    if (sent < count) break;
  }
  return total;
}

StoredFrame FabricSwitch::copy(const TxFrame& frame) {
  StoredFrame stored = store_.take(size_of(frame));
  std::byte* to = stored.bytes().data();
  std::memcpy(to, frame.header.data(), frame.header_bytes);
  to += frame.header_bytes;
  for (std::size_t i = 0; i < frame.fragment_count; ++i) {
    std::memcpy(to, frame.fragments[i].data, frame.fragments[i].size_bytes);
    to += frame.fragments[i].size_bytes;
  }
  return stored;
}

StoredFrame FabricSwitch::altered_copy(const TxFrame& frame, const link::Passage& passage,
                                       PortCounters& counters) {
  StoredFrame stored = copy(frame);
  const std::span<std::byte> bytes = stored.bytes();
  if (passage.mark_ecn) counters.impaired_ecn += mark_congestion(bytes);
  if (passage.corrupted) {
    const std::size_t byte = kEthernetBytes + passage.flipped_bit / 8;
    bytes[byte] ^= std::byte{1} << (passage.flipped_bit % 8);
  }
  return stored;
}

}  // namespace ztcp::fabric
