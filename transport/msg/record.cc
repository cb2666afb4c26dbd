// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/record.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace ztcp::msg {
namespace {

static_assert(std::endian::native == std::endian::little, "integers are stored as they are");

constexpr std::uint8_t kHelloNew = 1;
constexpr std::uint8_t kHelloHasKey = 2;
constexpr std::uint8_t kHelloProcessEnds = 4;
constexpr std::uint8_t kHelloAckIsDelivery = 8;
constexpr std::uint8_t kHelloAborts = 16;
constexpr std::uint8_t kHelloSharesNic = 32;
constexpr std::uint8_t kAcceptAckIsDelivery = 1;
constexpr std::uint8_t kChunkEager = 1;
constexpr std::uint8_t kChunkWantsReceipt = 2;
constexpr std::uint8_t kMapIsWhole = 1;
constexpr std::uint8_t kByeProcessEnds = 1;

// An address in wire order.
using AddressBytes = std::array<std::byte, 16>;

AddressBytes to_wire(IpAddress address) {
  AddressBytes bytes;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(address.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::byte>(address.low >> (56 - 8 * i));
  }
  return bytes;
}

IpAddress from_wire(const AddressBytes& bytes) {
  IpAddress address;
  for (std::size_t i = 0; i < 8; ++i) {
    address.high = address.high << 8U | std::to_integer<std::uint64_t>(bytes[i]);
    address.low = address.low << 8U | std::to_integer<std::uint64_t>(bytes[8 + i]);
  }
  return address;
}

// Appends integers and byte arrays in order.
class Writer {
 public:
  Writer(std::span<std::byte> out, RecordType type, std::uint8_t flags, std::size_t body_bytes,
         std::uint32_t payload_bytes = 0)
      : out_(out) {
    assert(out.size() >= kHeaderBytes + body_bytes);
    put(type).put(flags).put(static_cast<std::uint16_t>(body_bytes)).put(payload_bytes);
  }
  template <class T>
  Writer& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(out_.data() + size_, &value, sizeof value);
    size_ += sizeof value;
    return *this;
  }
  std::size_t size() const { return size_; }

 private:
  std::span<std::byte> out_;
  std::size_t size_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}
  template <class T>
  T take() {
    T value;
    assert(in_.size() >= sizeof value);
    std::memcpy(&value, in_.data(), sizeof value);
    in_ = in_.subspan(sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> in_;
};

HostName take_host_name(Reader& in) {
  const auto chars = in.take<std::array<char, HostName::kBytes>>();
  return HostName::of({chars.data(), chars.size()});
}

}  // namespace

std::size_t encode_preamble(std::uint32_t version, std::span<std::byte> out) {
  assert(out.size() >= kPreambleBytes);
  std::memcpy(out.data(), &kMagic, sizeof kMagic);
  std::memcpy(out.data() + sizeof kMagic, &version, sizeof version);
  return kPreambleBytes;
}

std::size_t encode(const Hello& hello, std::span<std::byte> out) {
  const auto flags = static_cast<std::uint8_t>(
      (hello.is_new ? kHelloNew : 0) | (hello.has_key ? kHelloHasKey : 0) |
      (hello.process_ends ? kHelloProcessEnds : 0) |
      (hello.ack_is_delivery ? kHelloAckIsDelivery : 0) | (hello.aborts ? kHelloAborts : 0) |
      (hello.shares_nic ? kHelloSharesNic : 0));
  return Writer(out, RecordType::kHello, flags, Hello::kBody)
      .put(hello.cookie)
      .put(hello.session)
      .put(hello.epoch)
      .put(hello.flow)
      .put(hello.flows_wanted)
      .put(std::uint16_t{0})
      .put(hello.nonce)
      .put(hello.listening.port)
      .put(std::uint16_t{0})
      .put(to_wire(hello.listening.address))
      .put(hello.host.chars)
      .size();
}

std::size_t encode(const Challenge& challenge, std::span<std::byte> out) {
  return Writer(out, RecordType::kChallenge, 0, Challenge::kBody)
      .put(challenge.nonce)
      .put(challenge.mac)
      .size();
}

