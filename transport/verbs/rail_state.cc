// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/rail_state.h"

namespace ztcp::verbs {

const char* RailState::health_text() const {
  switch (health) {
    case Health::kUp:
      return "up";
    case Health::kDraining:
      return "draining";
    case Health::kMute:
      return "mute";
    case Health::kFenced:
      return "fenced";
    case Health::kDown:
      return "down";
    case Health::kOffered:
      return "offered";
    case Health::kProving:
      return "proving";
    case Health::kAccepted:
      return "accepted";
  }
  return "";
}

void RailState::describe(RailFacts& facts) const {
  facts.number = number;
  facts.key = key;
  if (!is_tcp()) {
    queues->tell(facts);
    facts.memory_rkey = region->rkey;
  } else {
    facts.is_tcp = 1;
    facts.queue_pairs = 1;
    rail->device.hca.copy(facts.device.data(), facts.device.size() - 1);
    facts.ticket = ticket;
  }
  if (rail->device.is_iwarp) {
    facts.port = rail->iwarp_port;
  } else if (rail->listening) {
    facts.exchange = gid_of(rail->listening->endpoint.address);
    facts.port = rail->listening->endpoint.port;
  }
}

}  // namespace ztcp::verbs
