// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A connection's entry on the statistics page, with its rails as flows. The comm's thread adds
// latencies; all else is the control thread's, which reads the counts of the comm's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/clock.h"
#include "transport/comms/connection_page.h"
#include "transport/verbs/message_ages.h"
#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

class Connection;
struct RailFacts;
struct RailState;

class ConnectionReport {
 public:
  // Null: the page is off, or memory is short.
  static std::unique_ptr<ConnectionReport> open(const comms::LanePlace& place,
                                                const Connection& connection,
                                                std::uint64_t communicator);

  // --- The comm's thread -------------------------------------------------------------------------
  void add_latency(std::size_t size_bytes, Duration latency) {
    page_->add_latency(size_bytes, latency);
  }

  // --- The control thread ------------------------------------------------------------------------
  // `is_closing`: the comm is closed.
  void refresh(TimePoint now, Connection& connection, bool is_closing,
               comms::DeferredLog& log) noexcept;
  void end(TimePoint now, comms::DeferredLog& log) { page_->end(now, log); }
  // NCCL closes the comm. Under the control thread's lock, by the thread that owned the comm.
  void note_closed() { page_->note_closed(); }
  // Sums over all rails, at the last refresh.
  std::uint64_t rail_failures() const { return rail_failures_; }
  std::uint64_t rail_recoveries() const { return rail_recoveries_; }

 private:
  struct Names {
    std::string local;
    std::string remote;
  };
  static Names names_of(const RailState& rail, const RailFacts& peer);

  explicit ConnectionReport(std::unique_ptr<comms::ConnectionPage> page) : page_(std::move(page)) {}
  void read(TimePoint now, Connection& connection, bool is_closing, comms::DeferredLog& log);
  // Returns the bytes of all rails.
  std::uint64_t note_rails(Connection& connection);
  void note_credit(TimePoint now, bool lacks_slot, std::uint64_t waits);

  const std::unique_ptr<comms::ConnectionPage> page_;
  std::array<Names, kMaxRails> names_;
  MessageAges ages_;
  bool has_serving_rail_ = false;
  std::uint64_t rail_failures_ = 0;
  std::uint64_t rail_recoveries_ = 0;
  // At the last refresh.
  std::uint64_t polls_ = 0;
  TimePoint refreshed_at_{};
  bool lacked_slot_ = false;
  std::uint64_t slot_waits_ = 0;
  Duration slot_wait_time_{};
};

}  // namespace ztcp::verbs
