// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Wire format version 2: the bytes on the streams of a session. This comment is its definition; the
// code below only encodes and decodes.
//
// A *session* carries messages one way, from the *sender* (which connects) to the *receiver* (which
// listens), over up to eight *flows*, each a byte stream of its own. Integers are little-endian and
// unaligned; reserved bits and bytes are zero and checked. Each direction of each stream begins
// with
//
//   preamble   8   u32 magic "ztcp" (0x7063747a), u32 version (2)
//
// and continues with records. The preamble and the refusal record keep their form in all versions,
// so that any two versions can tell each other theirs. A record is
//
//   header     8   u8 type, u8 flags, u16 body bytes, u32 payload bytes (0 except for a chunk)
//   body           fixed size per type, except for a map
//   payload        a chunk's message bytes
//
// Sender to receiver
//   1 hello   132  cookie[16], u64 session, u32 epoch, u8 flow, u8 flows wanted, u16 0, nonce[16],
//                  u16 port, u16 0, address[16], IPv4 as ::ffff:a.b.c.d: where the sender's process
//                  itself listens, as long as it lives; port 0: nowhere,
//                  host[64]: the name of the sender's host, which ends at its first zero, for logs;
//                  flags: 1 new session (the sender was never accepted), 2 has a cluster key,
//                  4 the sender's process ends, 8 its TCP acknowledges only bytes its process took,
//                  16 the sender aborts the session; not with 4
//   3 proof    32  mac[32]
//   5 chunk    28  u64 message, u64 offset, u64 total, u32 tag;
//                  flags: 1 eager, 2 the sender waits until the message is received
//  11 ask       0  requests credit that was not sent yet
//   8 bye       8  u64 messages: their number; no more follow, FIN does;
//                  flags: 1 the process ends
// Receiver to sender
//   2 challenge 48 nonce[16], mac[32]
//   4 accept   80  u32 allowance bytes, u8 flows granted, u8 0, u16 message window, u64 session,
//                  host[64]: the name of the receiver's host;
//                  flags: 1 its TCP acknowledges only bytes its process took
//   6 map  20 + n  u64 message, u64 total, u32 tag, n = ceil(units / 8) bytes: bit u set: unit u
//                  is held; flags: 1 all units are, total and n are 0
//   7 credit   28  u64 posted, u64 released, u64 received, u32 tag
//  10 ready     8  u64 released: all maps and credits were sent
//   8 bye       8  u64 messages received; no more are taken, FIN follows;
//                  flags: 1 the process ends: further bytes are dropped, the sender sends FIN
// Either
//   9 refusal  24  u32 reason, u32 0, u64 ours, u64 theirs (reason.h); the flow, or after accept
//                  the session, is over
//
// Handshake. hello; with a cluster key: challenge, proof; then accept; for each lane a map for each
// message begun and not counted as received, and one credit; then ready, after which the flow
// carries chunks. (On a new session there is nothing between accept and ready.) Both macs are
// HMAC-SHA256(key, label, hello's 140 bytes with its header, challenge nonce), with the labels
// "ztcp1 receiver" and "ztcp1 sender". They prove that both ends hold the key and are present now;
// the records that follow are neither encrypted nor signed. Before the proof, a receiver does
// nothing for a hello that it could not undo (no session, no fence).
//
// Flows. Flow 0 opens the session and alone suffices. A receiver grants at most as many others as
// both sides want, and may still refuse any of them: the sender goes on with those it has.
//
// Epochs. A flow's first stream has epoch 1, each further attempt one more. A receiver that accepts
// an epoch ends the flow's older stream first and takes no byte from it afterwards: so later maps
// and credit are final for the chunks of that flow. An epoch not above the current is refused.
//
// Lanes. Each tag is a lane, which numbers its messages from 0: the j-th message sent with a tag
// belongs to the j-th buffer posted with it, whenever either happens and whatever other lanes do. A
// lane begins with its first message, buffer or credit, and stays; there are at most 262,144, and
// at most 512 for which the receiver has announced buffers and that carry no message yet. A message
// waits only for its own lane's credit, and messages of other lanes may pass it.
//
// Units. A message is counted in units: 4096 bytes, doubled until 1024 of them cover the message. A
// chunk starts at a unit and ends at one or at the message's end; it holds at least one byte,
// except for the single chunk of an empty message. Chunks of a lane are sent in (message, offset)
// order, those to be sent again before all others; a receiver takes them in any order. A unit
// counts as held once all its bytes have come in one chunk; pieces of a unit on a dead flow count
// as nothing.
//
// Credit. All numbers are cumulative and only grow; the latest record is complete for its lane.
//   posted    the lane's buffers, within its window: at most received + window. A chunk of message
//             k (from 0) may go out plainly iff k < posted.
//   received  the lane's messages finished, in order: all of 0..received-1 lie in their buffers.
//   released  of the session: bytes of eager units that have reached a posted buffer.
// Any other chunk is marked eager; it may go out iff eager bytes sent - released stay within the
// allowance, k < received + window, and it does not begin a 33rd message, over all lanes, that is
// out without a buffer known to be posted. Bytes lost with a dead flow are not charged again, since
// they fill no further memory: only if they go out plainly are they subtracted from the eager bytes
// sent. So the eager messages without a buffer, from their first bytes to the last ones sent, lie
// within the allowance, and lost bytes never wait for credit.
//
// The memory of a message is its sender's again when the peer holds all its bytes (each flow's
// stream has acknowledged them, where accept says that this means delivery; or received has passed
// it) and no stream refers to it any more. A side whose TCP does not promise this leaves
// acknowledging to its kernel, which also delays some ACKs: the other end's TCP is told to expect
// it.
//
// When credit is told. A lane is *small* while the message that it began last is: four such
// messages fit in the allowance. A sender does not wait for the buffers of a small lane while
// allowance is left, so its credit may be delayed: it is sent once 16 messages were received or
// half of the allowance was released since the last credit, or when a message is received for which
// the sender waits, or when the sender asks. A sender waits for each message that it keeps no copy
// of. If the receiver's silence can't complete a copy, the sender also waits for the 16 messages
// after such a message, and for every copy of a session with several tags or flows: its kernel
// would learn late that they have arrived. It asks whenever it waits for credit of a small lane,
// and before its bye; an ask is answered by the next credit, at once if there is any to tell, else
// as soon as there is. For other lanes, and lanes that have no message yet, a sender is told in
// time: of a buffer at once where it knows of none for a message to come, and soon where it knows
// of fewer than half of them. A receiver sends no other credit: a sender that knows a lane to be
// small there relies on its silence (SendSession::is_receiver_silent()).
//
// Ends. The sender's bye follows when all its messages are done, so that a receiver holds them all
// by then and a buffer without one stays empty. The numbers of both byes cover all lanes.
//
// End of a process, whose memory may be going. If no stream of the session refers to message
// memory, it says bye. Otherwise the sender resets all its flows and announces the end in the hello
// of one more, which is refused: that session is over. Redialling is useless from then on.
//
// Abort. A side that gives a session up with messages in flight announces it, since a reset alone
// may mean a flow that is about to be dialled again. It sends a refusal with `aborted` as the last
// record of each flow that is between two records and refers to no message: a receiver on every
// one, a sender on those whose chunks are all acknowledged. A sender without such a flow resets all
// flows, and announces the abort in the hello of one more, which is refused: that session is over.
//
// Resume. After a flow's death the sender dials again, and learns from the maps and credits before
// ready which units of that flow are held: those below received or set in a map. The others are
// sent again, on any flow. A receiver ignores units it holds and chunks of finished messages. If it
// has closed meanwhile, it refuses with `closed` and the count of its bye: the bye may have died
// with the flows, and received messages are done.
//
// A killed process sends nothing, but if its sockets belong to the kernel, the kernel closes them,
// all at once. So a receiver that has no flow left dials the address in its sender's hello, if its
// flows came from there, and sends nothing on that connection: while the process lives, it is
// accepted. If the host refuses connections for half a second, the process has ended; the same
// holds for a sender whose redials are refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/host_name.h"
#include "transport/msg/chunk_map.h"
#include "transport/msg/hmac_sha256.h"
#include "transport/msg/reason.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

