// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One TCP connection: the state machine of RFC 9293 section 3.3.2 between a Sender and a Receiver,
// and the Stream its user sees. A slot of its Stack, reused; it never sends by itself, but fills in
// frames when collect() asks.
//
// connection.cc: life and the user's calls; connection_handshake.cc: until it is established;
// connection_input.cc: segments, in the order of section 3.10.7; connection_output.cc: frames;
// connection_timers.cc: deadlines; connection_path.cc: packet sizes that the path carries;
// connection_reroute.cc: other paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/intrusive_list.h"
#include "core/stream.h"
#include "transport/tcp/ecn.h"
#include "transport/tcp/header_template.h"
#include "transport/tcp/path_probe.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/sender.h"
#include "transport/tcp/stack_context.h"
#include "transport/tcp/statistics.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::tcp {

class Connection final : public Stream, public ListHook<> {
 public:
  // A smaller MSS only causes load: a peer's is raised to this, a router's is ignored (RFC 9293's
  // 536, less the headers of tunnels).
  static constexpr std::uint16_t kLeastMssBytes = 256;

  // LISTEN belongs to the Stack, which makes a connection of each SYN.
  enum class State : std::uint8_t {
    kClosed,
    kSynSent,
    kSynReceived,
    kEstablished,
    kFinWait1,
    kFinWait2,
    kCloseWait,
    kClosing,
    kLastAck,
    kTimeWait,
  };

  Connection(StackContext& context, std::uint32_t index, const Sender::Memory& memory);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- Beginnings: the slot is closed. The caller has entered the key into the demux.
  void open_active(TimePoint now, std::uint16_t local_port, Endpoint remote, IpAddress next_hop,
                   StreamEvents& events, bool peer_shares_nic);
  // `beyond`: the last sequence number of our side of an earlier connection with the same key.
  void open_passive(TimePoint now, const wire::ParsedFrame& syn, IpAddress next_hop,
                    std::optional<SeqNum> beyond);

  // --- Stream
  std::size_t room() const override { return is_writable() ? sender_.room() : 0; }
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override;
  void finish() override;
  void close() override;
  void abort() override;
  void expect_late_acks() override { sender_.expect_late_acks(); }
  // A keepalive.
  void ask_peer() override;
  void hand_over(StreamEvents& events) override { events_ = &events; }
  void set_dscp(std::uint8_t dscp) override;
  StreamHealth health() const override;
  StreamStall stall(TimePoint now) const override;
  StreamStatistics stream_statistics(TimePoint now) const override;

  // --- The loop
  void on_segment(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed);
  // After the last segment of a burst, or a timer: reports acknowledged bytes to the user once.
  void end_turn(TimePoint now);
  // Fills frames; sets `more` when it stopped because `out` is full.
  std::size_t collect(TimePoint now, std::span<TxFrame> out, bool& more);
  void on_timer(TimePoint now);

  // When the last acceptable segment came.
  TimePoint heard() const { return heard_; }

  // --- Neighbour, failures and ICMP
  void on_neighbour(MacAddress mac);
  void fail(TimePoint now, Errc code, const char* where);
  // RFC 1191 and 8201, with the checks of RFC 5927: `quoted` is in flight.
  void on_fragmentation_needed(TimePoint now, SeqNum quoted, std::uint32_t mtu_bytes);
  // Any other ICMP error. A hard one ends a connection that is not established (RFC 9293 SHLD-26,
  // RFC 5927 section 4); any other becomes the reason for a later timeout (SHLD-25).
  void on_unreachable(TimePoint now, SeqNum quoted, const char* reason, bool hard);

  State state() const { return state_; }
  std::uint32_t index() const { return index_; }
  TimePoint opened() const { return opened_; }
  Endpoint remote() const { return remote_; }
  Demux::Key key() const { return Demux::key(remote_, local_port_); }
  bool is_unfinished() const;
  ConnectionStatistics statistics() const;
  const Sender& sender() const { return sender_; }
  const Receiver& receiver() const { return receiver_; }

  // Whether a SYN may take this connection's place (RFC 9293 section 3.10.7.4, TIME-WAIT).
  bool may_be_replaced_by(const wire::TcpHeader& syn) const;
  // Ends it without telling peer or user: it is in TIME-WAIT or half-open, and the slot is needed.
  void drop();
  // The connection has ended, but its RST has not been sent. The slot is reused after that, so
  // every peer gets its RST, however many connections end at once.
  bool is_reset_due() const { return reset_due_; }
  void write_reset(TimePoint now, TxFrame& frame);

