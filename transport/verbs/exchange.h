// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The records that the two ends of a connection exchange over a kernel TCP connection, which lives
// as long as their queue pairs. The sender dials, and sends first.
//
//   sender    hello     the cookie of the handle, its queue pairs, its ring
//   receiver  wait      other senders are served first; repeated while the sender has to wait
//   receiver  answer    its queue pairs, and a proof that it has the key
//   sender    ready     its queue pairs can receive; and its proof
//   either    close     it closes, or refuses, or can't go on, with the reason; only close records
//                       follow
//
// A connection over several rails also has notes: about a rail that fails (session/holdings.h), and
// about a rail that begins, as rails of TCP do.
//
//   either    fenced    its queue pairs on the rail are destroyed; with the pieces that a receiver
//                       holds, or that a sender saw arrive
//   receiver  mute      its device gives nothing back: the sender has to fence the rail first
//   receiver  ask       its port is up again: an offer need not wait
//   sender    offer     new queue pairs
//   receiver  accept    its own; or fenced: not now
//   sender    proven    work has gone over them and was completed
//
// If the rails have addresses of their own, such a connection has several paths for these notes and
// for close records, so that the peer hears of a failure whichever rail fails. The sender dials the
// paths where the receiver listens on its rails (control_paths.cc says when). The first record on a
// path is
//
//   sender    path      the ticket of the answer, and the number of the last note it has heard
//   receiver  path      likewise; then the notes follow that the other end has not heard
//
// Notes are numbered and go over all paths (note_log.h). An end that gives up one path alone says
// so by a close record (kThisPath): without it, the end of the last path is the end of the process.
//
// An accepted rail of TCP is a stream, which the sender dials where the receiver listens. The first
// record on it is
//
//   sender    stream    the ticket that it was given
//
// and piece_stream.h defines the rest.
//
// Proofs are HMAC-SHA256(cluster key, label, hello, answer), where the answer's own proof is left
// zero. Without a key in the config the key is all zero, and an end with another key is found out
// here, too. The proofs show that both ends hold the key and take part now; the records that follow
// are neither encrypted nor signed. Integers are the machine's: little-endian.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/gid.h"
#include "core/host_name.h"
#include "core/result.h"
#include "transport/msg/hmac_sha256.h"
#include "transport/msg/session.h"
#include "transport/verbs/session/holdings.h"
#include "transport/verbs/session/rails.h"
#include "transport/verbs/session/record_codec.h"

namespace ztcp::verbs {

using Cookie = std::array<std::byte, 16>;
using Nonce = std::array<std::byte, 16>;
using Ticket = std::array<std::byte, 16>;

enum class RecordKind : std::uint8_t {
  kHello = 1,
  kAnswer = 2,
  kReady = 3,
  kClose = 4,
  kRail = 5,
  kStream = 6,
  kPath = 7,
  kWait = 8
};

struct ExchangeProtocol {
  using Kind = RecordKind;
  static constexpr std::uint32_t kMagic = 0x44527a54;  // "TzRD"
  static constexpr std::uint8_t kVersion = 6;
  static constexpr std::size_t kMaxBytes = 1336;  // An answer.
  static constexpr const char* kNoRecord = "no record of a verbs exchange";
  static constexpr const char* kOtherVersion =
      "a verbs exchange of another version: install the same release";
};
using RecordHeader = records::Header<ExchangeProtocol>;
using RecordReader = records::Reader<ExchangeProtocol>;
static_assert(sizeof(RecordHeader) == 8);

enum class Network : std::uint8_t { kEthernet, kInfiniBand, kIwarp };

// Options of a vendor's devices beyond the standard (ibv_query_ece(3)). A sender offers the options
// of its device; a receiver answers with the choice of its own, which both use.
struct EceFacts {
  std::uint8_t is_told = 0;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t vendor = 0;
  std::uint32_t options = 0;
};
static_assert(sizeof(EceFacts) == 12);

// The facts of one end about one rail.
struct RailFacts {
  static constexpr std::uint8_t kRoceV1 = 1;
  static constexpr std::uint8_t kRoceV2 = 2;