std::size_t encode(const Proof& proof, std::span<std::byte> out) {
  return Writer(out, RecordType::kProof, 0, Proof::kBody).put(proof.mac).size();
}

std::size_t encode(const Accept& accept, std::span<std::byte> out) {
  const std::uint8_t flags = accept.ack_is_delivery ? kAcceptAckIsDelivery : 0;
  return Writer(out, RecordType::kAccept, flags, Accept::kBody)
      .put(accept.allowance_bytes)
      .put(accept.flows_granted)
      .put(std::uint8_t{0})
      .put(accept.message_window)
      .put(accept.session)
      .put(accept.host.chars)
      .size();
}

std::size_t encode(const Chunk& chunk, std::span<std::byte> out) {
  const auto flags = static_cast<std::uint8_t>((chunk.eager ? kChunkEager : 0) |
                                               (chunk.wants_receipt ? kChunkWantsReceipt : 0));
  return Writer(out, RecordType::kChunk, flags, Chunk::kBody, chunk.size_bytes)
      .put(chunk.message)
      .put(chunk.offset)
      .put(chunk.total)
      .put(chunk.tag)
      .size();
}

std::size_t encode(Ask, std::span<std::byte> out) {
  return Writer(out, RecordType::kAsk, 0, Ask::kBody).size();
}

std::size_t encode(const Map& map, std::span<std::byte> out) {
  const std::uint64_t total = map.is_whole ? 0 : map.total;
  const std::size_t bytes = static_cast<std::size_t>(UnitSize(total).count(total) + 7) / 8;
  Writer writer(out, RecordType::kMap, map.is_whole ? kMapIsWhole : 0, Map::kMinBody + bytes);
  writer.put(map.message).put(total).put(map.tag);
  for (std::size_t i = 0; i < bytes; ++i)
    writer.put(static_cast<std::uint8_t>(map.units.word(i / 8) >> (8 * (i % 8))));
  return writer.size();
}

std::size_t encode(const Credit& credit, std::span<std::byte> out) {
  return Writer(out, RecordType::kCredit, 0, Credit::kBody)
      .put(credit.posted)
      .put(credit.released)
      .put(credit.received)
      .put(credit.tag)
      .size();
}

std::size_t encode(const Ready& ready, std::span<std::byte> out) {
  return Writer(out, RecordType::kReady, 0, Ready::kBody).put(ready.released).size();
}

std::size_t encode(const Bye& bye, std::span<std::byte> out) {
  const std::uint8_t flags = bye.process_ends ? kByeProcessEnds : 0;
  return Writer(out, RecordType::kBye, flags, Bye::kBody).put(bye.messages).size();
}

std::size_t encode(const Refusal& refusal, std::span<std::byte> out) {
  return Writer(out, RecordType::kRefusal, 0, Refusal::kBody)
      .put(refusal.reason)
      .put(std::uint32_t{0})
      .put(refusal.ours)
      .put(refusal.theirs)
      .size();
}

