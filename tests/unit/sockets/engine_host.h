// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host on the kernel's loopback without a thread of its own: every turn is the test's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tests/unit/sockets/two_hosts.h"
#include "transport/comms/nic.h"
#include "transport/core/listen_address.h"
#include "transport/sockets/engine.h"

namespace ztcp::sockets {

struct EngineHost final : comms::Nic {
  explicit EngineHost(std::uint64_t secret, std::size_t max_streams = 64) : comms::Nic("lo") {
    EngineConfig config;
    config.device = loopback_device();
    config.session.ack_is_delivery = false;
    config.session.flows = 1;
    config.max_streams = max_streams;
    config.secret = {1, secret};
    auto engine = *Engine::open(config, *open_listener(config.device));
    listen_endpoint = engine->listening();
    comms::PollerConfig poller;
    poller.name = "lo";
    pollers.push_back(std::make_unique<comms::Poller>(poller, std::move(engine)));
  }
  PeerHandle issue_handle(const msg::Cookie& cookie) override {
    return {TransportKind::kSockets, to_bytes({listen_endpoint, {}, cookie})};
  }
};

}  // namespace ztcp::sockets
