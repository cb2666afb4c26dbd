// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace ztcp::tcp {

void TimerWheel::schedule(std::uint32_t node, TimePoint deadline) {
  if (deadline == kNever) return;
  // Past deadlines fire in the next turn: a node that reschedules itself in its callback can't
  // spin, nor be called for each tick of a gap that advance() makes up for.
  const TimePoint rounded = deadline + Duration((1LL << kTickShift) - 1);
  const std::uint64_t tick = std::max(floor_tick(rounded), turn_ + 1);
  if (nodes_[node].queued) {
    if (nodes_[node].tick <= tick) return;
    remove(node);
  }
  nodes_[node].tick = tick;
  insert(node);
}

void TimerWheel::cancel(std::uint32_t node) {
  if (nodes_[node].queued) remove(node);
}

// A node is on the level of the highest digit (base 64) in which its tick differs from the current
// one, so nodes on a finer level are due before it.
void TimerWheel::insert(std::uint32_t index) {
  Node& node = nodes_[index];
  const std::uint64_t differing = (node.tick ^ current_) | (kSlots - 1);
  const unsigned level = (63U - static_cast<unsigned>(std::countl_zero(differing))) / kSlotShift;
  const unsigned slot = (node.tick >> (level * kSlotShift)) & (kSlots - 1);
  node.level = static_cast<std::uint8_t>(level);
  node.slot = static_cast<std::uint8_t>(slot);
  node.queued = true;
  node.previous = kNone;
  node.next = slots_[level][slot];
  if (node.next != kNone) nodes_[node.next].previous = index;
  slots_[level][slot] = index;
  occupied_[level] |= 1ULL << slot;
}

void TimerWheel::remove(std::uint32_t index) {
  Node& node = nodes_[index];
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
  if (node.previous != kNone) {
    nodes_[node.previous].next = node.next;
  } else {
    slots_[node.level][node.slot] = node.next;
    if (node.next == kNone) occupied_[node.level] &= ~(1ULL << node.slot);
  }
  node.queued = false;
}

TimerWheel::Expiry TimerWheel::first() const {
  for (unsigned level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    // All slots of a level are ahead of the current one, within one turn.
    const auto slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
    const unsigned shift = level * kSlotShift;
    const std::uint64_t turn =
        shift + kSlotShift >= 64 ? 0 : current_ >> (shift + kSlotShift) << (shift + kSlotShift);
    return {turn | std::uint64_t{slot} << shift, level, slot};
  }
  return {};
}

TimePoint TimerWheel::next_deadline() const {
  const Expiry next = first();
  if (next.tick == kNoTick) return kNever;
  return TimePoint(Duration(static_cast<Duration::rep>(next.tick << kTickShift)));
}

}  // namespace ztcp::tcp
