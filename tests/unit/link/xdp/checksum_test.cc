// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checksums that an AF_XDP link writes while it copies a frame.
#include "transport/wire/checksum.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "tests/unit/link/xdp/xdp_link_fixture.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::link {
namespace {

using test::kOwn;
using test::kPeer;
using test::XdpLinkTest;

constexpr std::size_t kIpAt = 14;
constexpr std::size_t kTcpAt = 34;
constexpr std::size_t kHeaderBytes = 66;  // With timestamps.

// A segment of this host as the stack leaves it to a link, in fragments of odd lengths.
struct Unsummed {
  Unsummed(std::uint32_t seed, std::size_t payload_bytes) : payload(payload_bytes) {
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = test::pattern(seed, i);
    std::byte* const p = frame.header.data();
    for (std::size_t i = 0; i < kHeaderBytes; ++i) p[i] = test::pattern(seed + 1, i);
    const auto tcp_bytes = static_cast<std::uint16_t>(kHeaderBytes - kTcpAt + payload_bytes);
    wire::store_be16(p + 12, 0x0800);
    wire::store_u8(p + kIpAt, 0x45);
    wire::store_be16(p + kIpAt + 2, static_cast<std::uint16_t>(20 + tcp_bytes));
    wire::store_u8(p + kIpAt + 9, 6);
    wire::store_be16(p + kIpAt + 10, 0);
    wire::store_be32(p + kIpAt + 12, kOwn.value);
    wire::store_be32(p + kIpAt + 16, kPeer.value);
    wire::store_be16(p + kTcpAt + wire::kTcpChecksumOffset,
                     wire::pseudo_header_checksum(kOwn, kPeer, tcp_bytes).folded());
    frame.header_bytes = kHeaderBytes;
    frame.l2_bytes = kIpAt;
    frame.l3_bytes = kTcpAt - kIpAt;
    frame.checksum_offload = true;
    frame.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    const std::size_t first = std::min<std::size_t>(payload_bytes, 333);
    add({payload.data(), first});
    const std::size_t second = std::min<std::size_t>(payload_bytes - first, 101);
    add({payload.data() + first, second});
    add(std::span(payload).subspan(first + second));
  }
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    frame.fragments[frame.fragment_count++] = {bytes.data(),
                                               static_cast<std::uint32_t>(bytes.size()), kUnmapped};
  }
  std::vector<std::byte> payload;
  TxFrame frame;
};

class XdpChecksum : public XdpLinkTest {
 protected:
  void expect_right_checksums(std::size_t payload_bytes) {
    SCOPED_TRACE(payload_bytes);
    Unsummed out(static_cast<std::uint32_t>(payload_bytes), payload_bytes);
    ASSERT_EQ(link().transmit({&out.frame, 1}), 1U);
    const auto bytes = sent_one();
    ASSERT_EQ(bytes.size(), kHeaderBytes + payload_bytes);
    EXPECT_TRUE(std::equal(out.payload.begin(), out.payload.end(), bytes.begin() + kHeaderBytes));
    const std::span<const std::byte> segment = std::span(bytes).subspan(kTcpAt);
    EXPECT_EQ(wire::internet_checksum(std::span(bytes).subspan(kIpAt, kTcpAt - kIpAt)), 0);
    wire::Checksum sum =
        wire::pseudo_header_checksum(kOwn, kPeer, static_cast<std::uint32_t>(segment.size()));
    sum.add(segment);
    EXPECT_TRUE(sum.is_good());
  }
};

TEST_F(XdpChecksum, AreRightInFramesOfEachSize) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  EXPECT_TRUE(link().capabilities().tx_checksum);
  EXPECT_TRUE(link().capabilities().sums_as_it_copies);
  for (const std::size_t size : {0, 1, 2, 127, 334, 700, 1447, 1448})
    ASSERT_NO_FATAL_FAILURE(expect_right_checksums(size));
}

TEST_F(XdpChecksum, AreRightInFramesOfSeveralChunks) {
  ASSERT_NO_FATAL_FAILURE(open(config(9000)));
  for (const std::size_t size : {0, 4029, 4030, 4031, 8127, 8948})
    ASSERT_NO_FATAL_FAILURE(expect_right_checksums(size));
}

}  // namespace
}  // namespace ztcp::link
