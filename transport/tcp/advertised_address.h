// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The address of a NIC whose config names none: a prefix that a router advertises, followed by the
// interface identifier made of the MAC address (RFC 4862 section 5.5, RFC 4291 appendix A).
//
// An advertisement proves nothing. The first one with a usable prefix gives the address, which is
// kept as long as the process lives, since handles and open connections name it. Later
// advertisements of that prefix renew its lifetimes, and can shorten them to two hours at most;
// other prefixes change nothing. A flood of advertisements costs a few comparisons each.
//
// When the valid lifetime ends, no new connection may use the address.
//
// Owned by a Stack.
#pragma once

#include <chrono>
#include <optional>

#include "core/address.h"
#include "core/clock.h"
#include "transport/tcp/statistics.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::tcp {

class AdvertisedAddress {
 public:
  // RFC 4862 section 5.5.3 e.
  static constexpr Duration kLeastShortened = std::chrono::hours(2);

  // `chooses`: false for the other stacks of a NIC, which adopt the address of the first.
  AdvertisedAddress(MacAddress mac, bool chooses) : mac_(mac), chooses_(chooses) {}

  // True: the address has just been taken, or is valid again after its end.
  bool on_advertisement(TimePoint now, IpAddress router,
                        const wire::RouterAdvertisement& advertisement);
  void adopt(const TakenAddress& taken) { taken_ = taken; }
  // Notes the end of lifetimes. To be called at next_deadline().
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;

  const std::optional<TakenAddress>& taken() const { return taken_; }
  // Whether new connections may use the address.
  bool is_valid() const { return taken_ && !has_ended_; }
  // The next change that was not fetched yet.
  std::optional<AddressChange> take_change() { return changes_.take(); }

 private:
  void take(TimePoint now, IpAddress router, const wire::AdvertisedPrefix& prefix);
  // True: the address is valid again.
  bool renew(TimePoint now, IpAddress router, const wire::AdvertisedPrefix& prefix);
  void note(TimePoint now, AddressChange::Kind kind, IpAddress router, IpPrefix prefix);

  const MacAddress mac_;
  const bool chooses_;
  std::optional<TakenAddress> taken_;
  bool is_deprecated_ = false;
  bool has_ended_ = false;
  bool noted_other_prefix_ = false;
  ChangeQueue<AddressChange> changes_;
};

}  // namespace ztcp::tcp
