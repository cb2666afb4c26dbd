// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/advertised_address.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "core/interface_identifier.h"

namespace ztcp::tcp {
namespace {

constexpr std::uint8_t kPrefixBits = 64;  // The interface identifier has the other 64.

// RFC 4862 section 5.5.3 b, c, d.
bool is_usable(const wire::AdvertisedPrefix& prefix) {
  const IpAddress address = prefix.prefix.address;
  return prefix.prefix.length == kPrefixBits && address.high != 0 && !address.is_link_local_v6() &&
         !address.is_multicast() && prefix.preferred <= prefix.valid;
}

// Hosts of one link are to choose the same prefix, so the order depends on the advertisement alone.
bool is_better(const wire::AdvertisedPrefix& a, const wire::AdvertisedPrefix& b) {
  const auto rank = [](const wire::AdvertisedPrefix& one) {
    return std::tuple(one.preferred > Duration::zero(), one.is_on_link);
  };
  return rank(a) > rank(b);
}

}  // namespace

bool AdvertisedAddress::on_advertisement(TimePoint now, IpAddress router,
                                         const wire::RouterAdvertisement& advertisement) {
  const wire::AdvertisedPrefix* best = nullptr;
  bool is_again_valid = false;
  for (const auto& prefix : std::span(advertisement.prefixes).first(advertisement.prefix_count)) {
    if (!is_usable(prefix)) continue;
    if (taken_ && prefix.prefix.address.high == taken_->address.address.high)
      is_again_valid = renew(now, router, prefix) || is_again_valid;
    else if (prefix.valid > Duration::zero() && (best == nullptr || is_better(prefix, *best)))
      best = &prefix;
  }
  if (best == nullptr) return is_again_valid;
  if (!taken_) {
    if (!chooses_) return false;
    take(now, router, *best);
    return true;
  }
  if (!noted_other_prefix_) {
    noted_other_prefix_ = true;
    note(now, AddressChange::Kind::kOtherPrefix, router, best->prefix);
  }
  return is_again_valid;
}

void AdvertisedAddress::take(TimePoint now, IpAddress router,
                             const wire::AdvertisedPrefix& prefix) {
  // Where the prefix is not on the link, every other host is reached through the router.
  const std::uint8_t length = prefix.is_on_link ? kPrefixBits : 128;
  taken_ = TakenAddress{.address = {address_of_mac(prefix.prefix.address, mac_), length},
                        .router = router,
                        .valid_until = now + prefix.valid,
                        .preferred_until = now + prefix.preferred};
  is_deprecated_ = prefix.preferred == Duration::zero();
  if (is_deprecated_) note(now, AddressChange::Kind::kDeprecated, router, taken_->address);
}

bool AdvertisedAddress::renew(TimePoint now, IpAddress router,
                              const wire::AdvertisedPrefix& prefix) {
  const Duration left = taken_->valid_until - now;
  if (prefix.valid > kLeastShortened || prefix.valid > left)
    taken_->valid_until = now + prefix.valid;
  else if (left > kLeastShortened)
    taken_->valid_until = now + kLeastShortened;
  taken_->preferred_until = now + prefix.preferred;
  const bool had_ended = has_ended_;
  has_ended_ = taken_->valid_until <= now;
  if (prefix.preferred > Duration::zero() && (is_deprecated_ || had_ended)) {
    is_deprecated_ = false;
    note(now, AddressChange::Kind::kRenewed, router, taken_->address);
  } else if (prefix.preferred == Duration::zero() && !is_deprecated_) {
    is_deprecated_ = true;
    note(now, AddressChange::Kind::kDeprecated, router, taken_->address);
  }
  return had_ended && !has_ended_;
}

void AdvertisedAddress::on_timers(TimePoint now) {
  if (!taken_ || has_ended_) return;
  if (taken_->valid_until <= now) {
    has_ended_ = true;
    note(now, AddressChange::Kind::kEnded, taken_->router, taken_->address);
  } else if (!is_deprecated_ && taken_->preferred_until <= now) {
    is_deprecated_ = true;
    note(now, AddressChange::Kind::kDeprecated, taken_->router, taken_->address);
  }
}

TimePoint AdvertisedAddress::next_deadline() const {
  if (!taken_ || has_ended_) return kNever;
  return is_deprecated_ ? taken_->valid_until
                        : std::min(taken_->valid_until, taken_->preferred_until);
}

void AdvertisedAddress::note(TimePoint now, AddressChange::Kind kind, IpAddress router,
                             IpPrefix prefix) {
  changes_.add({.kind = kind,
                .own = taken_->address.address,
                .prefix = prefix,
                .router = router,
                .valid = std::max(taken_->valid_until - now, Duration::zero())});
}

}  // namespace ztcp::tcp