inline constexpr std::uint32_t kMagic = 0x7063747a;
inline constexpr std::size_t kPreambleBytes = 8;
inline constexpr std::size_t kHeaderBytes = 8;
using Nonce = std::array<std::byte, 16>;

enum class RecordType : std::uint8_t {
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kAccept = 4,
  kChunk = 5,
  kMap = 6,
  kCredit = 7,
  kBye = 8,
  kRefusal = 9,
  kReady = 10,
  kAsk = 11,
};

struct RecordHeader {
  RecordType type{};
  std::uint8_t flags = 0;
  std::uint16_t body_bytes = 0;
  std::uint32_t payload_bytes = 0;
};

struct Hello {
  static constexpr std::size_t kBody = 132;
  bool is_new = false;
  bool has_key = false;
  bool process_ends = false;
  bool ack_is_delivery = false;
  bool aborts = false;
  bool shares_nic = false;  // See DialSettings::peer_shares_nic, for `listening`.
  // It only announces the end of the session.
  bool is_last() const { return process_ends || aborts; }
  Cookie cookie{};
  std::uint64_t session = 0;
  std::uint32_t epoch = 0;
  std::uint8_t flow = 0;
  std::uint8_t flows_wanted = 0;
  Nonce nonce{};
  Endpoint listening{};
  HostName host{};
};

