// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/routers.h"

#include <algorithm>
#include <tuple>

namespace ztcp::tcp {

bool Routers::has_one() const {
  return std::ranges::any_of(slots_,
                             [](const Slot& slot) { return slot.is_used && !slot.has_ended; });
}

bool Routers::on_advertisement(TimePoint now, IpAddress router,
                               const wire::RouterAdvertisement& advertisement) {
  std::size_t at = find(router);
  if (advertisement.lifetime == Duration::zero()) {
    if (at == kMost) return true;
    slots_[at].has_ended = true;
    if (!has_one()) solicitor_.seek(now);
    set_deadline();
    return true;
  }
  const bool is_new = at == kMost;
  if (is_new) {
    at = find_room();
    if (at == kMost) return false;
    if (slots_[at].is_used) forget(at);
    neighbours_.join(user(at), router);
  }
  // A router that was silent may have come back.
  if (is_new || standing(at) == Standing::kSilent) neighbours_.confirm(now, user(at));
  slots_[at] = {.is_used = true,
                .has_ended = false,
                .address = router,
                .preference = advertisement.preference,
                .until = now + advertisement.lifetime};
  set_deadline();
  return true;
}

void Routers::on_timers(TimePoint now) {
  if (now < next_deadline_) return;
  for (Slot& slot : slots_)
    if (slot.is_used && slot.until <= now) slot.has_ended = true;
  if (!has_one()) solicitor_.seek(now);
  set_deadline();
}

std::optional<IpAddress> Routers::current() const {
  if (current_ == kMost) return std::nullopt;
  return slots_[current_].address;
}

std::optional<RouterChange> Routers::choose() {
  std::size_t best = current_ != kMost && !slots_[current_].has_ended ? current_ : kMost;
  for (std::size_t i = 0; i < kMost; ++i)
    if (slots_[i].is_used && !slots_[i].has_ended && (best == kMost || is_better(i, best)))
      best = i;
  current_ = best;
  const IpAddress now = current().value_or(IpAddress());
  if (now == told_) return std::nullopt;
  return RouterChange{.before = std::exchange(told_, now), .now = now};
}

Routers::Standing Routers::standing(std::size_t slot) const {
  if (neighbours_.is_silent(user(slot))) return Standing::kSilent;
  return neighbours_.find(user(slot)) ? Standing::kAnswers : Standing::kUnknown;
}

bool Routers::is_better(std::size_t slot, std::size_t than) const {
  return std::tuple(standing(slot), slots_[slot].preference) >
         std::tuple(standing(than), slots_[than].preference);
}

std::size_t Routers::find(IpAddress router) const {
  const auto found = std::ranges::find_if(
      slots_, [&](const Slot& slot) { return slot.is_used && slot.address == router; });
  return static_cast<std::size_t>(found - slots_.begin());
}

// A free place, or that of a router without connections to lose: it has ended or never answered.
std::size_t Routers::find_room() const {
  std::size_t room = kMost;
  for (std::size_t i = 0; i < kMost; ++i) {
    if (!slots_[i].is_used) return i;
    if (slots_[i].has_ended || (i != current_ && standing(i) == Standing::kSilent)) room = i;
  }
  return room;
}

void Routers::forget(std::size_t slot) {
  neighbours_.leave(user(slot));
  slots_[slot] = {};
  if (current_ == slot) current_ = kMost;
}

void Routers::set_deadline() {
  next_deadline_ = kNever;
  for (const Slot& slot : slots_)
    if (slot.is_used && !slot.has_ended) next_deadline_ = std::min(next_deadline_, slot.until);
}

}  // namespace ztcp::tcp