  Gid gid{};       // iWARP: its address.
  Gid exchange{};  // Where the receiver listens on the rail: an address in the form of a GID.
  std::array<std::uint32_t, kMaxQueuePairs> numbers{};
  std::uint32_t memory_rkey = 0;
  std::uint32_t first_psn = 0;
  std::uint16_t lid = 0;
  Network network = Network::kEthernet;
  std::uint8_t queue_pairs = 0;
  std::uint8_t mtu = 0;  // The library's number for it.
  // A sender's: notifies of some pieces by a message behind them.
  std::uint8_t notifies_separately = 0;
  // iWARP: where the sender's connection manager listens; else the port of `exchange`. 0: nowhere.
  std::uint16_t port = 0;
  std::uint8_t number = 0;        // Among the device's rails of its kind; rails are joined by it.
  std::uint8_t key = 0;           // Index of its key in slots.
  std::array<char, 32> device{};  // "mlx5_0", for messages.
  // A rail of TCP has a stream instead of queue pairs: the sender dials `exchange`, and begins with
  // the ticket.
  std::uint8_t is_tcp = 0;
  std::uint8_t gid_type = 0;  // RoCE: kRoceV1, kRoceV2; 0: not known.
  std::uint16_t flid = 0;     // InfiniBand: for routers between subnets; 0: none.
  std::array<std::uint8_t, 2> reserved{};
  EceFacts ece;
  Ticket ticket{};
};
static_assert(sizeof(RailFacts) == 148);

// The facts of one end: the rails that it can use. The rails that both ends have are joined.
struct EndFacts {
  std::uint64_t memory_address = 0;  // A sender's Ring; nothing of a receiver's is written.
  std::uint8_t rails = 0;
  std::array<std::uint8_t, 7> reserved{};
  Ticket ticket{};  // A receiver's, for further paths.
  std::array<RailFacts, kMaxRails> on{};
  HostName host{};  // For logs and the statistics page.
};
static_assert(sizeof(EndFacts) == 1280);

struct Hello {
  static constexpr RecordKind kKind = RecordKind::kHello;
  RecordHeader header;
  Cookie cookie{};
  Nonce nonce{};
  EndFacts facts;
};
struct Answer {
  static constexpr RecordKind kKind = RecordKind::kAnswer;
  RecordHeader header;
  Nonce nonce{};
  EndFacts facts;
  msg::Digest proof{};
};
struct Wait {
  static constexpr RecordKind kKind = RecordKind::kWait;
  RecordHeader header;
};
struct Ready {
  static constexpr RecordKind kKind = RecordKind::kReady;
  RecordHeader header;
  msg::Digest proof{};
};
struct CloseRecord {
  static constexpr RecordKind kKind = RecordKind::kClose;
  static constexpr std::uint8_t kOrderly = 0xff;
  // Only this TCP connection ends: the process lives, and the queue pairs stay.
  static constexpr std::uint8_t kThisPath = 0xfe;

  RecordHeader header;
  std::uint8_t code = kOrderly;  // An Errc, or one of the above.
  std::array<char, 119> text{};  // The reason, for the peer's log.
};
struct StreamHello {
  static constexpr RecordKind kKind = RecordKind::kStream;
  RecordHeader header;
  Ticket ticket{};
};
struct PathHello {
  static constexpr RecordKind kKind = RecordKind::kPath;
  RecordHeader header;
  Ticket ticket{};
  std::uint32_t heard = 0;
  std::uint32_t reserved = 0;
};
struct RailNote {
  static constexpr RecordKind kKind = RecordKind::kRail;
  enum class Step : std::uint8_t {
    kFenced = 1,
    kOffer = 2,
    kAccept = 3,
    kProven = 4,
    kAsk = 5,
    kMute = 6
  };

  RecordHeader header;
  std::uint8_t rail = 0;
  Step step = Step::kFenced;
  std::uint16_t reserved = 0;
  std::uint32_t epoch = 0;   // How often the rail was offered.
  std::uint32_t number = 0;  // The note's own, from 1 on.
  std::uint32_t heard = 0;   // The last note of the peer's.
  RailFacts facts;
  Holdings holdings;
};
static_assert(sizeof(RailNote) == 556);
static_assert(sizeof(Hello) == 1320 && sizeof(Answer) == 1336 && sizeof(Ready) == 40 &&
              sizeof(CloseRecord) == 128 && sizeof(StreamHello) == 24 && sizeof(PathHello) == 32);
static_assert(sizeof(Answer) == ExchangeProtocol::kMaxBytes);

Hello make_hello(const Cookie& cookie, const Nonce& nonce, const EndFacts& facts);
Answer make_answer(const msg::ClusterKey& key, const Hello& hello, const Nonce& nonce,
                   const EndFacts& facts);
Wait make_wait();
Ready make_ready(const msg::ClusterKey& key, const Hello& hello, const Answer& answer);
CloseRecord make_close_record(std::uint8_t code, std::string_view text);

StreamHello make_stream_hello(const Ticket& ticket);
PathHello make_path_hello(const Ticket& ticket, std::uint32_t heard);
RailNote make_note(RailNote::Step step, std::size_t rail, std::uint32_t epoch);

bool is_proven(const msg::ClusterKey& key, const Hello& hello, const Answer& answer);
bool is_proven(const msg::ClusterKey& key, const Hello& hello, const Answer& answer,
               const Ready& ready);
// The reason for refusing a peer whose proof does not fit `key`. It fits into a CloseRecord.
std::string_view unproven_text(const msg::ClusterKey& key);

// The text of a close record, fit for a log line.
std::string text_of(const CloseRecord& record);
std::string device_of(const RailFacts& facts);

// The rail in `all` that belongs to the other end's rail `of`; null: there is none.
const RailFacts* counterpart(const RailFacts& of, const EndFacts& all);
// Why two such ends can't be joined; empty: they can.
std::string mismatch(const EndFacts& ours, const EndFacts& theirs);
std::string mismatch(const RailFacts& ours, const RailFacts& theirs);

}  // namespace ztcp::verbs