std::optional<RecordHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  Reader in(bytes);
  RecordHeader header;
  header.type = in.take<RecordType>();
  header.flags = in.take<std::uint8_t>();
  header.body_bytes = in.take<std::uint16_t>();
  header.payload_bytes = in.take<std::uint32_t>();

  std::uint8_t known_flags = 0;
  std::size_t body = 0;
  switch (header.type) {
    case RecordType::kChunk:  // First: nearly all records are chunks.
      return header.flags <= (kChunkEager | kChunkWantsReceipt) && header.body_bytes == Chunk::kBody
                 ? std::optional(header)
                 : std::nullopt;
    case RecordType::kCredit:
      body = Credit::kBody;
      break;
    case RecordType::kHello:
      known_flags = kHelloNew | kHelloHasKey | kHelloProcessEnds | kHelloAckIsDelivery |
                    kHelloAborts | kHelloSharesNic;
      body = Hello::kBody;
      break;
    case RecordType::kChallenge:
      body = Challenge::kBody;
      break;
    case RecordType::kProof:
      body = Proof::kBody;
      break;
    case RecordType::kAccept:
      known_flags = kAcceptAckIsDelivery;
      body = Accept::kBody;
      break;
    case RecordType::kMap:
      if (header.body_bytes < Map::kMinBody ||
          header.body_bytes > Map::kMinBody + ChunkMap::kMaxUnits / 8)
        return std::nullopt;
      known_flags = kMapIsWhole;
      body = header.body_bytes;
      break;
    case RecordType::kReady:
      body = Ready::kBody;
      break;
    case RecordType::kAsk:
      body = Ask::kBody;
      break;
    case RecordType::kBye:
      known_flags = kByeProcessEnds;
      body = Bye::kBody;
      break;
    case RecordType::kRefusal:
      body = Refusal::kBody;
      break;
    default:
      return std::nullopt;
  }
  if ((header.flags & ~known_flags) != 0 || header.body_bytes != body || header.payload_bytes != 0)
    return std::nullopt;
  return header;
}

std::optional<std::uint64_t> session_of(std::span<const std::byte, kSessionKnownBytes> bytes) {
  Reader preamble(bytes.first<kPreambleBytes>());
  if (preamble.take<std::uint32_t>() != kMagic || preamble.take<std::uint32_t>() != kWireVersion)
    return std::nullopt;
  const auto header = decode_header(bytes.subspan<kPreambleBytes, kHeaderBytes>());
  if (!header || header->type != RecordType::kHello) return std::nullopt;
  Reader body(bytes.subspan<kPreambleBytes + kHeaderBytes>());
  body.take<Cookie>();
  return body.take<std::uint64_t>();
}

std::optional<Hello> decode_hello(const RecordHeader& header, std::span<const std::byte> body) {
  Reader in(body);
  Hello hello;
  hello.is_new = (header.flags & kHelloNew) != 0;
  hello.has_key = (header.flags & kHelloHasKey) != 0;
  hello.process_ends = (header.flags & kHelloProcessEnds) != 0;
  hello.ack_is_delivery = (header.flags & kHelloAckIsDelivery) != 0;
  hello.aborts = (header.flags & kHelloAborts) != 0;
  hello.shares_nic = (header.flags & kHelloSharesNic) != 0;
  hello.cookie = in.take<Cookie>();
  hello.session = in.take<std::uint64_t>();
  hello.epoch = in.take<std::uint32_t>();
  hello.flow = in.take<std::uint8_t>();
  hello.flows_wanted = in.take<std::uint8_t>();
  const auto reserved = in.take<std::uint16_t>();
  hello.nonce = in.take<Nonce>();
  hello.listening.port = in.take<std::uint16_t>();
  const auto reserved_too = in.take<std::uint16_t>();
  hello.listening.address = from_wire(in.take<AddressBytes>());
  hello.host = take_host_name(in);
  if (hello.epoch == 0 || hello.flows_wanted == 0 || hello.flows_wanted > kMaxFlows ||
      hello.flow >= hello.flows_wanted || reserved != 0 || reserved_too != 0 ||
      (hello.is_new && hello.flow != 0) || (hello.process_ends && hello.aborts))
    return std::nullopt;
  return hello;
}

std::optional<Challenge> decode_challenge(std::span<const std::byte> body) {
  Reader in(body);
  Challenge challenge;
  challenge.nonce = in.take<Nonce>();
  challenge.mac = in.take<Digest>();
  return challenge;
}

std::optional<Proof> decode_proof(std::span<const std::byte> body) {
  return Proof{Reader(body).take<Digest>()};
}

