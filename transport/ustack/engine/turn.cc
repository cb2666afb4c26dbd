// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/turn.h"

#include <span>

namespace ztcp::ustack {

void Turn::look(TimePoint now) {
  next_look_ = now + kLookInterval;
  if (now >= next_watch_) {
    next_watch_ = now + kWatchInterval;
    watch_.look(now, counts(), [this](const Finding& finding) { events_.on_warning(finding); });
    events_.on_watch(now);
  }
  while (const auto change = engine_.stack().take_path_change()) events_.on_path_mtu(now, *change);
  const link::LinkState state = link_.state();
  if (state != link_state_) {
    link_state_ = state;
    events_.on_link_state(state);
  }
  if (link::is_lost(state))
    clients_.for_each([now](comms::Client& client) { client.on_link_lost(now); });
}

namespace {

// The link has them back also where handling them throws.
struct Lent {
  link::Link& link;
  std::span<RxFrame> frames;
  ~Lent() { link.release(frames); }
};

}  // namespace

bool Turn::receive(TimePoint now) {
  bool any = false;
  for (std::size_t round = 0; round < kBurstsPerTurn; ++round) {
    const std::size_t count = link_.receive(rx_);
    if (count == 0) break;
    any = true;
    const Lent lent{link_, std::span(rx_).first(count)};
    engine_.on_frames(now, lent.frames);
    if (count < rx_.size()) break;
  }
  return any;
}

void Turn::release_held() {
  while (const std::size_t count = engine_.take_released(rx_)) {
    // They were kept until now; release() passes over frames that still are.
    for (RxFrame& frame : std::span(rx_).first(count)) frame.kept = false;
    link_.release(std::span(rx_).first(count));
    if (count < rx_.size()) break;
  }
}

void Turn::bury_retired(TimePoint now) {
  clients_.bury_retired();
  if (clients_.is_empty()) events_.on_nobody_left(now);
}

NicCounts Turn::counts() const {
  return {.tcp = engine_.stack().counters(),
          .acceptor = engine_.sessions().acceptor().counters(),
          .link = link_.counters(),
          .ring_full = transmitter_.refusals(),
          .groups = {}};
}

}  // namespace ztcp::ustack
