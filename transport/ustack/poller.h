// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A poller of one queue of a NIC: for those who want more of it than comms do.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "transport/comms/poller.h"
#include "transport/ustack/queue.h"

namespace ztcp::ustack {

class Poller final : public comms::Poller {
 public:
  // `carrier_advice`, `workers`: see Queue.
  Poller(const comms::PollerConfig& config, std::unique_ptr<link::Link> link,
         const EngineConfig& engine, std::string carrier_advice = {},
         WorkerThreads::Options workers = {})
      : comms::Poller(config,
                      std::make_unique<Queue>(read_clock(), config.name, std::move(carrier_advice),
                                              std::move(link), engine, std::move(workers))),
        queue_(static_cast<Queue&>(backend())) {}

  // with_backend() for body(engine, now).
  template <class Body>
  auto with_engine(Body&& body) {
    return with_backend([&](TimePoint now) { return body(queue_.engine(), now); });
  }

 private:
  Queue& queue_;
};

}  // namespace ztcp::ustack
