// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One connection's part of the statistics page: its entry, those of its flows, and the latencies of
// its messages. Allocates when the connection or a flow of it opens, and at no other time. Used by
// the holder of the baton. refresh() also judges the oldest message: slow or stalled
// (straggler_log.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/address.h"
#include "core/clock.h"
#include "core/histogram.h"
#include "core/stream.h"
#include "transport/comms/deferred_log.h"
#include "transport/comms/lane_page.h"
#include "transport/comms/straggler_log.h"
#include "transport/msg/credit.h"
#include "transport/msg/session.h"
#include "transport/stats/message_monitor.h"
#include "transport/stats/page_writer.h"

namespace ztcp::comms {

class ConnectionPage {
 public:
  // Null: the page is off, or memory is short.
  static std::unique_ptr<ConnectionPage> open(const LanePlace& place, stats::Way way,
                                              Endpoint remote, std::uint64_t communicator);

  // A small message in kOneOf is counted, and every one above kSmallBytes.
  static constexpr std::size_t kSmallBytes = 4096;
  static constexpr std::uint64_t kOneOf = 16;
  static bool is_counted(std::size_t size_bytes, std::uint64_t number) {
    return size_bytes > kSmallBytes || number % kOneOf == 0;
  }
  void add_latency(std::size_t size_bytes, Duration latency) {
    const Duration::rep ns = latency.count() > 0 ? latency.count() : 0;
    latencies_->add(stats::size_class_of(size_bytes), static_cast<std::uint64_t>(ns));
    ++timed_messages_;
    timed_ns_ += static_cast<std::uint64_t>(ns);
  }
  // NCCL closes the connection: the times of its messages go to its communicator's.
  void note_closed();

  struct Values {
    const char* state = "";
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    std::uint32_t in_flight = 0;
    TimePoint oldest{};  // When the oldest message in flight was posted; zero: none is.
    msg::Awaited awaited = msg::Awaited::kNothing;
    std::optional<msg::PeerTrouble> trouble{};  // Of a send: what its session finds wrong.
    bool is_unpolled = false;  // The thread that would see a message's end does not look for it.
  };
  // A refresh is begin_round(), note_stream() for each living flow, note_credit() of a sending
  // session, note_host(), and refresh().
  void begin_round();
  void note_stream(TimePoint now, std::size_t index, const Stream& stream);
  void note_credit(TimePoint now, const msg::CreditWait& wait);
  // Called in each round, also while the name is not known.
  void note_host(const HostName& host);
  // RDMA has rails in the place of streams.
  struct Rail {
    const char* state = "";
    std::string_view local;
    std::string_view remote;
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t in_flight_bytes = 0;
    std::uint32_t failures = 0;
    std::uint32_t recoveries = 0;
  };
  void note_rail(std::size_t index, const Rail& rail);
  void note_credit_waits(std::uint64_t times, Duration time);
  void refresh(TimePoint now, const Values& values, DeferredLog& log);
  // The connection ends: what it has waited for is summed up.
  void end(TimePoint now, DeferredLog& log) {
    stragglers_->note_end(now, connection_, sums_, log);
    sums_ = {};
  }

 private:
  ConnectionPage(const LanePlace& place, stats::Way way, Endpoint remote,
                 std::uint64_t communicator);
  stats::Waiting waiting_for(const Values& values) const;
  // No byte of a message is on its way: the peer's kernel holds all that its process has not read.
  bool peers_kernel_has_all() const;
  // Updates the marks of slow and stalled messages in the record.
  void judge(TimePoint now, const Values& values, DeferredLog& log);
  // p99 of the messages so far, of the size class with the longest; zero: too few were measured.
  Duration usual_latency() const;

  // Made when a flow is first seen, so that a connection without a place in the table costs little.
  struct Flow {
    stats::FlowRow row;
    stats::FlowRecord record{};
    Endpoint local;
    Endpoint remote;
    Histogram rtts;        // One sample a round, where the stream tells none.
    bool is_seen = false;  // In this round.
  };
  // Adds what has come up since the last round to the lane's sums.
  void add_waits(std::size_t index, const StreamStatistics& from);
  // Null: the table is full, or memory is short.
  Flow* flow(std::size_t index, const StreamStatistics& from);
  Flow* open_flow(std::size_t index, std::string_view local, std::string_view remote);

  const std::shared_ptr<stats::Page> page_;
  const std::shared_ptr<StragglerLog> stragglers_;
  const std::shared_ptr<LaneWaits> waits_;
  StragglerLog::Connection connection_;
  StragglerLog::Sums sums_;
  // Messages with a latency, and the sum.
  std::uint64_t timed_messages_ = 0;
  std::uint64_t timed_ns_ = 0;
  stats::MessageMonitor monitor_;
  stats::LatencyEntry* const latencies_;
  stats::ConnectionRow row_;
  stats::ConnectionRecord record_{};
  std::array<std::unique_ptr<Flow>, msg::kMaxFlows> flows_;
  // The part of each flow in the lane's sums, also of flows without a place in the table.
  struct Summed {
    Endpoint local;
    Endpoint remote;
    std::uint32_t zero_windows = 0;
    Duration zero_window_time{};
  };
  std::array<Summed, msg::kMaxFlows> summed_;
  // All flows together, in this round.
  std::uint64_t moved_bytes_ = 0;
  bool is_window_shut_ = false;
  bool has_stream_ = false;
  bool is_all_acked_ = true;
  std::uint64_t moved_before_ = 0;
  TimePoint moved_at_{};
};

}  // namespace ztcp::comms
