// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames of a connection.
#include <algorithm>
#include <chrono>

#include "transport/tcp/connection.h"

namespace ztcp::tcp {
namespace {

// Our timestamps take 36 minutes for half of their range (TimestampClock).
constexpr Duration kTimestampRefresh = std::chrono::minutes(10);

}  // namespace

HeaderTemplate::Fields Connection::fields(TimePoint now, SeqNum seq, wire::TcpFlags flags) const {
  return {.seq = seq,
          .ack = receiver_.rcv_nxt(),
          .flags = flags | receiver_.ecn_flags(),
          .window = receiver_.window().field,
          .timestamps = {clock_.at(now), receiver_.ts_recent()}};
}

std::size_t Connection::collect(TimePoint now, std::span<TxFrame> out, bool& more) {
  more = false;
  if (!mac_known_) return 0;
  if (state_ == State::kClosed) [[unlikely]]
    return collect_reset(now, out, more);
  if (state_ == State::kSynSent || state_ == State::kSynReceived) {
    const bool answer_due = state_ == State::kSynReceived && receiver_.ack_due();
    if (out.empty() || (!syn_due_ && !answer_due)) {
      more = syn_due_ || answer_due;
      return 0;
    }
    if (syn_due_)
      write_syn(now, out[0]);
    else
      write_ack(now, out[0]);
    schedule();
    return 1;
  }

  std::size_t count = 0;
  // Bare frames first: the peer may be waiting for each of them.
  while (keepalive_due_ || (receiver_.ack_due() && receiver_.has_report()) ||
         receiver_.has_unreported()) {
    if (count == out.size()) {
      more = true;
      return count;
    }
    if (keepalive_due_)
      write_keepalive(now, out[count++]);
    else
      write_ack(now, out[count++]);
  }

  Sender::Outgoing segment;
  for (; count < out.size(); ++count) {
    TxFrame& frame = out[count];
    if (!sender_.next(now, frame, segment)) break;
    wire::TcpFlags flags = wire::kAck | segment.cwr;
    if (segment.push) flags |= wire::kPsh;
    if (segment.fin) flags |= wire::kFin;
    HeaderTemplate::Fields header = fields(now, segment.seq, flags);
    header.ecn = segment.ecn;
    header_.write(header, frame);
    receiver_.on_ack_sent();
    spoke_ = now;
  }
  if (count < out.size() && receiver_.ack_due()) write_ack(now, out[count++]);
  // Last, so that a peer still waiting for the handshake's ACK gets that first.
  if (count < out.size() && path_.is_due()) write_path_probe(now, out[count++]);
  more = count == out.size();
  schedule();
  return count;
}

void Connection::write_syn(TimePoint now, TxFrame& frame) {
  syn_due_ = false;
  const bool passive = state_ == State::kSynReceived;
  wire::TcpOptions options;
  options.mss_bytes = context_.mss_bytes();
  if (!passive || peer_scales_) options.window_scale = context_.window.scale;
  if (!passive || timestamps_)
    options.timestamps = wire::Timestamps{clock_.at(now), passive ? receiver_.ts_recent() : 0};
  options.sack_permitted = !passive || sack_;
  wire::TcpFlags flags = passive ? wire::kSyn | wire::kAck : wire::kSyn;
  flags |= passive ? ecn_.syn_ack_flags() : ecn_.syn_flags();
  HeaderTemplate header;
  context_.build(header, dscp_, mac_, local_port_, remote_, /*with_timestamps=*/false, reroutes_);
  const std::uint32_t window = std::min<std::uint32_t>(context_.window.bytes, 65535);
  header.write_with_options({.seq = iss_,
                             .ack = passive ? irs_ + 1 : SeqNum{},
                             .flags = flags,
                             .window = static_cast<std::uint16_t>(window),
                             .timestamps = {},
                             .ecn = {}},
                            options, frame);
  ++context_.counters.tx_segments;
  if (passive) receiver_.on_ack_sent();
  // Karn's rule: the answer to a SYN that was sent twice gives no RTT sample.
  if (syn_sent_ != TimePoint::min()) syn_retransmitted_ = true;
  syn_sent_ = now;
  state_deadline_ = std::min(now + syn_timeout_, opened_ + handshake_timeout());
}

void Connection::write_ack(TimePoint now, TxFrame& frame) {
  frame.payload_bytes = 0;
  frame.fragment_count = 0;
  frame.segment_size_bytes = 0;
  frame.copy_payload = false;
  if (state_ == State::kSynReceived) [[unlikely]]
    receiver_.open_window(agreed_window());  // This ACK announces it.
  const SeqNum seq = state_ == State::kSynReceived ? iss_ + 1 : sender_.snd_nxt();
  const auto header = fields(now, seq, wire::kAck);
  if (receiver_.has_report()) {
    wire::TcpOptions options;
    if (timestamps_) options.timestamps = header.timestamps;
    receiver_.take_reports(options);
    header_.write_with_options(header, options, frame);
  } else {
    header_.write(header, frame);
  }
  ++context_.counters.tx_segments;
  receiver_.on_ack_sent();
  spoke_ = now;
}

// RFC 9293 section 3.8.4: a number just below the window makes the peer answer and carries no data.
// Serves as zero-window probe as well. Being old, it doesn't update the peer's TS.Recent; once our
// clock has advanced by half its range since, the peer takes all our segments for old duplicates
// (RFC 7323 section 5.5; Linux up to 6.6 for 24 days). So now and then an ACK follows it.
void Connection::write_keepalive(TimePoint now, TxFrame& frame) {
  keepalive_due_ = false;
  frame.payload_bytes = 0;
  frame.fragment_count = 0;
  frame.segment_size_bytes = 0;
  frame.copy_payload = false;
  if (ask_by_byte_) {
    // An old byte is answered with a D-SACK: a distinct ACK even while data flows towards us.
    ask_by_byte_ = false;
    asked_end_ = sender_.snd_una();
    frame.fragment_count = 1;
    frame.fragments[0] = {context_.zeros.data(), 1, kUnmapped};
    frame.payload_bytes = 1;
    frame.copy_payload = true;
  }
  header_.write(fields(now, sender_.snd_una() - 1, wire::kAck), frame);
  if (timestamps_ && now - spoke_ >= kTimestampRefresh) receiver_.request_ack();
  ++context_.counters.tx_segments;
}

std::size_t Connection::collect_reset(TimePoint now, std::span<TxFrame> out, bool& more) {
  if (!reset_due_) return 0;
  more = out.empty();
  if (more) return 0;
  write_reset(now, out[0]);
  unlink();
  context_.retired.push_back(index_);
  return 1;
}

// RFC 7323 section 3.2 requires timestamps here, too.
void Connection::write_reset(TimePoint now, TxFrame& frame) {
  reset_due_ = false;
  frame.payload_bytes = 0;
  frame.fragment_count = 0;
  frame.segment_size_bytes = 0;
  frame.copy_payload = false;
  header_.write(fields(now, reset_seq_, wire::kRst | wire::kAck), frame);
  ++context_.counters.tx_resets;
}

}  // namespace ztcp::tcp
