// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The default routers that advertise themselves to a NIC without a configured gateway (RFC 4861
// sections 6.3.4 to 6.3.7), and the choice of the one that leads to other networks.
//
// An advertisement is a claim, and proves nothing: a router is preferred once it has answered a
// neighbour solicitation, and as long as it does not leave several unanswered. Connections leave
// their router only when it has ended its service or is silent, and only for a router that has
// answered just now; without one they stay. A connection that gets stuck causes the solicitations
// (neighbours.h).
//
// The list is short, and a router that answers is never displaced, so that a flood of
// advertisements costs a few comparisons each, and a few solicitations a second.
//
// Owned by a Stack, which has a user of Neighbours for each router: `first_user` and the following.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/address.h"
#include "core/clock.h"
#include "transport/tcp/neighbours.h"
#include "transport/tcp/router_solicitor.h"
#include "transport/tcp/statistics.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::tcp {

class Routers {
 public:
  static constexpr std::size_t kMost = 4;
  // Age of an answer that shows that a router is alive.
  static constexpr Duration kRecently = std::chrono::seconds(1);

  // Has `solicitor` solicit when no router is left.
  Routers(Neighbours& neighbours, RouterSolicitor& solicitor, std::uint32_t first_user)
      : neighbours_(neighbours), solicitor_(solicitor), first_user_(first_user) {}

  // False: there is no room for another router.
  bool on_advertisement(TimePoint now, IpAddress router,
                        const wire::RouterAdvertisement& advertisement);
  // Ends the service of routers at the end of their lifetime.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_deadline_; }

  // Whether a router serves, or at least one says so.
  bool has_one() const;
  // The router for new connections.
  std::optional<IpAddress> current() const;
  // Chooses again, after any event that may concern a router. Returns a change, once.
  std::optional<RouterChange> choose();
  // Calls move(from, left, to) for each router `left` with connections that are to leave it for
  // the current one, which has just answered; from and to are the routers' users of Neighbours.
  template <class Fn>
  void for_each_move(TimePoint now, Fn&& move) {
    if (current_ == kMost) return;
    for (std::size_t i = 0; i < kMost; ++i) {
      if (i == current_ || !is_to_be_left(i)) continue;
      if (neighbours_.has_other_users(user(i))) {
        if (neighbours_.answered(user(current_)) + kRecently >= now)
          move(user(i), slots_[i].address, user(current_));
        else
          neighbours_.confirm(now, user(current_));  // Its answer has the connections move.
      }
      if (slots_[i].has_ended && !neighbours_.has_other_users(user(i))) forget(i);
    }
  }

 private:
  // In the order of preference (RFC 4861 section 6.3.6).
  enum class Standing : std::uint8_t { kSilent, kUnknown, kAnswers };
  struct Slot {
    bool is_used = false;
    bool has_ended = false;  // Its lifetime is over; connections may still use it.
    IpAddress address;
    wire::RouterPreference preference{};
    TimePoint until = kNever;
  };

  std::uint32_t user(std::size_t slot) const {
    return first_user_ + static_cast<std::uint32_t>(slot);
  }
  Standing standing(std::size_t slot) const;
  bool is_to_be_left(std::size_t slot) const {
    return slots_[slot].is_used && (slots_[slot].has_ended || standing(slot) == Standing::kSilent);
  }
  bool is_better(std::size_t slot, std::size_t than) const;
  std::size_t find(IpAddress router) const;
  std::size_t find_room() const;
  void forget(std::size_t slot);
  void set_deadline();

  Neighbours& neighbours_;
  RouterSolicitor& solicitor_;
  const std::uint32_t first_user_;
  std::array<Slot, kMost> slots_{};
  std::size_t current_ = kMost;  // kMost: none.
  IpAddress told_;               // The router of the last change returned.
  TimePoint next_deadline_ = kNever;
};

}  // namespace ztcp::tcp
