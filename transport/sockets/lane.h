// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A lane is a device's execution context: kernel sockets, the sessions on them, and turn(), which
// moves bytes between the two. No call blocks.
//
// A device may have several lanes, each with a poller of its own, so that several threads serve its
// connections. Lanes share only the address and the tables that a flow's handshake reads. The first
// lane has the listener and deals accepted connections to all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wake_event.h"
#include "core/worker_threads.h"
#include "transport/comms/backend.h"
#include "transport/comms/path_log.h"
#include "transport/comms/stranger_log.h"
#include "transport/msg/sessions.h"
#include "transport/sockets/bulk_calls.h"
#include "transport/sockets/descriptor_budget.h"
#include "transport/sockets/kernel/advice.h"
#include "transport/sockets/kernel/congestion_choice.h"
#include "transport/sockets/kernel/device.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/sockets/lane_counts.h"
#include "transport/sockets/likely_stream.h"
#include "transport/sockets/rx_placement.h"
#include "transport/sockets/stream.h"

namespace ztcp::sockets {

struct LaneConfig {
  Device device;
  SocketTimes times;
  Duration connect_timeout = std::chrono::seconds(20);
  msg::SessionSettings session;  // ack_is_delivery: false.
  msg::ClusterKey cluster_key{};
  // Shared by all lanes of the process. Null: the lane has its own.
  std::shared_ptr<DescriptorBudget> descriptors;
  std::size_t max_pending_streams = 256;
  std::array<std::uint64_t, 2> secret{};
  std::size_t workers = 0;  // Threads that do system calls for bulk data.
  WorkerThreads::Options worker_options;
  // Which of the device's lanes has a session. Null: this is the only lane.
  std::shared_ptr<msg::SessionPlaces> places;
  std::uint8_t place = 0;
  // Limits the sessions of all lanes of the device. Null: session.max_sessions is the only limit.
  std::shared_ptr<msg::SessionBudget> budget;
  // Spreads the flows of all lanes over the NIC's receive queues. Null: one or unknown.
  std::shared_ptr<RxPlacement> rx_placement;
  std::function<std::optional<std::uint32_t>(const Fd&)> read_rx_queue = rx_queue;
};

class Lane final : public comms::Backend, private msg::StreamSource, private StreamHost {
 public:
  // Without a listener (no descriptor) the lane serves connections dealt to it; see deal_to().
  static Result<std::unique_ptr<Lane>> open(LaneConfig config, Listening listener);
  ~Lane() override;

  void start() override;
  void limit_waits(TimePoint end) override { worker_threads_.set_wait_deadline(end); }

  // Wakes this lane's poller; used by the lane that deals connections to this one.
  const std::shared_ptr<WakeEvent>& wake() const { return wake_; }

  Endpoint listening() const override { return listener_.endpoint; }
  // The name of the one that accepted sockets have.
  std::string congestion_control() const { return congestion_control_of(listener_.fd); }
  // Deals connections that this lane's listener accepts: to the lane that has their session, or for
  // a new session round-robin, beginning with `first`. `lanes` is indexed by place and includes
  // this lane, which is destroyed first. Called before the first turn.
  void deal_to(std::vector<Lane*> lanes, std::size_t first) {
    dealt_to_ = std::move(lanes);
    next_dealt_to_ = first;
  }

  comms::TurnOutcome turn(TimePoint now, comms::Doorbell& doorbell) override;
  TimePoint next_deadline() const override;

  msg::Sessions& sessions() override { return sessions_; }
  void probe(IpAddress remote) override;
  TimePoint heard_from(TimePoint now, IpAddress remote) const override;
  std::size_t unfinished() const override;
  // Nothing to do: the kernel has copies of the bytes given to it, and a stream drops the rest when
  // it ends.
  void abandon_payload() override {}

  std::string summary() const override;
  void read_counters(stats::CounterValues& to) const override;
  std::uint64_t queued_bytes() const override { return counters_.queued_bytes; }

  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}

  std::string down_advice() const override {
    return interface_advice(interface_state_.load(std::memory_order_relaxed),
                            config_.device.interface);
  }
  std::string advice_for(Errc code) const override { return failure_advice(code, config_.device); }
  std::string route_advice(IpAddress remote) const override;
  std::string lost_reason() const override { return {}; }
  const char* lost_advice() const override { return ""; }
  Error lost_error() const override { return {}; }

 private:
  Lane(LaneConfig config, Fd epoll, std::shared_ptr<WakeEvent> wake, Listening listener);
  std::string losses() const;
  LaneCounts counts() const;

