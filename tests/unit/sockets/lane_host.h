// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host on the kernel's loopback without a thread of its own: the test runs every turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/listen_address.h"
#include "tests/unit/sockets/two_hosts.h"
#include "transport/comms/comm.h"
#include "transport/comms/listener.h"
#include "transport/comms/nic.h"
#include "transport/comms/shared_places.h"
#include "transport/sockets/lane.h"

namespace ztcp::sockets {

struct LaneHost final : comms::Nic {
  explicit LaneHost(std::uint64_t secret, std::size_t max_streams = 64, std::size_t count = 1,
                    const std::function<void(LaneConfig&)>& change = {})
      : comms::Nic("lo") {
    LaneConfig config;
    config.device = loopback_device();
    config.session.ack_is_delivery = false;
    config.session.flows = 1;
    config.descriptors = std::make_shared<DescriptorBudget>(max_streams);
    config.secret = {1, secret};
    if (count > 1) config.places = std::make_shared<comms::SharedPlaces>(count);
    if (change) change(config);
    Listening listening = *open_listener(config.device);
    listen_endpoint = listening.endpoint;
    for (std::size_t i = 0; i < count; ++i) {
      config.place = static_cast<std::uint8_t>(i);
      auto lane = *Lane::open(config, std::exchange(listening, {{}, listen_endpoint}));
      lanes.push_back(lane.get());
      comms::PollerConfig poller;
      poller.name = count == 1 ? "lo" : "lo lane " + std::to_string(i);
      pollers.push_back(std::make_unique<comms::Poller>(poller, std::move(lane)));
    }
    if (count > 1) lanes.front()->deal_to(lanes, 0);
  }
  PeerHandle issue_handle(const msg::Cookie& cookie) override {
    return {TransportKind::kSockets, to_bytes({listen_endpoint, {}, cookie})};
  }

  std::vector<Lane*> lanes;  // By number.
};

// A connection of the host with itself.
struct OwnConnection {
  explicit OwnConnection(const std::shared_ptr<LaneHost>& host, comms::CommListener& listener) {
    const ListenAddress address = *parse_listen_address(listener.handle().bytes);
    sender = *comms::SendingComm::connect(host, address.endpoint, address.cookie);
    while (receiver == nullptr) {
      if (const auto ready = sender->is_ready(); !ready) {
        ADD_FAILURE() << ready.error().where;
        return;
      }
      receiver = std::move(*listener.accept());
    }
  }

  SendCommPtr sender;
  RecvCommPtr receiver;  // Null: it failed.
};

}  // namespace ztcp::sockets
