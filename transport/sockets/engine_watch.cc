// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Signs of life of a peer whose process is said to have ended: one that drives its NIC itself, so
// that no kernel ends its connections.
#include <algorithm>

#include "transport/sockets/engine.h"

namespace ztcp::sockets {

void Engine::probe(IpAddress remote) {
  for (const auto& stream : streams_)
    if (stream->leads_to(remote)) stream->ask_for_answer();
}

TimePoint Engine::heard_from(TimePoint now, IpAddress remote) const {
  TimePoint heard = TimePoint::min();
  for (const auto& stream : streams_)
    if (stream->leads_to(remote)) heard = std::max(heard, now - stream->silence());
  return heard;
}

}  // namespace ztcp::sockets