 private:
  // The only writer of state_.
  void set_state(State state);
  bool is_writable() const { return state_ == State::kEstablished || state_ == State::kCloseWait; }
  bool is_synchronized() const { return state_ >= State::kEstablished; }
  // The peer may hold a connection: more than a SYN was sent to it.
  bool is_known_to_peer() const { return state_ >= State::kSynReceived; }
  void begin(TimePoint now, std::uint16_t local_port, Endpoint remote, IpAddress next_hop);
  void end();
  void wake() {
    if (mac_known_) context_.ready.push(index_);
  }

  void build_header() {
    context_.build(header_, dscp_, mac_, local_port_, remote_, timestamps_, reroutes_);
  }

  // connection_handshake.cc
  bool try_next_port(TimePoint now, const wire::TcpHeader& syn_ack);
  bool take_next_port(TimePoint now);
  bool leave_port(TimePoint now, bool was_refused);
  Duration answer_timeout() const;
  void choose_numbers(TimePoint now);
  void take_syn(TimePoint now, const wire::TcpHeader& syn);
  void enter_syn_received();
  Receiver::Window agreed_window() const;
  void establish(TimePoint now, const wire::TcpHeader& tcp);
  bool report_open(TimePoint now);
  void on_segment_in_syn_sent(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed);
  void on_syn_again(TimePoint now, const wire::ParsedFrame& parsed);
  bool on_syn_acked(TimePoint now, const wire::ParsedFrame& parsed);
  bool accept(TimePoint now);

  // connection_input.cc
  bool is_predicted(const wire::ParsedFrame& parsed) const;
  bool check_sequence(TimePoint now, const wire::ParsedFrame& parsed);
  bool check_reset(TimePoint now, const wire::ParsedFrame& parsed);
  bool check_syn(TimePoint now, const wire::ParsedFrame& parsed);
  bool check_ack(TimePoint now, const wire::ParsedFrame& parsed);
  // `seq` is the first byte's number: for a SYN that is one more than the segment's.
  bool process_payload(TimePoint now, RxFrame& frame, const wire::ParsedFrame& parsed, SeqNum seq);
  bool refuse_payload(SeqNum seq, std::uint32_t length, bool has_fin);
  void process_fin(TimePoint now, const wire::ParsedFrame& parsed, SeqNum seq);
  void take_ack(TimePoint now, const wire::ParsedFrame& parsed);
  bool is_repeated_ack(const wire::ParsedFrame& parsed) const;
  bool is_overtaken_ack(const wire::ParsedFrame& parsed) const;
  void take_overtaken_ack(TimePoint now, const wire::ParsedFrame& parsed);
  void on_fin_acked(TimePoint now);
  void enter_time_wait(TimePoint now);
  bool report_acked(TimePoint now);
  void report_ended(TimePoint now);
  void challenge(TimePoint now);
  void take_news();
  bool answer_sparingly(TimePoint now);

  // connection_output.cc
  HeaderTemplate::Fields fields(TimePoint now, SeqNum seq, wire::TcpFlags flags) const;
  void write_syn(TimePoint now, TxFrame& frame);
  void write_ack(TimePoint now, TxFrame& frame);
  void write_keepalive(TimePoint now, TxFrame& frame);
  std::size_t collect_reset(TimePoint now, std::span<TxFrame> out, bool& more);

  // connection_path.cc
  void write_path_probe(TimePoint now, TxFrame& frame);
  std::span<const wire::SackBlock> take_path_answers(std::span<const wire::SackBlock> sack);
  void on_path_answered();
  bool on_path_timer(TimePoint now);
  void confirm_cut(TimePoint now);
  void suspect_path(TimePoint now);
  std::uint32_t header_bytes() const;
  std::uint32_t next_smaller_mss() const;
  void report_path(std::uint32_t before_bytes, std::uint32_t mss_bytes, PathMtuChange::Cause cause);
  // Data of the suspected size was delivered.
  bool is_path_proven() const {
    if (path_.cause() == PathProbe::Cause::kConnect) return sender_.full_size_delivered();
    return path_.cause() == PathProbe::Cause::kTimeouts && sender_.progress() > path_.started();
  }