struct Challenge {
  static constexpr std::size_t kBody = 48;
  Nonce nonce{};
  Digest mac{};
};

struct Proof {
  static constexpr std::size_t kBody = 32;
  Digest mac{};
};

struct Accept {
  static constexpr std::size_t kBody = 80;
  bool ack_is_delivery = false;
  std::uint32_t allowance_bytes = 0;
  std::uint8_t flows_granted = 0;
  std::uint16_t message_window = 0;
  std::uint64_t session = 0;
  HostName host{};
};

struct Chunk {
  static constexpr std::size_t kBody = 28;
  bool eager = false;
  std::uint32_t size_bytes = 0;
  std::uint64_t message = 0;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::uint32_t tag = 0;
  bool wants_receipt = false;
};

struct Ask {
  static constexpr std::size_t kBody = 0;
};

struct Map {
  static constexpr std::size_t kMinBody = 20;
  std::uint64_t message = 0;
  std::uint64_t total = 0;
  ChunkMap units{};
  bool is_whole = false;  // Then total and units are left out.
  std::uint32_t tag = 0;
};

struct Credit {
  static constexpr std::size_t kBody = 28;
  std::uint64_t posted = 0;
  std::uint64_t released = 0;
  std::uint64_t received = 0;
  std::uint32_t tag = 0;
  friend bool operator==(const Credit&, const Credit&) = default;
};

struct Ready {
  static constexpr std::size_t kBody = 8;
  std::uint64_t released = 0;
};

struct Bye {
  static constexpr std::size_t kBody = 8;
  std::uint64_t messages = 0;
  bool process_ends = false;
};

struct Refusal {
  static constexpr std::size_t kBody = 24;
  Reason reason{};
  std::uint64_t ours = 0;
  std::uint64_t theirs = 0;
};

// Whether credit may be delayed for a lane that began such a message last.
constexpr bool is_small(std::uint64_t total, std::uint64_t allowance_bytes) {
  return total <= allowance_bytes / 4;
}

inline constexpr std::size_t kMaxRecordBytes =
    kHeaderBytes + Map::kMinBody + ChunkMap::kMaxUnits / 8;
using RecordBuffer = std::array<std::byte, kMaxRecordBytes>;
inline constexpr std::size_t kChunkRecordBytes = kHeaderBytes + Chunk::kBody;

// Each writes a whole record without payload and returns its size. `out` must have room for it.
std::size_t encode_preamble(std::uint32_t version, std::span<std::byte> out);
std::size_t encode(const Hello& hello, std::span<std::byte> out);
std::size_t encode(const Challenge& challenge, std::span<std::byte> out);
std::size_t encode(const Proof& proof, std::span<std::byte> out);
std::size_t encode(const Accept& accept, std::span<std::byte> out);
std::size_t encode(const Chunk& chunk, std::span<std::byte> out);
std::size_t encode(Ask, std::span<std::byte> out);
std::size_t encode(const Map& map, std::span<std::byte> out);
std::size_t encode(const Credit& credit, std::span<std::byte> out);
std::size_t encode(const Ready& ready, std::span<std::byte> out);
std::size_t encode(const Bye& bye, std::span<std::byte> out);
std::size_t encode(const Refusal& refusal, std::span<std::byte> out);

// The session id in the first kSessionKnownBytes of a sender's stream. Nothing if they are not a
// hello of this version.
inline constexpr std::size_t kSessionKnownBytes = kPreambleBytes + kHeaderBytes + 24;
std::optional<std::uint64_t> session_of(std::span<const std::byte, kSessionKnownBytes> bytes);

// A header whose type, flags, body and payload sizes are consistent; nothing otherwise.
std::optional<RecordHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// Bodies. The header came from decode_header() and `body` has its body_bytes. Nothing when a field
// breaks a rule above.
std::optional<Hello> decode_hello(const RecordHeader& header, std::span<const std::byte> body);
std::optional<Challenge> decode_challenge(std::span<const std::byte> body);
std::optional<Proof> decode_proof(std::span<const std::byte> body);
std::optional<Accept> decode_accept(const RecordHeader& header, std::span<const std::byte> body);
std::optional<Chunk> decode_chunk(const RecordHeader& header, std::span<const std::byte> body);
std::optional<Map> decode_map(const RecordHeader& header, std::span<const std::byte> body);
std::optional<Credit> decode_credit(std::span<const std::byte> body);
std::optional<Ready> decode_ready(std::span<const std::byte> body);
std::optional<Bye> decode_bye(const RecordHeader& header, std::span<const std::byte> body);
std::optional<Refusal> decode_refusal(std::span<const std::byte> body);

}  // namespace ztcp::msg
