// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// State that the connections of one Stack share. Owned by the Stack.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/intrusive_list.h"
#include "core/stream.h"
#include "transport/tcp/advertised_address.h"
#include "transport/tcp/control_queue.h"
#include "transport/tcp/demux.h"
#include "transport/tcp/fitting_ports.h"
#include "transport/tcp/header_template.h"
#include "transport/tcp/held_frames.h"
#include "transport/tcp/isn.h"
#include "transport/tcp/neighbours.h"
#include "transport/tcp/poll_gaps.h"
#include "transport/tcp/reassembly.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/router_solicitor.h"
#include "transport/tcp/routers.h"
#include "transport/tcp/settings.h"
#include "transport/tcp/source_ports.h"
#include "transport/tcp/stack.h"
#include "transport/tcp/timer_wheel.h"
#include "transport/tcp/work_queue.h"

namespace ztcp::tcp {

class Connection;

struct StackContext {
  StackContext(StackConfig stack_config, const std::array<std::uint64_t, 2>& secret)
      : config(std::move(stack_config)),
        window(Receiver::choose_window(
            std::min(config.tcp.receive_window_bytes, TcpSettings::kFirstWindowBytes),
            config.tcp.receive_window_bytes)),
        held(config.max_held_bytes, config.max_held_frames, config.shard),
        unguessable(secret),
        ports(config),
        demux(config.max_connections, unguessable.table_secret()),
        wheel(static_cast<std::uint32_t>(config.max_connections)),
        ready(static_cast<std::uint32_t>(config.max_connections)),
        neighbours(config.mac, config.address, config.gateway,
                   config.max_connections + (config.finds_router ? Routers::kMost : 0),
                   unguessable.table_secret(), counters),
        zeros(config.mtu_bytes) {
    retired.reserve(config.max_connections);
    if (config.finds_router)
      routers.emplace(neighbours, solicitor, static_cast<std::uint32_t>(config.max_connections));
    if (config.finds_address) advertised.emplace(config.mac, config.shard.index == 0);
  }

  // Payload of a full-size segment without options.
  std::uint16_t mss_bytes() const {
    return static_cast<std::uint16_t>(config.mtu_bytes - config.ip_header_bytes() -
                                      wire::kTcpBytes);
  }
  bool hears_routers() const { return routers || advertised; }
  bool has_address() const { return config.address.address != IpAddress(); }
  // The lifetime of our address is over.
  bool has_lost_address() const { return advertised && has_address() && !advertised->is_valid(); }
  Endpoint local(std::uint16_t port) const { return {config.address.address, port}; }

  StreamAcceptor* find_listener(std::uint16_t port) const {
    for (const Listener& listener : listeners)
      if (listener.port == port) return listener.acceptor;
    return nullptr;
  }

  bool is_free(Endpoint remote, std::uint16_t port) const {
    return remote != local(port) && find_listener(port) == nullptr &&
           demux.find(Demux::key(remote, port)) == Demux::kNone;
  }
  // For a connection to `remote`. `tried`: ports tried already.
  std::optional<std::uint16_t> choose_port(Endpoint remote, int tried) {
    const std::uint32_t start = unguessable.port_offset(local(0), remote);
    return ports.choose(start, remote, tried,
                        [&](std::uint16_t port) { return is_free(remote, port); });
  }

  // The NIC delivered the frame to another stack's queue, and that stack handed it over.
  bool was_handed_over(const RxFrame& frame) const {
    return ports.is_shared() && frame.port != config.shard.index;
  }

  // A connection has ended; its slot is reused once nothing on the call stack refers to it.
  void retire(std::uint32_t index, Demux::Key key) {
    demux.remove(key);
    wheel.cancel(index);
    retired.push_back(index);
  }

  // For a connection's segments. `label_changes`: how often the connection has changed its flow
  // label.
  void build(HeaderTemplate& header, std::uint8_t dscp, MacAddress to, std::uint16_t local_port,
             Endpoint remote, bool with_timestamps, std::uint32_t label_changes = 0) const {
    const std::uint32_t flow_label =
        config.is_ipv6() ? unguessable.flow_label(local(local_port), remote, label_changes) : 0;
    header.build(config, dscp, to, local_port, remote, flow_label, with_timestamps);
  }

  struct Reset {
    MacAddress to;
    Endpoint remote;
    std::uint16_t local_port = 0;
    SeqNum seq;
    SeqNum ack;
    bool with_ack = false;
    std::optional<std::uint8_t> dscp{};  // Absent: no connection has one, so the stack's.
  };
  void send_reset(const Reset& reset) {
    TxFrame* frame = control.add();
    if (frame == nullptr) return;
    HeaderTemplate header;
    build(header, reset.dscp.value_or(config.dscp), reset.to, reset.local_port, reset.remote,
          /*with_timestamps=*/false);
    const wire::TcpFlags flags = reset.with_ack ? wire::kRst | wire::kAck : wire::kRst;
    header.write({.seq = reset.seq,
                  .ack = reset.ack,
                  .flags = flags,
                  .window = 0,
                  .timestamps = {},
                  .ecn = {}},
                 *frame);
    ++counters.tx_resets;
  }

  struct Listener {
    std::uint16_t port;
    StreamAcceptor* acceptor;
  };

  StackConfig config;
  Receiver::Window window;
  Counters counters;
  HeldFrames held;
  Unguessable unguessable;
  SourcePorts ports;
  FittingPorts fitting_ports;
  Demux demux;
  TimerWheel wheel;
  WorkQueue ready;  // Connections that may have something to send.
  ControlQueue control;
  Neighbours neighbours;
  RouterSolicitor solicitor;
  std::optional<AdvertisedAddress> advertised;  // Where the config names no address.
  std::optional<Routers> routers;  // Where the config names no gateway but is to find one.
  PollGaps poll_gaps;
  Duration rto_floor{};
  // Connections that no user knows, oldest first: the first is dropped when its slot is needed, and
  // finding it must be cheap under a flood.
  IntrusiveList<Connection> half_open;
  IntrusiveList<Connection> time_wait;
  IntrusiveList<Connection> resetting;  // Ended, but their RST has not been sent.
  std::uint32_t half_open_count = 0;
  ChangeQueue<PathMtuChange> path_changes;
  ChangeQueue<CongestionControlChange> control_changes;
  ChangeQueue<RouterChange> router_changes;
  ChangeQueue<Reroute> reroutes;
  StreamHealth health_at_end;    // Saved while on_failed() is running.
  std::vector<std::byte> zeros;  // Payload of path probes.
  std::vector<Listener> listeners;
  std::vector<std::uint32_t> retired;
};

}  // namespace ztcp::tcp