  Result<Stream*> dial(TimePoint now, Endpoint remote, StreamEvents& events,
                       const DialSettings& settings) override;
  Result<Stream*> dial_now(TimePoint now, Endpoint remote, StreamEvents& events,
                           const DialSettings& settings);
  msg::PathEvents* path_events() override { return &path_log_; }
  bool has_spare_stream() const override { return has_spare_for(1); }
  void on_connected(const Fd& fd) override { limit_silence(fd, config_.times); }
  void on_shut_window(const Fd& fd, Duration lasted) override;
  void on_sendable(SocketStream& stream) override;
  void on_readable(SocketStream& stream) override { note_readable(stream); }
  void on_delivery_asked(SocketStream& stream) override;
  void on_gone(SocketStream& stream) override;

  StreamHost& host() { return *this; }
  bool has_spare_for(std::size_t further) const;
  bool watch(int fd, SocketStream* stream, std::uint32_t events);
  bool watch(SocketStream& stream);
  void read_directly(SocketStream* stream);
  SocketStream& add(std::unique_ptr<SocketStream> stream);
  bool receive(TimePoint now, bool asks_all);
  bool poll(TimePoint now);
  void note_readable(SocketStream& stream);
  bool collect_calls(TimePoint now);
  bool accept_all(TimePoint now);
  bool accept_next(TimePoint now);
  bool serve_pending(TimePoint now);
  void check_pending(TimePoint now);
  void deal(TimePoint now, Accepted accepted, std::optional<std::uint64_t> session);
  std::uint8_t assign(std::optional<std::uint64_t> session);
  void take_dealt(TimePoint now);
  void take(TimePoint now, Accepted accepted);
  std::optional<std::uint32_t> rx_queue_of(const Accepted& accepted);
  void note_shortage(TimePoint now, const Error& error);
  bool receive_all(TimePoint now);
  bool send_all(TimePoint now);
  void tell_deliveries(TimePoint now, bool has_come);
  void check(TimePoint now);
  void check_for_log(TimePoint now);
  void check_strangers(TimePoint now);
  void check_interface(TimePoint now);
  void check_losses(TimePoint now);
  void reap(TimePoint now);

  const LaneConfig config_;
  const Fd epoll_;
  const std::shared_ptr<WakeEvent> wake_;
  const Listening listener_;
  comms::PathLog path_log_;
  std::atomic<InterfaceState> interface_state_{InterfaceState::kUp};
  WorkerThreads worker_threads_;
  BulkCalls bulk_calls_;
  StreamCounters counters_;
  std::vector<std::unique_ptr<SocketStream>> streams_;
  DescriptorBudget::Part descriptors_;  // Those of streams_.
  std::vector<SocketStream*> readable_;
  LikelyStream<SocketStream> likely_;
  SocketStream* direct_ = nullptr;  // Read in every turn, without EPOLLIN.
  int turns_since_poll_ = 0;
  TimePoint next_poll_{};
  int posts_since_receive_ = 0;
  std::vector<SocketStream*> sendable_;
  std::vector<SocketStream*> sending_;      // The list that send_all() works on.
  std::vector<SocketStream*> undelivered_;  // Their users wait for the peer's acknowledgement.
  std::size_t next_undelivered_ = 0;
  TimePoint next_delivery_{};
  bool has_gone_ = false;
  bool must_accept_ = false;  // The accept queue may hold a connection.
  TimePoint accept_again_{};  // Pause until then, after a shortage.
  TimePoint next_check_{};    // At the deadlines of streams.
  std::size_t next_checked_ = 0;
  TimePoint next_interface_check_{};
  TimePoint next_loss_check_{};
  std::size_t checked_for_losses_ = 0;  // Round-robin over streams_.
  TimePoint next_complaint_{};          // About a shortage.
  TimePoint next_nobody_left_{};
  comms::StrangerLog stranger_log_;
  // An accepted connection whose first record, which names its session, has not arrived.
  struct PendingConnection {
    Accepted accepted;
    TimePoint until;  // The record's deadline.
  };
  std::vector<PendingConnection> pending_;
  TimePoint next_pending_check_{};
  std::vector<Lane*> dealt_to_;  // Empty: this is the only lane.
  std::size_t next_dealt_to_ = 0;
  // The latest assignments of new sessions to lanes.
  struct Assignment {
    std::uint64_t session = 0;
    std::uint8_t place = 0;
  };
  std::array<Assignment, 64> assignments_{};
  std::size_t assignment_count_ = 0;
  std::mutex dealt_mutex_;
  std::vector<Accepted> dealt_;  // To this lane, by the lane with the listener.
  std::atomic<bool> has_dealt_{false};
  std::unique_ptr<std::byte[]> scratch_;
  msg::Sessions sessions_;  // The last member, so that sessions end before their streams.
};

}  // namespace ztcp::sockets
