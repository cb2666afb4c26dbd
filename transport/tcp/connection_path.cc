// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Packet sizes that a connection's path carries: probes, routers' reports (RFC 1191, 8201, 5927),
// and black holes that appear under a running connection (RFC 4821 section 7.7, RFC 8899
// section 4.3).
#include <array>
#include <cassert>
#include <chrono>

#include "transport/tcp/connection.h"

namespace ztcp::tcp {
namespace {

// Packet sizes; the largest one below the lost size is tried next: Ethernet's MTU, that less common
// tunnels, IPv6's minimum, and for IPv4 the size that each host must accept (RFC 791).
constexpr std::array<std::uint32_t, 5> kSmallerPackets = {1500, 1400, 1280, 1024, 576};

// A repaired path is noticed after this long; RFC 8899 has 10 minutes for the Internet.
constexpr Duration kRaiseInterval = std::chrono::minutes(1);
// Retry for a cut whose confirmation other probes delayed.
constexpr Duration kConfirmPause = std::chrono::seconds(1);

}  // namespace

std::uint32_t Connection::header_bytes() const {
  return static_cast<std::uint32_t>(context_.config.ip_header_bytes() + header_.tcp_header_bytes());
}

// 0: there is no smaller one.
std::uint32_t Connection::next_smaller_mss() const {
  for (const std::uint32_t packet : kSmallerPackets) {
    if (packet < context_.config.least_packet_bytes()) break;
    if (packet - header_bytes() < sender_.mss_bytes()) return packet - header_bytes();
  }
  return 0;
}

void Connection::report_path(std::uint32_t before_bytes, std::uint32_t mss_bytes,
                             PathMtuChange::Cause cause) {
  path_told_ = mss_bytes < before_bytes;
  ++(path_told_ ? context_.counters.path_mtu_cuts : context_.counters.path_mtu_raises);
  context_.path_changes.add({.remote = remote_.address,
                             .before_bytes = before_bytes + header_bytes(),
                             .now_bytes = mss_bytes == 0 ? 0 : mss_bytes + header_bytes(),
                             .cause = cause});
}

void Connection::on_fragmentation_needed(TimePoint now, SeqNum quoted, std::uint32_t mtu_bytes) {
  if (!is_synchronized() || state_ == State::kTimeWait) return;
  const bool probe = path_.is_active() && quoted == path_.first();
  if (!probe && !sender_.is_in_flight(quoted)) return;
  // RFC 1191 section 3 has no next hop below 68, and RFC 8201 section 4 none below 1280; such small
  // values are an attack (RFC 5927 section 7.3) or useless here.
  const std::uint32_t before = sender_.mss_bytes();
  const std::uint32_t least = context_.config.is_ipv6() ? context_.config.least_packet_bytes()
                                                        : header_bytes() + kLeastMssBytes;
  if (mtu_bytes < least || mtu_bytes - header_bytes() >= before) return;
  const std::uint32_t mss = mtu_bytes - header_bytes();
  sender_.lower_mss(now, mss);
  report_path(before, mss, PathMtuChange::Cause::kRouter);
  // The router named a size, so nothing larger is tried again.
  full_mss_bytes_ = mss;
  cut_from_bytes_ = 0;
  raise_at_ = kNever;
  suspected_ = {};
  if (path_.is_active()) path_.begin(now, PathProbe::Cause::kConnect);
  wake();
  schedule();
}

void Connection::write_path_probe(TimePoint now, TxFrame& frame) {
  if (path_.wants_comparison()) {
    ask_by_byte_ = path_.cause() == PathProbe::Cause::kTimeouts;
    keepalive_due_ = true;
    wake();
  }
  const bool is_full =
      path_.cause() == PathProbe::Cause::kRaise || path_.cause() == PathProbe::Cause::kConfirm;
  const std::uint32_t size = is_full ? full_mss_bytes_ : sender_.mss_bytes();
  assert(size <= context_.zeros.size());
  const SeqNum first = sender_.snd_una() - size;
  path_.on_sent(now, first, sender_.snd_una(), sender_.rtt().first_rto(context_.rto_floor));
  frame.fragment_count = 1;
  frame.fragments[0] = {context_.zeros.data(), size, kUnmapped};
  frame.payload_bytes = size;
  frame.segment_size_bytes = 0;
  frame.copy_payload = true;
  header_.write(fields(now, first, wire::kAck), frame);
  ++context_.counters.tx_segments;
}

// Removes answers to probes from an ACK's blocks: they don't concern the stream.
std::span<const wire::SackBlock> Connection::take_path_answers(
    std::span<const wire::SackBlock> sack) {
  const SeqNum begin(sack[0].begin);
  const SeqNum end(sack[0].end);
  if (suspected_ != TimePoint{} && end == asked_end_ && begin == end - 1) return sack.subspan(1);
  // Only path probes carried bytes below the first one. The block may extend further: peers merge
  // ranges that arrived twice.
  const bool below_first = path_.is_active() && begin.before(iss_ + 1);
  if (!below_first && !path_.is_answered_by(sack[0])) return sack;
  if (path_.is_active()) on_path_answered();
  return sack.subspan(1);
}

void Connection::on_path_answered() {
  path_.stop();
  suspected_ = {};
  if (path_.cause() == PathProbe::Cause::kConnect) return;
  if (path_.cause() == PathProbe::Cause::kTimeouts) {
    if (cut_from_bytes_ != 0) raise_at_ = path_.started() + kConfirmPause;
    return;
  }
  const std::uint32_t before = sender_.mss_bytes();
  sender_.raise_mss(full_mss_bytes_);
  raise_at_ = kNever;
  cut_from_bytes_ = 0;
  if (path_told_) report_path(before, full_mss_bytes_, PathMtuChange::Cause::kProbe);
  wake();
}

// A retransmission timeout has fired. The second one in a row for a full-size segment, while the
// peer answers small segments, makes the size the suspect.
void Connection::suspect_path(TimePoint now) {
  const std::uint32_t smaller = next_smaller_mss();
  const bool is_asking = path_.is_active() && (path_.cause() == PathProbe::Cause::kConnect ||
                                               path_.cause() == PathProbe::Cause::kTimeouts);
  if (is_asking || smaller == 0 || sender_.front_bytes() <= smaller || sender_.window_bytes() == 0)
    return;
  if (suspected_ == TimePoint{} || sender_.progress() >= suspected_) {
    suspected_ = now;
  } else if (small_answered_ > suspected_) {
    path_.begin(now, PathProbe::Cause::kTimeouts);
    return;
  }
  ask_by_byte_ = keepalive_due_ = true;
}

// False: the connection has failed.
bool Connection::on_path_timer(TimePoint now) {
  if (raise_at_ <= now) {
    raise_at_ = now + kRaiseInterval;
    if (!path_.is_active())
      path_.begin(now,
                  cut_from_bytes_ != 0 ? PathProbe::Cause::kConfirm : PathProbe::Cause::kRaise);
  }
  if (path_.deadline() > now) return true;
  const PathProbe::Cause cause = path_.cause();
  const bool at_connect = cause == PathProbe::Cause::kConnect;
  const PathProbe::Verdict verdict = path_.on_timer(at_connect ? heard_ : small_answered_);
  if (verdict == PathProbe::Verdict::kUnknown) {
    if (cause == PathProbe::Cause::kConfirm) confirm_cut(now);
    if (cause == PathProbe::Cause::kTimeouts && cut_from_bytes_ != 0)
      raise_at_ = now + kConfirmPause;
  }
  if (verdict != PathProbe::Verdict::kTooLarge) return true;
  if (at_connect && active_) {
    report_path(sender_.mss_bytes(), 0, PathMtuChange::Cause::kSilence);
    fail(now, Errc::kPathMtu, "tcp path probe");
    return false;
  }
  path_.stop();
  suspected_ = {};
  const std::uint32_t before = sender_.mss_bytes();
  const std::uint32_t smaller = next_smaller_mss();
  if (smaller == 0) return true;
  sender_.rtt().forget_backoff();  // The timeouts were not congestion.
  sender_.lower_mss(now, smaller);
  raise_at_ = now + kRaiseInterval;
  if (at_connect) {
    report_path(before, smaller, PathMtuChange::Cause::kSilence);
    path_.begin(now, PathProbe::Cause::kConnect);
    return true;
  }
  if (cut_from_bytes_ == 0) cut_from_bytes_ = before;
  cut_at_ = now;
  path_.begin(now, PathProbe::Cause::kConfirm);
  return true;
}

// No full-size packet has arrived since the cut. If smaller ones have, the size is the cause.
void Connection::confirm_cut(TimePoint now) {
  raise_at_ = now + kRaiseInterval;
  if (sender_.progress() <= cut_at_) return;
  report_path(cut_from_bytes_, sender_.mss_bytes(), PathMtuChange::Cause::kSilence);
  cut_from_bytes_ = 0;
}

}  // namespace ztcp::tcp
