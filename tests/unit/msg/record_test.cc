// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/record.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

using Bytes = std::vector<std::byte>;

template <class Record>
Bytes encoded(const Record& record) {
  RecordBuffer out;
  const std::size_t size = encode(record, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)};
}

std::optional<RecordHeader> header_of(const Bytes& bytes) {
  return decode_header(std::span<const std::byte, kHeaderBytes>(bytes.data(), kHeaderBytes));
}

std::span<const std::byte> body_of(const Bytes& bytes) {
  return std::span(bytes).subspan(kHeaderBytes);
}

Hello some_hello() {
  Hello hello;
  hello.is_new = true;
  hello.has_key = true;
  hello.cookie.fill(std::byte{0xc0});
  hello.session = 0x1122334455667788;
  hello.epoch = 0x01020304;
  hello.flow = 0;
  hello.flows_wanted = 4;
  hello.nonce.fill(std::byte{0x4e});
  hello.listening = {Ipv4Address{0x0a630002}, 0x1d2f};
  hello.host = HostName::of("gpu-7");
  return hello;
}

std::string zeros(std::size_t bytes) { return std::string(2 * bytes, '0'); }

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (const char* p = text.c_str(); *p != 0; p += *p == ' ' ? 1 : 2) {
    if (*p == ' ') continue;
    unsigned value = 0;
    std::sscanf(p, "%2x", &value);
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

// The format, byte by byte, as written by an implementation from the text in record.h.
TEST(Record, BytesMatchTheFormatsText) {
  std::array<std::byte, kPreambleBytes> preamble;
  encode_preamble(1, preamble);
  EXPECT_EQ(Bytes(preamble.begin(), preamble.end()), from_hex("7a746370 01000000"));
  EXPECT_EQ(
      encoded(some_hello()),
      from_hex("01 03 8400 00000000 c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0 8877665544332211 04030201 "
               "00 04 0000 4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e 2f1d 0000 "
               "00000000000000000000ffff0a630002 6770752d37" +
               zeros(59)));
  EXPECT_EQ(encoded(Accept{true, 0x20000, 4, 32, 0x1122334455667788}),
            from_hex("04 01 5000 00000000 00000200 04 00 2000 8877665544332211" + zeros(64)));
  EXPECT_EQ(encoded(Chunk{true, 4096, 5, 8192, 1 << 20, 0x01020304}),
            from_hex("05 01 1c00 00100000 0500000000000000 0020000000000000 0000100000000000 "
                     "04030201"));
  EXPECT_EQ(encoded(Credit{3, 2, 1, 0x01020304}),
            from_hex("07 00 1c00 00000000 0300000000000000 0200000000000000 0100000000000000 "
                     "04030201"));
  EXPECT_EQ(encoded(Ready{258}), from_hex("0a 00 0800 00000000 0201000000000000"));
  EXPECT_EQ(encoded(Bye{258}), from_hex("08 00 0800 00000000 0201000000000000"));
  EXPECT_EQ(encoded(Bye{258, true}), from_hex("08 01 0800 00000000 0201000000000000"));
  EXPECT_EQ(encoded(Refusal{Reason::kVersion, 1, 2}),
            from_hex("09 00 1800 00000000 01000000 00000000 0100000000000000 0200000000000000"));
  Map map;
  map.message = 7;
  map.total = 3 * 4096 + 1;
  map.units.set(1, 3);
  map.tag = 0x01020304;
  EXPECT_EQ(encoded(map),
            from_hex("06 00 1500 00000000 0700000000000000 0130000000000000 04030201 06"));
  map.is_whole = true;
  EXPECT_EQ(encoded(map),
            from_hex("06 01 1400 00000000 0700000000000000 0000000000000000 04030201"));
  EXPECT_EQ(encoded(Challenge{}).size(), kHeaderBytes + 48);
  EXPECT_EQ(encoded(Proof{}).size(), kHeaderBytes + 32);
}

TEST(Record, RoundTripKeepsAllFields) {
  const Bytes bytes = encoded(some_hello());
  const auto header = header_of(bytes);
  ASSERT_TRUE(header);
  const auto hello = decode_hello(*header, body_of(bytes));
  ASSERT_TRUE(hello);
  EXPECT_EQ(encoded(*hello), bytes);
  Hello last = some_hello();
  last.process_ends = true;
  last.ack_is_delivery = true;
  const Bytes last_bytes = encoded(last);
  const auto last_header = header_of(last_bytes);
  ASSERT_TRUE(last_header);
  EXPECT_EQ(last_header->flags, 15);
  EXPECT_TRUE(decode_hello(*last_header, body_of(last_bytes))->process_ends);
  EXPECT_TRUE(decode_hello(*last_header, body_of(last_bytes))->ack_is_delivery);
  last.aborts = true;
  EXPECT_FALSE(decode_hello(*header_of(encoded(last)), body_of(encoded(last))))
      << "a session ends in one way";
  last.process_ends = false;
  EXPECT_TRUE(decode_hello(*header_of(encoded(last)), body_of(encoded(last)))->aborts);
  EXPECT_FALSE(decode_hello(*header_of(encoded(last)), body_of(encoded(last)))->shares_nic);
  last.shares_nic = true;
  EXPECT_TRUE(decode_hello(*header_of(encoded(last)), body_of(encoded(last)))->shares_nic);

  Map map;
  map.message = 9;
  map.tag = 8;
  map.total = 1000 * 4096;
  map.units.set(3, 800);
  map.units.set(999, 1000);
  const Bytes map_bytes = encoded(map);
  ASSERT_TRUE(header_of(map_bytes));
  const auto decoded = decode_map(*header_of(map_bytes), body_of(map_bytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->units, map.units);
  EXPECT_EQ(decoded->total, map.total);
  EXPECT_EQ(decoded->tag, map.tag);
  EXPECT_FALSE(decoded->is_whole);
  map.is_whole = true;
  const Bytes whole = encoded(map);
  EXPECT_TRUE(decode_map(*header_of(whole), body_of(whole))->is_whole);

  const Bytes challenge = encoded(Challenge{{std::byte{1}}, {std::byte{2}}});
  EXPECT_EQ(encoded(*decode_challenge(body_of(challenge))), challenge);
  const Bytes proof = encoded(Proof{{std::byte{3}}});
  EXPECT_EQ(encoded(*decode_proof(body_of(proof))), proof);
  const Bytes accept = encoded(Accept{true, 4096, 2, 32, 5});
  EXPECT_EQ(encoded(*decode_accept(*header_of(accept), body_of(accept))), accept);
  const Bytes chunk = encoded(Chunk{true, 1, 2, 4096, 4097, 5});
  EXPECT_EQ(encoded(*decode_chunk(*header_of(chunk), body_of(chunk))), chunk);
  const Bytes credit = encoded(Credit{9, 8, 7, 6});
  EXPECT_EQ(encoded(*decode_credit(body_of(credit))), credit);
  const Bytes ready = encoded(Ready{9});
  EXPECT_EQ(encoded(*decode_ready(body_of(ready))), ready);
  const Bytes bye = encoded(Bye{9, true});
  EXPECT_EQ(encoded(*decode_bye(*header_of(bye), body_of(bye))), bye);
  const Bytes refusal = encoded(Refusal{Reason::kTruncated, 10, 20});
  EXPECT_EQ(encoded(*decode_refusal(body_of(refusal))), refusal);
}

struct BadChunk {
  const char* name;
  Chunk chunk;
};

class RejectedChunk : public testing::TestWithParam<BadChunk> {};

TEST_P(RejectedChunk, IsNotDecoded) {
  const Bytes bytes = encoded(GetParam().chunk);
  const auto header = header_of(bytes);
  ASSERT_TRUE(header);
  EXPECT_FALSE(decode_chunk(*header, body_of(bytes)));
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
INSTANTIATE_TEST_SUITE_P(
    Rules, RejectedChunk,
    testing::Values(BadChunk{"unaligned_offset", {false, 4096, 0, 128, 100'000}},
                    BadChunk{"unaligned_end", {false, 4097, 0, 0, 100'000}},
                    BadChunk{"past_the_end", {false, 4097, 0, 0, 4096}},
                    BadChunk{"offset_past_the_end", {false, 4096, 0, 8192, 4096}},
                    BadChunk{"wraps", {false, 4096, 0, kHuge * 2 - 4096, 100'000}},
                    BadChunk{"too_large", {false, 4096, 0, 0, kMaxMessageBytes + 1}},
                    BadChunk{"empty_of_non_empty", {false, 0, 0, 0, 4096}},
                    BadChunk{"offset_in_empty", {false, 0, 0, 4096, 0}},
                    BadChunk{"unit_is_8_kib", {false, 4096, 0, 4096, (4U << 20) + 1}}),
    [](const auto& test) { return test.param.name; });

TEST(Record, InconsistentHeadersAreRejected) {
  const auto with = [](std::size_t at, std::uint8_t value) {
    Bytes bytes = encoded(Credit{});
    bytes[at] = static_cast<std::byte>(value);
    return header_of(bytes).has_value();
  };
  EXPECT_TRUE(with(0, 7));
  EXPECT_FALSE(with(0, 0));  // No such type.
  EXPECT_FALSE(with(0, 11));
  EXPECT_FALSE(with(0, 255));
  EXPECT_FALSE(with(0, 8));  // Another body size.
  EXPECT_FALSE(with(1, 1));  // No such flag.
  EXPECT_FALSE(with(2, 29));
  EXPECT_FALSE(with(3, 1));
  EXPECT_FALSE(with(4, 1));  // Payload belongs to chunks.
  EXPECT_FALSE(with(7, 0x80));
}

TEST(Record, FieldsOutOfRangeAreRejected) {
  const auto hello_ok = [](auto&& change) {
    Hello hello = some_hello();
    change(hello);
    const Bytes bytes = encoded(hello);
    return decode_hello(*header_of(bytes), body_of(bytes)).has_value();
  };
  EXPECT_TRUE(hello_ok([](Hello&) {}));
  EXPECT_FALSE(hello_ok([](Hello& h) { h.epoch = 0; }));
  EXPECT_FALSE(hello_ok([](Hello& h) { h.flows_wanted = 0; }));
  EXPECT_FALSE(hello_ok([](Hello& h) { h.flows_wanted = kMaxFlows + 1; }));
  EXPECT_FALSE(hello_ok([](Hello& h) { h.flow = 4; }));
  EXPECT_FALSE(hello_ok([](Hello& h) { h.flow = 1; }));  // New sessions begin with flow 0.
  EXPECT_TRUE(hello_ok([](Hello& h) { h.flow = 1, h.is_new = false; }));

  const auto accept_ok = [](const Accept& accept) {
    const Bytes bytes = encoded(accept);
    return decode_accept(*header_of(bytes), body_of(bytes)).has_value();
  };
  EXPECT_TRUE(accept_ok({true, 4096, 4, 32, 1}));
  EXPECT_FALSE(accept_ok({true, 4096, 0, 32, 1}));
  EXPECT_FALSE(accept_ok({true, 4096, kMaxFlows + 1, 32, 1}));
  EXPECT_FALSE(accept_ok({true, 4096, 4, 0, 1}));

  EXPECT_FALSE(decode_credit(body_of(encoded(Credit{1, 0, 2}))));  // Received before posted.

  Bytes map = encoded(Map{1, 4096 * 3, {}});
  EXPECT_TRUE(decode_map(*header_of(map), body_of(map)));
  map.back() = std::byte{0x08};  // A fourth unit.
  EXPECT_FALSE(decode_map(*header_of(map), body_of(map)));
  map.push_back(std::byte{0});  // A byte too many.
  EXPECT_FALSE(decode_map(*header_of(map), body_of(map)));

  Bytes refusal = encoded(Refusal{Reason::kFull, 0, 0});
  refusal[kHeaderBytes + 4] = std::byte{1};
  EXPECT_FALSE(decode_refusal(body_of(refusal)));
  // An unknown reason is still a refusal.
  const auto future = decode_refusal(body_of(encoded(Refusal{static_cast<Reason>(99), 0, 0})));
  ASSERT_TRUE(future);
  EXPECT_EQ(future->reason, Reason::kProtocol);
}

TEST(Record, HelloAndAcceptTellPrintableHostNames) {
  RecordBuffer bytes;
  Hello hello;
  hello.epoch = hello.flows_wanted = 1;
  hello.host = HostName::of("gpu-07");
  hello.host.chars[2] = '\n';
  encode(hello, bytes);
  const auto body = std::span(bytes).subspan(kHeaderBytes);
  const auto told = decode_hello({RecordType::kHello, 0, Hello::kBody, 0}, body);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->host.view(), "gp?-07");
  Accept accept{.flows_granted = 1, .message_window = 1};
  accept.host.chars.fill('x');  // No zero ends it.
  encode(accept, bytes);
  const auto granted = decode_accept({RecordType::kAccept, 0, Accept::kBody, 0}, body);
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->host.view(), std::string(63, 'x'));
}

TEST(SessionOf, IsKnownByTheFirstBytesOfAHello) {
  Hello hello;
  hello.session = 0x1122334455667788;
  hello.epoch = 1;
  hello.flows_wanted = 1;
  std::array<std::byte, kPreambleBytes + kHeaderBytes + Hello::kBody> bytes;
  const std::size_t preamble = encode_preamble(kWireVersion, bytes);
  encode(hello, std::span(bytes).subspan(preamble));
  const auto first = std::span(bytes).first<kSessionKnownBytes>();
  EXPECT_EQ(session_of(first), hello.session);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4}, kPreambleBytes}) {
    auto other = bytes;
    other[at] ^= std::byte{0x40};
    EXPECT_EQ(session_of(std::span(other).first<kSessionKnownBytes>()), std::nullopt) << at;
  }
}

}  // namespace
}  // namespace ztcp::msg
