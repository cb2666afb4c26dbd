// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A device in use: what all its connections share. And what NCCL is shown as one device: a rail, or
// several that were merged, over all of which each connection goes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/comms/end_log.h"
#include "transport/sockets/socket.h"
#include "transport/verbs/device.h"
#include "transport/verbs/registrations.h"

namespace ztcp::verbs {

struct Rail {
  explicit Rail(Device found) : device(std::move(found)), pages(device), ends(device.name) {}

  const Device device;
  PageRegistrations pages;
  comms::EndLog ends;
  std::optional<sockets::Listening> listening;  // Since the first listen; the control thread's.
  std::uint16_t iwarp_port = 0;                 // Where its connection manager listens; likewise.
  std::atomic<bool> is_port_down{false};        // Since it was told so.
  std::atomic<bool> is_lost{false};             // To a connection, since that was said.
};

using Rails = std::vector<std::shared_ptr<Rail>>;

struct RailSet {
  RailSet(std::string shown_as, Rails all)
      : name(std::move(shown_as)), rails(std::move(all)), registrations(pages_of(rails)) {}

  // Over it queue pairs are agreed upon, and it stands for all where one must.
  Rail& first() const { return *rails.front(); }

  const std::string name;
  const Rails rails;  // kMaxRails at most.
  Registrations registrations;

 private:
  static std::vector<PageRegistrations*> pages_of(const Rails& rails) {
    std::vector<PageRegistrations*> out;
    for (const auto& rail : rails) out.push_back(&rail->pages);
    return out;
  }
};

}  // namespace ztcp::verbs
