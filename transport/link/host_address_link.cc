// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/host_address_link.h"

#include <algorithm>

namespace ztcp::link {

std::size_t HostAddressLink::receive(std::span<RxFrame> frames) {
  std::size_t count = 0;
  if (tables_->has_answer(lane_)) [[unlikely]] {
    while (count < frames.size() && answers_.has_room()) {
      const auto answer = tables_->take_answer(lane_);
      if (!answer) break;
      frames[count++] = answers_.make({.own = own_,
                                       .own_mac = inner_->capabilities().mac,
                                       .neighbour = answer->destination,
                                       .neighbour_mac = answer->mac});
    }
  }
  return count + inner_->receive(frames.subspan(count));
}

void HostAddressLink::release(std::span<RxFrame> frames) {
  for (RxFrame& frame : frames)
    if (!frame.kept && frame.handle != nullptr && answers_.take_back(frame.handle))
      frame.handle = nullptr;
  inner_->release(frames);
}

std::size_t HostAddressLink::transmit(std::span<const TxFrame> frames) {
  std::size_t taken = 0;
  while (taken < frames.size()) {
    const auto rest = frames.subspan(taken);
    const auto other = std::find_if_not(rest.begin(), rest.end(), xdp::is_tcp);
    const auto segments = static_cast<std::size_t>(other - rest.begin());
    if (segments > 0) {
      const std::size_t sent = inner_->transmit(rest.first(segments));
      taken += sent;
      if (sent < segments) break;
    }
    if (other == rest.end()) break;
    if (const auto wanted = xdp::asked_neighbour(*other, own_)) tables_->ask(lane_, *wanted);
    ++taken;
  }
  return taken;
}

}  // namespace ztcp::link