  // connection_reroute.cc
  bool may_reroute() const { return context_.config.is_ipv6() && context_.config.tcp.reroutes; }
  std::uint32_t flow_label() const {
    return context_.unguessable.flow_label(context_.local(local_port_), remote_, reroutes_);
  }
  void reroute(Reroute::Cause cause, std::uint32_t evidence);
  void reroute_after_timeout(TimePoint now, int timeouts);
  void reroute_after_duplicate(std::uint32_t peer_flow_label);

  // connection_timers.cc
  TimePoint deadline() const;
  TimePoint keepalive_deadline() const;
  void schedule();
  Duration handshake_timeout() const;
  void limit_lingering(TimePoint now);
  void on_syn_timer(TimePoint now);
  bool on_keepalive_timer(TimePoint now);
  void give_up(TimePoint now, const char* where);

  // --- Hot.
  StackContext& context_;
  StreamEvents* events_ = nullptr;  // Null before accept and after close().
  std::uint32_t index_;
  State state_ = State::kClosed;
  bool timestamps_ = false;
  bool sack_ = false;
  bool mac_known_ = false;
  std::uint8_t peer_window_shift_ = 0;
  bool syn_due_ = false;
  bool keepalive_due_ = false;
  SeqNum wl1_;  // SND.WL1 and SND.WL2: the segment that the last window update came from.
  SeqNum wl2_;
  std::uint64_t acked_reported_ = 0;
  TimePoint heard_{};     // When the last acceptable segment came.
  TimePoint answered_{};  // When the last ACK without payload came: our segments arrive.
  TimePoint spoke_{};     // When a segment whose timestamp the peer keeps was last sent.
  TimestampClock clock_;
  Receiver receiver_;
  Sender sender_;
  HeaderTemplate header_;

  // --- Cold.
  Endpoint remote_;
  std::uint16_t local_port_ = 0;
  std::uint8_t dscp_ = 0;
  std::uint16_t peer_mss_bytes_ = 536;
  MacAddress mac_;
  SeqNum iss_;
  SeqNum irs_;
  bool active_ = false;
  bool payload_lost_ = false;  // Bytes came after close().
  bool peer_scales_ = false;   // The peer's SYN had a window scale.
  EcnHandshake ecn_;
  PathProbe path_;
  std::uint32_t full_mss_bytes_ = 0;  // MSS that the handshake, or a router, allows.
  TimePoint raise_at_ = kNever;       // When to probe the full size again.
  std::uint32_t cut_from_bytes_ = 0;  // MSS before an unconfirmed cut; 0: no such cut.
  TimePoint cut_at_{};                // When the MSS was last cut.
  bool path_told_ = false;            // The owner was told that the path carries less.
  TimePoint suspected_{};             // Time of the first of the timeouts in a row; zero: none.
  TimePoint small_answered_{};        // While suspected: the last ACK without payload.
  bool ask_by_byte_ = false;          // The due keepalive carries one old byte.
  SeqNum asked_end_;                  // Sequence number after that byte, when it was last sent.
  TimePoint opened_{};
  TimePoint state_deadline_ = kNever;  // SYN retransmission, after close(), TIME-WAIT.
  Duration syn_timeout_{};
  TimePoint syn_sent_ = TimePoint::min();
  bool syn_retransmitted_ = false;
  int ports_tried_ = 0;              // Ports whose answers came to another queue than ours.
  bool seeks_port_ = false;          // An end shares its NIC, so not every port leads to both.
  bool peer_shares_nic_ = false;     // The peer is such an end.
  std::uint32_t ports_refused_ = 0;  // Ports that led to another process of the peer's host.
  std::uint32_t ports_unanswered_ = 0;
  std::uint32_t reroutes_ = 0;            // Changes of the flow label.
  std::uint32_t duplicate_reroutes_ = 0;  // Those among them because of repeated bytes.
  std::uint32_t peer_flow_label_ = 0;     // Of the last repeated bytes, at first of the SYN.
  bool has_told_reroute_ = false;
  int keepalives_ = 0;  // Unanswered in a row.
  TimePoint keepalive_sent_{};
  TimePoint challenged_{};             // When answer_sparingly() last answered.
  const char* unreachable_ = nullptr;  // Reason in the last ICMP error.
  TimePoint unreachable_at_{};
  bool reset_due_ = false;
  SeqNum reset_seq_;
};

}  // namespace ztcp::tcp
