// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Logs trouble on the way to a device's peers while a job runs, such as a peer that stopped
// answering, and its end. At most one line a minute of each kind; they go into the deferred log.
//
// Used with the poller's baton held.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/address.h"
#include "core/clock.h"
#include "transport/comms/deferred_log.h"
#include "transport/msg/session.h"

namespace ztcp::comms {

class PathLog final : public msg::PathEvents {
 public:
  static constexpr Duration kOncePer = std::chrono::minutes(1);

  // `interface`: the network interface under kernel sockets, and its MTU; empty: there is none.
  PathLog(std::string device, DeferredLog& deferred_log, std::string interface = {},
          std::uint32_t mtu_bytes = 0)
      : device_(std::move(device)),
        interface_(std::move(interface)),
        mtu_bytes_(mtu_bytes),
        deferred_log_(deferred_log) {}

  void on_trouble(TimePoint now, Endpoint remote, msg::PeerTrouble trouble,
                  Duration lasted) override;
  void on_trouble_over(TimePoint now, Endpoint remote, msg::PeerTrouble trouble,
                       Duration lasted) override;
  void on_redialled(TimePoint now, Endpoint remote, const msg::Redial& redial) override;
  void on_small_segments(TimePoint now, Endpoint remote, std::uint32_t segment_bytes) override;

  // `repeated_bytes` of the bytes sent in `span` were sent again, most of them to `remote`.
  void loss(TimePoint now, IpAddress remote, std::uint64_t repeated_bytes, std::uint64_t sent_bytes,
            Duration span);
  // The link under the device is down ("eth0 of this host is down: ..."), or up again.
  void link_down(TimePoint now, const std::string& why);
  void link_up(TimePoint now, const std::string& what);

  std::uint64_t flows_redialled() const { return flows_redialled_; }
  // Those among them that left a path which was worse than others.
  std::uint64_t flows_moved() const { return flows_moved_; }

 private:
  enum class Kind : std::uint8_t {
    kSilent,
    kStandsStill,
    kRedialled,
    kMoved,
    kSmall,
    kLoss,
    kLink
  };
  struct Said {
    TimePoint next = TimePoint::min();  // Earliest time of the next line.
    IpAddress remote;                   // The peer of the last line.
    bool is_open = false;               // The end of that trouble is still to be logged.
  };

  bool may_say(TimePoint now, Kind kind, IpAddress remote);
  Said& of(Kind kind) { return said_[static_cast<std::size_t>(kind)]; }

  const std::string device_;
  const std::string interface_;
  const std::uint32_t mtu_bytes_;
  DeferredLog& deferred_log_;
  std::array<Said, 7> said_{};
  std::uint64_t flows_redialled_ = 0;
  std::uint64_t flows_moved_ = 0;
  TimePoint link_down_since_{};
};

}  // namespace ztcp::comms
