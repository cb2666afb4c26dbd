// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/connection_page.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "transport/stats/communicator_times.h"

namespace ztcp::comms {
namespace {

std::uint64_t ns_of(Duration duration) {
  return static_cast<std::uint64_t>(std::max(duration, Duration::zero()).count());
}

void copy(const StreamStatistics& from, stats::FlowRecord& to) {
  to.in_flight_bytes = from.in_flight_bytes;
  to.cwnd_bytes = from.cwnd_bytes;
  to.peer_window_bytes = from.peer_window_bytes;
  to.own_window_bytes = from.own_window_bytes;
  to.mss_bytes = from.mss_bytes;
  to.rtt_min_ns = ns_of(from.rtt_min);
  to.rtt_ns = ns_of(from.rtt);
  to.sent_bytes = from.sent_bytes;
  to.received_bytes = from.received_bytes;
  to.retransmitted_bytes = from.retransmitted_bytes;
  to.needless_bytes = from.needless_bytes;
  to.zero_window_ns = ns_of(from.zero_window_time);
  to.timeouts = from.timeouts;
  to.fast_recoveries = from.fast_recoveries;
  to.tail_probes = from.tail_probes;
  to.spurious_recoveries = from.spurious_recoveries;
  to.zero_windows = from.zero_windows;
  to.state.set(from.state);
  to.congestion_control.set(from.congestion_control);
}

}  // namespace

std::unique_ptr<ConnectionPage> ConnectionPage::open(const LanePlace& place, stats::Way way,
                                                     Endpoint remote, std::uint64_t communicator) {
  if (place.page == nullptr) return nullptr;
  try {
    return std::unique_ptr<ConnectionPage>(new ConnectionPage(place, way, remote, communicator));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

ConnectionPage::ConnectionPage(const LanePlace& place, stats::Way way, Endpoint remote,
                               std::uint64_t communicator)
    : page_(place.page),
      stragglers_(place.stragglers),
      waits_(place.waits),
      connection_{way, remote, communicator},
      latencies_(page_->latencies(place.device, way, to_string(remote.address))),
      row_(page_->take<stats::ConnectionRecord>()) {
  record_.id = page_->next_connection_id();
  record_.communicator = communicator;
  record_.opened_realtime_ns = stats::Page::realtime_ns();
  record_.device = place.device;
  record_.lane = place.lane;
  record_.way = static_cast<std::uint8_t>(way);
  record_.peer.set(to_string(remote));
  record_.state.set("connecting");
  if (row_) row_.publish(record_);
}

void ConnectionPage::begin_round() {
  moved_bytes_ = 0;
  is_window_shut_ = false;
  has_stream_ = false;
  is_all_acked_ = true;
  for (const std::unique_ptr<Flow>& flow : flows_)
    if (flow != nullptr) flow->is_seen = false;
}

void ConnectionPage::note_stream(TimePoint now, std::size_t index, const Stream& stream) {
  const StreamStatistics from = stream.stream_statistics(now);
  moved_bytes_ += from.sent_bytes + from.received_bytes;
  is_window_shut_ |= from.is_window_shut && from.unsent_bytes != 0;
  has_stream_ = true;
  is_all_acked_ &= from.in_flight_bytes == 0 && from.unsent_bytes == 0;
  add_waits(index, from);
  if (!row_) return;
  Flow* const seen = flow(index, from);
  if (seen == nullptr) return;
  seen->is_seen = true;
  if (from.rtts == nullptr && from.rtt != Duration::zero()) seen->rtts.add(ns_of(from.rtt));
  const Histogram& rtts = from.rtts != nullptr ? *from.rtts : seen->rtts;
  stats::FlowRecord& record = seen->record;
  copy(from, record);
  record.rtt_p50_ns = quantile_ns(rtts.counts(), 0.5);
  record.rtt_p99_ns = quantile_ns(rtts.counts(), 0.99);
  seen->row.publish(record);
}

void ConnectionPage::add_waits(std::size_t index, const StreamStatistics& from) {
  Summed& summed = summed_[index];
  // A flow that was dialled again has another port, and counts from zero.
  if (summed.local != from.local || summed.remote != from.remote)
    summed = {.local = from.local, .remote = from.remote};
  if (from.zero_windows > summed.zero_windows) {
    waits_->zero_windows += from.zero_windows - summed.zero_windows;
    summed.zero_windows = from.zero_windows;
  }
  if (from.zero_window_time > summed.zero_window_time) {
    waits_->zero_window_ns += ns_of(from.zero_window_time - summed.zero_window_time);
    summed.zero_window_time = from.zero_window_time;
  }
}

void ConnectionPage::note_host(const HostName& host) {
  if (host.is_empty() || !connection_.host.is_empty()) [[likely]]
    return;
  connection_.host = host;
  record_.peer_host.set(host.view());
  page_->name_host(*latencies_, host.view());
}

void ConnectionPage::note_rail(std::size_t index, const Rail& rail) {
  moved_bytes_ += rail.sent_bytes + rail.received_bytes;
  if (!row_) return;
  Flow* const seen =
      flows_[index] != nullptr ? flows_[index].get() : open_flow(index, rail.local, rail.remote);
  if (seen == nullptr) return;
  seen->is_seen = true;
  stats::FlowRecord& record = seen->record;
  record.sent_bytes = rail.sent_bytes;
  record.received_bytes = rail.received_bytes;
  record.in_flight_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(rail.in_flight_bytes, UINT32_MAX));
  record.failures = rail.failures;
  record.recoveries = rail.recoveries;
  record.state.set(rail.state);
  seen->row.publish(record);
}

void ConnectionPage::note_credit(TimePoint now, const msg::CreditWait& wait) {
  note_credit_waits(wait.times(), wait.time(now));
}

void ConnectionPage::note_credit_waits(std::uint64_t times, Duration time) {
  const std::uint64_t time_ns = ns_of(time);
  waits_->credit_stalls += times - std::exchange(record_.credit_stalls, times);
  waits_->credit_stall_ns += time_ns - std::exchange(record_.credit_stall_ns, time_ns);
}

ConnectionPage::Flow* ConnectionPage::flow(std::size_t index, const StreamStatistics& from) {
  std::unique_ptr<Flow>& flow = flows_[index];
  // A flow that was dialled again has another port.
  if (flow != nullptr && (flow->local != from.local || flow->remote != from.remote)) flow.reset();
  if (flow != nullptr) return flow.get();
  try {
    Flow* const made = open_flow(index, to_string(from.local), to_string(from.remote));
    if (made == nullptr) return nullptr;
    made->local = from.local;
    made->remote = from.remote;
    return made;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

ConnectionPage::Flow* ConnectionPage::open_flow(std::size_t index, std::string_view local,
                                                std::string_view remote) {
  try {
    stats::FlowRow row = page_->take<stats::FlowRecord>();
    if (!row) return nullptr;
    auto made = std::make_unique<Flow>();
    made->row = std::move(row);
    made->record.connection = record_.id;
    made->record.number = static_cast<std::uint32_t>(index);
    made->record.local.set(local);
    made->record.remote.set(remote);
    flows_[index] = std::move(made);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return flows_[index].get();
}

stats::Waiting ConnectionPage::waiting_for(const Values& values) const {
  if (values.is_unpolled) return stats::Waiting::kThisHost;
  const bool is_silent = values.trouble == msg::PeerTrouble::kSilent;
  switch (values.awaited) {
    case msg::Awaited::kNothing:
      return stats::Waiting::kNothing;
    case msg::Awaited::kConnection:
      return stats::Waiting::kConnecting;
    case msg::Awaited::kPeerData:
      return stats::Waiting::kPeerData;
    case msg::Awaited::kPeerReceive:
      // A receive that the peer has posted is not known if the network is cut.
      return is_silent ? stats::Waiting::kNetwork : stats::Waiting::kPeerReceive;
    case msg::Awaited::kNetwork:
      if (is_silent) return stats::Waiting::kNetwork;
      return is_window_shut_ || peers_kernel_has_all() ? stats::Waiting::kPeerWindow
                                                       : stats::Waiting::kNetwork;
    case msg::Awaited::kApplication:
      return stats::Waiting::kApplication;
  }
  return stats::Waiting::kNothing;
}

bool ConnectionPage::peers_kernel_has_all() const {
  return connection_.way == stats::Way::kSend && has_stream_ && is_all_acked_;
}

Duration ConnectionPage::usual_latency() const {
  constexpr std::uint64_t kLearned = 100;  // Messages of a class, before it counts.
  std::uint64_t longest_ns = 0;
  for (stats::Histogram::Counts& counts : latencies_->by_class) {
    stats::Histogram::Counts now;
    for (std::size_t i = 0; i < now.size(); ++i)
      now[i] = std::atomic_ref(counts[i]).load(std::memory_order_relaxed);
    if (stats::total(now) >= kLearned)
      longest_ns = std::max(longest_ns, stats::quantile_ns(now, 0.99));
  }
  return std::chrono::nanoseconds(longest_ns);
}

void ConnectionPage::judge(TimePoint now, const Values& values, DeferredLog& log) {
  stats::MessageMonitor::Facts facts;
  if (values.oldest != TimePoint{} && values.in_flight != 0) {
    facts.oldest = now - values.oldest;
    facts.still = std::min(facts.oldest, now - moved_at_);
    // The sum over the histograms is worth it only for a message that may be slow.
    if (facts.oldest >= stragglers_->settings().slow_floor) facts.usual = usual_latency();
  }
  using Verdict = stats::MessageMonitor::Verdict;
  if (monitor_.check(facts, stragglers_->settings()) && monitor_.verdict() != Verdict::kFine) {
    ++(monitor_.verdict() == Verdict::kStalled ? sums_.stalled : sums_.slow);
    stragglers_->note(now, monitor_.verdict(), connection_, facts, waiting_for(values), log);
  }
  if (monitor_.verdict() != Verdict::kFine) sums_.longest = std::max(sums_.longest, facts.oldest);
  record_.is_slow = monitor_.verdict() == Verdict::kSlow ? 1 : 0;
  record_.is_stalled = monitor_.verdict() == Verdict::kStalled ? 1 : 0;
  record_.slow_messages = sums_.slow;
  record_.stalled_messages = sums_.stalled;
}

void ConnectionPage::note_closed() {
  if (!stragglers_->settings().is_on) return;
  try {
    stats::communicator_times().add(connection_.communicator,
                                    {.peer = StragglerLog::name_of_peer(connection_),
                                     .way = connection_.way,
                                     .messages = timed_messages_,
                                     .total_ns = timed_ns_});
  } catch (const std::bad_alloc&) {
    // One peer fewer is compared.
  }
}

void ConnectionPage::refresh(TimePoint now, const Values& values, DeferredLog& log) {
  for (std::unique_ptr<Flow>& flow : flows_)
    if (flow != nullptr && !flow->is_seen) flow.reset();
  const std::uint64_t moved = moved_bytes_ + values.messages;
  if (moved != std::exchange(moved_before_, moved) || values.in_flight == 0) moved_at_ = now;
  judge(now, values, log);
  if (!row_) return;
  record_.bytes = values.bytes;
  record_.messages = values.messages;
  record_.messages_in_flight = values.in_flight;
  record_.oldest_ns = values.oldest == TimePoint{} ? 0 : ns_of(now - values.oldest);
  record_.progress_ns = ns_of(now - moved_at_);
  record_.waiting = static_cast<std::uint8_t>(waiting_for(values));
  record_.updated_monotonic_ns = now.time_since_epoch().count();
  record_.state.set(values.state);
  row_.publish(record_);
}

}  // namespace ztcp::comms