std::optional<Accept> decode_accept(const RecordHeader& header, std::span<const std::byte> body) {
  Reader in(body);
  Accept accept;
  accept.ack_is_delivery = (header.flags & kAcceptAckIsDelivery) != 0;
  accept.allowance_bytes = in.take<std::uint32_t>();
  accept.flows_granted = in.take<std::uint8_t>();
  const auto reserved = in.take<std::uint8_t>();
  accept.message_window = in.take<std::uint16_t>();
  accept.session = in.take<std::uint64_t>();
  accept.host = take_host_name(in);
  if (accept.flows_granted == 0 || accept.flows_granted > kMaxFlows || reserved != 0 ||
      accept.message_window == 0)
    return std::nullopt;
  return accept;
}

std::optional<Chunk> decode_chunk(const RecordHeader& header, std::span<const std::byte> body) {
  Reader in(body);
  Chunk chunk;
  chunk.eager = (header.flags & kChunkEager) != 0;
  chunk.wants_receipt = (header.flags & kChunkWantsReceipt) != 0;
  chunk.size_bytes = header.payload_bytes;
  chunk.message = in.take<std::uint64_t>();
  chunk.offset = in.take<std::uint64_t>();
  chunk.total = in.take<std::uint64_t>();
  chunk.tag = in.take<std::uint32_t>();
  if (chunk.total > kMaxMessageBytes || chunk.offset > chunk.total ||
      chunk.size_bytes > chunk.total - chunk.offset)
    return std::nullopt;
  if (chunk.size_bytes == 0) return chunk.total == 0 ? std::optional(chunk) : std::nullopt;
  const UnitSize unit(chunk.total);
  const std::uint64_t end = chunk.offset + chunk.size_bytes;
  if (!unit.is_aligned(chunk.offset) || (end != chunk.total && !unit.is_aligned(end)))
    return std::nullopt;
  return chunk;
}

std::optional<Map> decode_map(const RecordHeader& header, std::span<const std::byte> body) {
  Reader in(body);
  Map map;
  map.is_whole = (header.flags & kMapIsWhole) != 0;
  map.message = in.take<std::uint64_t>();
  map.total = in.take<std::uint64_t>();
  map.tag = in.take<std::uint32_t>();
  if (map.total > kMaxMessageBytes || (map.is_whole && map.total != 0)) return std::nullopt;
  const std::uint64_t units = UnitSize(map.total).count(map.total);
  const std::size_t bytes = static_cast<std::size_t>(units + 7) / 8;
  if (body.size() != Map::kMinBody + bytes) return std::nullopt;
  for (std::size_t i = 0; i < bytes; ++i)
    map.units.set_word(
        i / 8, map.units.word(i / 8) | std::uint64_t{in.take<std::uint8_t>()} << (8 * (i % 8)));
  // Bits past the last unit are reserved.
  const std::uint64_t padded = bytes * 8;
  if (map.units.count(units, padded) != 0) return std::nullopt;
  return map;
}

std::optional<Credit> decode_credit(std::span<const std::byte> body) {
  Reader in(body);
  Credit credit;
  credit.posted = in.take<std::uint64_t>();
  credit.released = in.take<std::uint64_t>();
  credit.received = in.take<std::uint64_t>();
  credit.tag = in.take<std::uint32_t>();
  if (credit.received > credit.posted) return std::nullopt;
  return credit;
}

std::optional<Ready> decode_ready(std::span<const std::byte> body) {
  return Ready{Reader(body).take<std::uint64_t>()};
}

std::optional<Bye> decode_bye(const RecordHeader& header, std::span<const std::byte> body) {
  return Bye{Reader(body).take<std::uint64_t>(), (header.flags & kByeProcessEnds) != 0};
}

std::optional<Refusal> decode_refusal(std::span<const std::byte> body) {
  Reader in(body);
  const auto reason = in.take<std::uint32_t>();
  const auto reserved = in.take<std::uint32_t>();
  Refusal refusal;
  refusal.ours = in.take<std::uint64_t>();
  refusal.theirs = in.take<std::uint64_t>();
  // A later version may have more reasons; its refusal is still a refusal.
  refusal.reason =
      reason == 0 || reason > kLastReason ? Reason::kProtocol : static_cast<Reason>(reason);
  if (reserved != 0) return std::nullopt;
  return refusal;
}

}  // namespace ztcp::msg
