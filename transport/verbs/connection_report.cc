// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/connection_report.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "transport/verbs/connection.h"

namespace ztcp::verbs {
namespace {

const char* state_of(const Connection& connection, bool is_closing) {
  if (connection.has_failed()) return "failed";
  if (is_closing || connection.peer_status().event() == PeerEvent::kClosed) return "closing";
  return connection.phase() == Connection::Phase::kReady ? "open" : "connecting";
}

}  // namespace

std::unique_ptr<ConnectionReport> ConnectionReport::open(const comms::LanePlace& place,
                                                         const Connection& connection,
                                                         std::uint64_t communicator) {
  const bool sends = connection.direction() == Direction::kSend;
  auto page = comms::ConnectionPage::open(place, sends ? stats::Way::kSend : stats::Way::kReceive,
                                          connection.peer(), communicator);
  if (page == nullptr) return nullptr;
  try {
    return std::unique_ptr<ConnectionReport>(new ConnectionReport(std::move(page)));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

ConnectionReport::Names ConnectionReport::names_of(const RailState& rail, const RailFacts& peer) {
  const std::string there = device_of(peer);
  return {rail.rail->device.place(),
          rail.is_tcp() ? "TCP on " + there : fmt::format("{} {}", there, to_string(peer.gid))};
}

std::uint64_t ConnectionReport::note_rails(Connection& connection) {
  const Traffic& traffic = connection.traffic();
  const bool sends = connection.direction() == Direction::kSend;
  std::array<comms::ConnectionPage::Rail, kMaxRails> rails;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  has_serving_rail_ = false;
  rail_failures_ = rail_recoveries_ = 0;
  {
    // Held for a copy of few values: over several rails a thread of NCCL's may want it.
    const auto lock = connection.lock();
    for (const RailState& from : connection.rail_states()) {
      if (names_[count].local.empty())
        names_[count] = names_of(from, connection.peer_facts().on[count]);
      const auto rail = static_cast<std::uint32_t>(count);
      comms::ConnectionPage::Rail& to = rails[count++];
      to.state = from.health_text();
      (sends ? to.sent_bytes : to.received_bytes) = traffic.carried_bytes(rail);
      to.in_flight_bytes = traffic.backlog_bytes(rail);
      to.failures = from.failures;
      to.recoveries = from.recoveries;
      has_serving_rail_ |= from.may_carry();
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    rails[i].local = names_[i].local;
    rails[i].remote = names_[i].remote;
    page_->note_rail(i, rails[i]);
    bytes += rails[i].sent_bytes + rails[i].received_bytes;
    rail_failures_ += rails[i].failures;
    rail_recoveries_ += rails[i].recoveries;
  }
  return bytes;
}

// A wait that lasts from one refresh to the next counts with the time between them.
void ConnectionReport::note_credit(TimePoint now, bool lacks_slot, std::uint64_t waits) {
  const bool goes_on = std::exchange(lacked_slot_, lacks_slot) && lacks_slot &&
                       std::exchange(slot_waits_, waits) == waits;
  slot_waits_ = waits;
  if (goes_on) slot_wait_time_ += now - refreshed_at_;
  page_->note_credit_waits(waits, slot_wait_time_);
}

void ConnectionReport::refresh(TimePoint now, Connection& connection, bool is_closing,
                               comms::DeferredLog& log) noexcept {
  try {
    read(now, connection, is_closing, log);
  } catch (const std::bad_alloc&) {  // The next refresh tries it again.
  }
}

void ConnectionReport::read(TimePoint now, Connection& connection, bool is_closing,
                            comms::DeferredLog& log) {
  const Traffic& traffic = connection.traffic();
  const bool is_ready = connection.phase() == Connection::Phase::kReady;
  const bool is_open = is_ready && !is_closing && !connection.has_failed();
  const bool sends = connection.direction() == Direction::kSend;
  comms::ConnectionPage::Values values{.state = state_of(connection, is_closing)};
  page_->begin_round();
  if (is_ready) {
    page_->note_host(connection.peer_facts().host);
    values.bytes = note_rails(connection);
  }
  const bool lacks_slot = is_open && traffic.lacks_slot();
  values.messages = traffic.messages_done();
  // A message that was not taken waits, too.
  const std::uint64_t waiting = is_open ? traffic.in_flight() + (lacks_slot ? 1U : 0U) : 0U;
  values.in_flight = static_cast<std::uint32_t>(waiting);
  values.oldest = ages_.update(now, values.messages + waiting, values.messages);
  const std::uint64_t polls = traffic.figures().polls.value();
  // A thread that has posted a message asks for its end all the time.
  values.is_unpolled = std::exchange(polls_, polls) == polls && values.oldest < now && waiting != 0;
  using msg::Awaited;
  if (!is_ready)
    values.awaited = connection.has_failed() ? Awaited::kNothing : Awaited::kConnection;
  else if (waiting != 0 && sends)
    values.awaited = lacks_slot && waiting == 1 ? Awaited::kPeerReceive : Awaited::kNetwork;
  else if (waiting != 0)
    values.awaited = has_serving_rail_ ? Awaited::kPeerData : Awaited::kNetwork;
  note_credit(now, lacks_slot, traffic.slot_waits());
  refreshed_at_ = now;
  page_->refresh(now, values, log);
}

}  // namespace ztcp::verbs
