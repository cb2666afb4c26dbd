// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/header_run.h"

#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/same_headers.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::wire {
namespace {

using Bytes = std::vector<std::byte>;
// Header size of a frame in a run.
constexpr std::size_t header_bytes(bool is_ipv6) { return is_ipv6 ? 86 : 66; }

struct Segment {
  std::uint32_t sequence = 1000;
  std::uint32_t acknowledgment = 77;
  std::uint16_t window = 512;
  std::uint16_t source_port = 40000;
  std::uint16_t vlan_id = 0;
  TcpFlags flags = kAck;
  std::size_t payload_bytes = 1448;
  std::uint8_t sack_count = 0;
  bool has_timestamps = true;
  bool is_ipv6 = false;
};

Bytes frame_of(const Segment& segment) {
  Bytes frame(TxFrame::kHeaderCapacity);
  const EtherType type = segment.is_ipv6 ? EtherType::kIpv6 : EtherType::kIpv4;
  const std::size_t l2 = emit_ethernet(
      {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}, segment.vlan_id, type}, frame.data());
  const std::size_t l4 = l2 + (segment.is_ipv6 ? kIpv6Bytes : kIpv4Bytes);
  TcpHeader tcp;
  tcp.source_port = segment.source_port;
  tcp.destination_port = 7471;
  tcp.sequence = segment.sequence;
  tcp.acknowledgment = segment.acknowledgment;
  tcp.window = segment.window;
  tcp.flags = segment.flags;
  if (segment.has_timestamps) tcp.options.timestamps = Timestamps{segment.sequence / 7, 6};
  tcp.options.sack_count = segment.sack_count;
  for (std::uint8_t i = 0; i < segment.sack_count; ++i)
    tcp.options.sack[i] = {i * 10U, i * 10U + 5};
  const std::size_t segment_bytes = emit_tcp(tcp, frame.data() + l4) + segment.payload_bytes;
  if (segment.is_ipv6) {
    emit_ipv6({.source = {0xfd00ULL << 48, 1},
               .destination = {0xfd00ULL << 48, 2},
               .flow_label = 0x9abcd,
               .payload_bytes = static_cast<std::uint16_t>(segment_bytes)},
              frame.data() + l2);
  } else {
    Ipv4Header ip;
    ip.source.value = 0x0a4d010a;
    ip.destination.value = 0x0a4d010b;
    ip.identification = static_cast<std::uint16_t>(segment.sequence / 1448);
    ip.total_bytes = static_cast<std::uint16_t>(kIpv4Bytes + segment_bytes);
    emit_ipv4(ip, frame.data() + l2);
  }
  frame.resize(l4 + segment_bytes);
  return frame;
}

RxFrame frame_view(std::span<const std::byte> bytes) {
  RxFrame frame;
  frame.head = bytes;
  return frame;
}

// A frame after those of the run is parsed as if there had been none before.
void expect_read_right(HeaderRun& run, const RxFrame& frame) {
  EXPECT_TRUE(same_headers(run.next(frame), parse_frame(frame)));
}

// The frames are of both families.
class HeaderRunTest : public testing::TestWithParam<bool> {
 protected:
  static Segment segment() { return {.is_ipv6 = GetParam()}; }
  static constexpr std::size_t kLengthAt[] = {16, 18};
  const std::size_t header_ = header_bytes(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Family, HeaderRunTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "IPv6" : "IPv4"; });

TEST_P(HeaderRunTest, ReadsTheFieldsThatDifferBetweenFrames) {
  HeaderRun run;
  Segment segment = HeaderRunTest::segment();
  for (int i = 0; i < 20; ++i) {
    segment.sequence += 1448;
    segment.acknowledgment += i % 3 == 0 ? 900U : 0U;
    segment.window = static_cast<std::uint16_t>(512 + i);
    segment.flags = i % 4 == 0 ? kAck | kPsh : kAck;
    segment.payload_bytes = i % 5 == 0 ? 100 : 1448;
    const Bytes bytes = frame_of(segment);
    const ParsedFrame& parsed = run.next(frame_view(bytes));
    EXPECT_EQ(parsed.kind, FrameKind::kTcp);
    EXPECT_EQ(parsed.tcp.sequence, segment.sequence);
    EXPECT_EQ(parsed.payload_bytes, segment.payload_bytes);
    EXPECT_TRUE(same_headers(parsed, parse_frame(frame_view(bytes)))) << i;
  }
}

TEST_P(HeaderRunTest, EveryDifferingBitIsDetected) {
  const Bytes first = frame_of(segment());
  for (std::size_t bit = 0; bit < header_ * 8; ++bit) {
    Bytes second = first;
    second[bit / 8] ^= std::byte{1} << (bit % 8);
    HeaderRun run;
    run.next(frame_view(first));
    expect_read_right(run, frame_view(second));
    expect_read_right(run, frame_view(first));
    if (HasFailure()) FAIL() << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_P(HeaderRunTest, WrongLengthsEndTheRun) {
  const Bytes whole = frame_of(segment());
  HeaderRun run;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    run.next(frame_view(whole));
    expect_read_right(run, frame_view(std::span(whole).first(size)));
    if (HasFailure()) FAIL() << size << " bytes";
  }
  for (std::uint32_t total = 0; total <= 0xffff; ++total) {
    Bytes lying = whole;
    store_be16(lying.data() + kLengthAt[GetParam() ? 1 : 0], static_cast<std::uint16_t>(total));
    run.next(frame_view(whole));
    expect_read_right(run, frame_view(lying));
    if (HasFailure()) FAIL() << total << " bytes of packet";
  }
}

TEST_P(HeaderRunTest, PiecesAndPaddingCount) {
  const Bytes whole = frame_of(segment());
  HeaderRun run;
  for (const std::size_t first : {header_ - 1, header_, header_ + 1, std::size_t{900}}) {
    run.next(frame_view(whole));
    const std::array<std::span<const std::byte>, 1> rest{std::span(whole).subspan(first)};
    RxFrame frame = frame_view(std::span(whole).first(first));
    frame.more = rest;
    expect_read_right(run, frame);
  }
  Segment empty = segment();
  empty.payload_bytes = 0;
  Bytes padded = frame_of(empty);
  padded.resize(padded.size() + 10, std::byte{0xee});
  run.next(frame_view(whole));
  expect_read_right(run, frame_view(padded));
}

// Flows, layouts and foreign frames in any order.
TEST(HeaderRun, AnyMixtureIsReadRight) {
  std::mt19937 random(11);
  const auto draw = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random()) % below;
  };
  HeaderRun run;
  for (int i = 0; i < 20000; ++i) {
    Segment segment;
    segment.sequence = static_cast<std::uint32_t>(random());
    segment.source_port = static_cast<std::uint16_t>(40000 + draw(2));
    segment.vlan_id = draw(10) == 0 ? 42 : 0;
    segment.has_timestamps = draw(10) != 0;
    segment.sack_count = static_cast<std::uint8_t>(draw(10) == 0 ? 1 + draw(3) : 0);
    segment.payload_bytes = draw(1449);
    segment.is_ipv6 = draw(3) == 0;
    Bytes bytes = frame_of(segment);
    if (draw(5) == 0) bytes[draw(header_bytes(false))] ^= std::byte(1 + draw(255));
    if (draw(20) == 0) bytes.resize(draw(100));
    expect_read_right(run, frame_view(bytes));
    if (HasFailure()) FAIL() << "frame " << i;
  }
}

}  // namespace
}  // namespace ztcp::wire
