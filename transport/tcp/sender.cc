// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up and output. sender_ack.cc has the input, sender_timers.cc the timers.
#include "transport/tcp/sender.h"

#include <algorithm>
#include <cassert>

namespace ztcp::tcp {
namespace {

// Bytes that the scheduler above may queue beyond a window: one of its chunks, so that the next one
// is ready when an ACK comes.
constexpr std::size_t kBacklogBytes = 256U << 10;
// An IPv4 packet has a 16-bit length; minus headers and the longest options.
constexpr std::uint32_t kMaxSuperSegmentBytes = 65535 - 20 - 60;

}  // namespace

Sender::Sender(const Memory& memory, const TcpSettings& settings, const Duration& rto_floor,
               Counters& counters)
    : scoreboard_(memory.records),
      queue_(memory.pieces, memory.copied),
      rtt_({settings.rto_initial, settings.rto_min, settings.rto_max}),
      settings_(settings),
      rto_floor_(rto_floor),
      counters_(counters) {}

void Sender::reset() {
  queue_.reset();
  scoreboard_.reset({});
  snd_una_ = snd_nxt_ = snd_max_ = recovery_point_ = {};
  mss_bytes_ = snd_wnd_bytes_ = max_window_bytes_ = duplicate_acks_ = presumed_bytes_ = 0;
  state_ = State::kOpen;
  fin_queued_ = fin_sent_ = fin_acked_ = false;
  window_limited_ = tail_probe_due_ = full_size_delivered_ = override_due_ = false;
  probe_outstanding_ = undo_armed_ = needless_armed_ = false;
  frto_.stop();
  marked_rounds_.begin();
  news_ = {};
  needed_bytes_ = 0;
  rto_deadline_ = probe_deadline_ = reorder_deadline_ = persist_deadline_ = kNever;
  asked_ = kNever;
  persist_backoff_ = 0;
  peer_ack_delay_ = {};
  tally_ = {};
  shut_since_ = kNever;
  shut_time_ = {};
  rtts_ = {};
  pacer_ = {};
  rack_ = {};
  rtt_ = RttEstimator({settings_.rto_initial, settings_.rto_min, settings_.rto_max});
}

void Sender::begin(TimePoint now, const Terms& terms) {
  snd_una_ = snd_nxt_ = snd_max_ = terms.first;
  snd_wnd_bytes_ = max_window_bytes_ = terms.peer_window_bytes;
  mss_bytes_ = terms.mss_bytes;
  timestamps_ = terms.timestamps;
  sack_ = terms.sack;
  clock_ = terms.clock;
  ecn_.begin(terms.ecn, terms.ecn_changed);
  marked_bytes_ = 0;
  scoreboard_.reset(terms.first);
  const bool is_precise = terms.ecn == EcnMode::kAccurate && !terms.ecn_changed;
  const bool goes_by_marks = is_precise && settings_.congestion_control_by_marks != nullptr;
  congestion_.begin(
      goes_by_marks ? settings_.congestion_control_by_marks : settings_.congestion_control,
      mss_bytes_, settings_.initial_window_segments, terms.first);
  rate_.begin(now);
  told_lost_bytes_ = 0;
  recovery_point_ = pace_round_end_ = terms.first;
  progress_ = heard_shut_ = now;
  set_max_super_segment(max_super_bytes_);
}

void Sender::set_max_super_segment(std::uint32_t bytes) {
  max_super_bytes_ = bytes;
  super_bytes_ = 0;
  if (mss_bytes_ == 0) return;
  const std::uint32_t most = std::min(bytes, kMaxSuperSegmentBytes);
  super_bytes_ = most / mss_bytes_ * mss_bytes_;
  if (super_bytes_ <= mss_bytes_) super_bytes_ = 0;
}

std::size_t Sender::room() const {
  if (fin_queued_ || !queue_.has_room()) return 0;
  // Bytes that are no longer in flight make room in the congestion window, although they stay
  // queued until a hole before them is filled.
  const std::uint32_t landed = scoreboard_.outstanding_bytes() - scoreboard_.in_flight_bytes();
  const std::size_t window =
      std::min(congestion_.window_bytes() + landed, std::max(snd_wnd_bytes_, mss_bytes_));
  const std::size_t most = window + kBacklogBytes;
  const std::size_t queued = queue_.size_bytes();
  return most > queued ? most - queued : 0;
}

std::uint32_t Sender::usable_window() const {
  const std::uint32_t used = bytes_between(snd_una_, snd_nxt_);
  return snd_wnd_bytes_ > used ? snd_wnd_bytes_ - used : 0;
}

// Number of new bytes that may leave in one frame; 0: none.
std::uint32_t Sender::new_data_limit() {
  const std::uint64_t unsent = unsent_bytes();
  if (unsent == 0 || scoreboard_.full()) return 0;
  const std::uint32_t usable = usable_window();
  const std::uint32_t flight = flight_bytes();
  const std::uint32_t cwnd = congestion_.window_bytes();
  auto segment = static_cast<std::uint32_t>(std::min<std::uint64_t>(unsent, mss_bytes_));
  // A window below a segment sends short ones. PRR's may be empty, and then one segment may leave.
  if (segment > cwnd && state_ == State::kOpen) [[unlikely]]
    segment = std::max(cwnd, 1U);
  if (segment > usable) {
    if (usable == 0 || (is_silly(unsent, usable) && !override_due_)) return 0;
    segment = usable;
  }
  if (flight > 0 && flight + segment > cwnd) {
    window_limited_ = true;
    limited_end_ = snd_nxt_;
    return 0;
  }
  if (super_bytes_ == 0 || unsent <= mss_bytes_ || cwnd < flight) return segment;

  std::uint64_t most = std::min({unsent, std::uint64_t{usable}, std::uint64_t{cwnd - flight},
                                 std::uint64_t{super_bytes_}, std::uint64_t{pacer_.most_bytes()},
                                 std::uint64_t{scoreboard_.space()} * mss_bytes_});
  // Only the last segment of all queued bytes may be short.
  if (most < unsent && most != super_bytes_) most -= most % mss_bytes_;
  return std::max(segment, static_cast<std::uint32_t>(most));
}

bool Sender::next(TimePoint now, TxFrame& frame, Outgoing& out) {
  frame.copy_payload = false;
  frame.segment_size_bytes = 0;
  frame.fragment_count = 0;
  frame.payload_bytes = 0;
  out = {};
  if (tail_probe_due_) [[unlikely]] {
    tail_probe_due_ = false;
    if (send_tail_probe(now, frame, out)) return true;
  }
  if (snd_wnd_bytes_ == 0) [[unlikely]]
    note_shut_window(now);
  const bool lost = scoreboard_.lost_bytes() > 0 && !frto_.holds_repeats();
  const std::uint32_t limit = lost ? 0 : new_data_limit();
  if (lost || limit > 0) {
    // The mark stays until the turn ends for another reason: it gives these segments the credit.
    if (!pacer_.may_send(now)) {
      pacer_.set_waiting(true);
      return false;
    }
    return lost ? retransmit(now, frame, out) : send_new(now, limit, frame, out);
  }
  pacer_.set_waiting(false);
  if (congestion_.is_rate_based()) [[unlikely]]
    note_limit();
  if (fin_due() && !fin_sent_ && unsent_bytes() == 0) return send_fin(now, out);
  if (scoreboard_.empty()) arm_timers(now, Wait::kGoesOn);  // The window may be closed.
  return false;
}

bool Sender::retransmit(TimePoint now, TxFrame& frame, Outgoing& out) {
  const std::uint32_t i = scoreboard_.first_lost();
  const std::uint32_t flight = flight_bytes();
  if (flight > 0 && flight + scoreboard_[i].length > congestion_.window_bytes()) return false;
  if (undo_armed_ && !undo_stamped_) {
    undo_stamped_ = true;
    undo_timestamp_ = clock_.at(now);
  }
  send_record(now, i, frame, out);
  return true;
}

void Sender::send_record(TimePoint now, std::uint32_t i, TxFrame& frame, Outgoing& out) {
  const SentRecord record = scoreboard_[i];
  out.seq = record.seq;
  if (record.is(SentRecord::kFin)) {
    out.fin = true;
  } else {
    const auto gathered = queue_.gather(offset(record.seq), record.length, frame.fragments);
    assert(gathered.bytes == record.length);
    frame.fragment_count = gathered.count;
    frame.payload_bytes = gathered.bytes;
    // An ACK of the first transmission may release the memory before the NIC has read this one.
    frame.copy_payload = true;
    out.push = true;
  }
  scoreboard_.mark_retransmitted(i, now);
  note_asked(now);
  if (state_ == State::kRecovery) congestion_.on_recovery_sent(record.length);
  if (state_ != State::kOpen) {
    needed_bytes_ += record.length;
    repeated_end_ = later(repeated_end_, record.end());
  }
  note_rate(now, record.length);
  pacer_.on_sent(now, record.length);
  note_repeated(frame.payload_bytes);
  ++counters_.tx_segments;
  // The answer to a retransmission of the first segment takes a round trip from now, and until then
  // snd.una does not move.
  arm_timers(now, i == 0 ? Wait::kRestarts : Wait::kGoesOn);
}

// RFC 8985 section 7.3: new data if there is any, else the last segment again.
bool Sender::send_tail_probe(TimePoint now, TxFrame& frame, Outgoing& out) {
  if (state_ != State::kOpen || scoreboard_.empty() || probe_outstanding_) return false;
  const std::uint64_t unsent = unsent_bytes();
  const std::uint32_t usable = usable_window();
  const auto fresh = is_silly(unsent, usable)
                         ? 0
                         : static_cast<std::uint32_t>(std::min(
                               {unsent, std::uint64_t{mss_bytes_}, std::uint64_t{usable}}));
  ++counters_.tlp_fired;
  ++tally_.tail_probes;
  probe_outstanding_ = true;
  if (fresh > 0 && !scoreboard_.full()) {
    probe_retransmitted_ = false;
    send_new(now, fresh, frame, out);
  } else {
    probe_retransmitted_ = true;
    send_record(now, scoreboard_.size() - 1, frame, out);
  }
  probe_end_ = snd_nxt_;
  probe_deadline_ = kNever;
  return true;
}

bool Sender::send_new(TimePoint now, std::uint32_t limit_bytes, TxFrame& frame, Outgoing& out) {
  const auto gathered = queue_.gather(offset(snd_nxt_), limit_bytes, frame.fragments);
  std::uint32_t bytes = gathered.bytes;
  frame.fragment_count = gathered.count;
  frame.payload_bytes = bytes;
  out.seq = snd_nxt_;
  if (bytes > mss_bytes_) frame.segment_size_bytes = static_cast<std::uint16_t>(mss_bytes_);

  // After lower_mss() these bytes have been sent before, in segments of another size.
  const bool again = snd_nxt_.before(snd_max_);
  frame.copy_payload = again;
  if (again) [[unlikely]]
    note_repeated(bytes);
  else
    counters_.tx_bytes += bytes;
  const std::uint8_t flags = again ? std::uint8_t{SentRecord::kRetransmitted} : std::uint8_t{0};
  out.cwr = ecn_.take_cwr();
  out.ecn = again ? wire::Ecn::kNotCapable : ecn_.codepoint();
  const bool was_empty = scoreboard_.empty();
  if (was_empty) {
    progress_ = now;
    override_due_ = false;
    congestion_.on_restart(now);
  }
  for (std::uint32_t left = bytes; left > 0;) {
    const std::uint32_t piece = std::min(left, mss_bytes_);
    scoreboard_.push(snd_nxt_, static_cast<std::uint16_t>(piece), now, flags);
    snd_nxt_ = snd_nxt_ + piece;
    left -= piece;
    ++counters_.tx_segments;
  }
  snd_max_ = later(snd_max_, snd_nxt_);
  out.push = unsent_bytes() == 0;
  if (state_ == State::kRecovery) congestion_.on_recovery_sent(bytes);
  note_rate(now, bytes);
  pacer_.on_sent(now, bytes);
  arm_timers(now, was_empty ? Wait::kRestarts : Wait::kIsForMore);
  return true;
}

void Sender::note_rate(TimePoint now, std::uint32_t sent_bytes) {
  if (congestion_.is_rate_based()) [[unlikely]]
    rate_.on_sent(now, sent_bytes, flight_bytes(), scoreboard_.ever_lost_bytes(), rtt_.srtt());
}

// Nothing can be sent, though nothing is lost and pacing would allow it.
void Sender::note_limit() {
  const std::uint32_t flight = flight_bytes();
  if (flight >= congestion_.window_bytes()) return;
  if (unsent_bytes() == 0)
    rate_.on_app_limited(flight);
  else if (usable_window() < mss_bytes_)
    rate_.on_peer_limited(flight);
}

bool Sender::send_fin(TimePoint now, Outgoing& out) {
  if (scoreboard_.full()) return false;
  const bool was_empty = scoreboard_.empty();
  if (was_empty) progress_ = now;
  note_asked(now);
  out.seq = snd_nxt_;
  out.fin = true;
  scoreboard_.push(snd_nxt_, 1, now, SentRecord::kFin);
  snd_nxt_ = snd_nxt_ + 1;
  snd_max_ = later(snd_max_, snd_nxt_);
  fin_sent_ = true;
  ++counters_.tx_segments;
  arm_timers(now, was_empty ? Wait::kRestarts : Wait::kIsForMore);
  return true;
}

void Sender::fill(ConnectionStatistics& out) const {
  out.srtt = rtt_.srtt();
  out.rttvar = rtt_.rttvar();
  if (rtt_.has_sample()) out.rtt_min = rtt_.min_rtt();
  out.rto = rtt_.rto(rto_floor_);
  out.mss_bytes = mss_bytes_;
  out.congestion_control = congestion_.name();
  out.cwnd_bytes = congestion_.window_bytes();
  out.ssthresh_bytes = congestion_.ssthresh_bytes();
  out.peer_window_bytes = snd_wnd_bytes_;
  out.in_flight_bytes = flight_bytes();
  out.send_queue_bytes = queue_.size_bytes();
  out.acked_bytes = queue_.begin();
  // The FIN has a number but no byte.
  out.sent_bytes = std::min(offset(snd_max_), queue_.end());
  out.retransmitted_bytes = tally_.retransmitted_bytes;
  out.timeouts = tally_.timeouts;
  out.fast_recoveries = tally_.fast_recoveries;
  out.spurious_recoveries = tally_.spurious_recoveries;
  out.dsacked_segments = tally_.dsacked_segments;
  out.reordered_segments = tally_.reordered_segments;
  out.most_reordered_bytes = tally_.most_reordered_bytes;
  out.tail_probes = tally_.tail_probes;
  out.zero_windows = tally_.zero_windows;
  out.ecn_reductions = tally_.ecn_reductions;
  out.marked_bytes = tally_.marked_bytes;
}

void Sender::lower_mss(TimePoint now, std::uint32_t mss_bytes) {
  if (mss_bytes >= mss_bytes_) return;
  mss_bytes_ = mss_bytes;
  congestion_.set_mss(mss_bytes);
  set_max_super_segment(max_super_bytes_);
  scoreboard_.rewind(snd_una_);
  snd_nxt_ = snd_una_;
  fin_sent_ = false;
  state_ = State::kOpen;
  undo_armed_ = needless_armed_ = probe_outstanding_ = tail_probe_due_ = false;
  frto_.stop();
  full_size_delivered_ = false;
  duplicate_acks_ = presumed_bytes_ = 0;
  arm_timers(now, Wait::kRestarts);
}

void Sender::raise_mss(std::uint32_t mss_bytes) {
  mss_bytes_ = mss_bytes;
  congestion_.set_mss(mss_bytes);
  set_max_super_segment(max_super_bytes_);
}

}  // namespace ztcp::tcp
