// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/frame_reader.h"

#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

namespace ztcp::perf {
namespace {

Bytes frame_of(FrameType type, std::string_view payload, std::uint32_t magic = kFrameMagic) {
  const FrameHeader header{magic, static_cast<std::uint32_t>(type),
                           static_cast<std::uint32_t>(payload.size())};
  Bytes out(sizeof header + payload.size());
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, payload.data(), payload.size());
  return out;
}

TEST(FrameReader, FramesAreReassembledFromAnyPieces) {
  Bytes stream = frame_of(FrameType::kData, "handle");
  for (const Bytes& more : {frame_of(FrameType::kAlive, ""), frame_of(FrameType::kAbort, "")})
    stream.insert(stream.end(), more.begin(), more.end());
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader;
    for (std::size_t at = 0; at < stream.size(); at += piece)
      ASSERT_TRUE(reader.take(std::span(stream).subspan(at, std::min(piece, stream.size() - at))));
    ASSERT_EQ(reader.frames().size(), 2u);
    const Frame first = reader.pop();
    EXPECT_EQ(first.type, FrameType::kData);
    EXPECT_EQ(std::memcmp(first.payload.data(), "handle", 6), 0);
    EXPECT_EQ(reader.pop().type, FrameType::kAbort);
  }
}

TEST(FrameReader, AFrameThatIsTooLongIsRefusedByItsHeader) {
  FrameReader reader;
  FrameHeader header{kFrameMagic, static_cast<std::uint32_t>(FrameType::kHello), kMaxGreeting + 1};
  EXPECT_FALSE(reader.take(std::as_bytes(std::span(&header, 1))));
  EXPECT_TRUE(reader.is_malformed());
  // Later bytes are neither checked nor kept.
  EXPECT_FALSE(reader.take(frame_of(FrameType::kHello, "x")));
  EXPECT_TRUE(reader.frames().empty());

  FrameReader admitted(kMaxPayload);
  EXPECT_TRUE(admitted.take(std::as_bytes(std::span(&header, 1))));
  header.payload_bytes = kMaxPayload + 1;
  FrameReader another(kMaxPayload);
  EXPECT_FALSE(another.take(std::as_bytes(std::span(&header, 1))));
}

TEST(FrameReader, OtherProtocolsAreRefused) {
  FrameReader reader;
  EXPECT_FALSE(reader.take(std::as_bytes(std::span("GET / HTTP/1.0\r\n\r\n"))));
  FrameReader former;
  EXPECT_FALSE(former.take(frame_of(FrameType::kHello, "", 0x7a504631)));
}

TEST(FrameReader, AFullReaderAcceptsNoMoreBytes) {
  FrameReader reader;
  const Bytes one = frame_of(FrameType::kData, "x");
  int taken = 0;
  while (!reader.is_full() && taken < 1000) {
    ASSERT_TRUE(reader.take(one));
    ++taken;
  }
  EXPECT_LT(taken, 1000);
  reader.pop();
  EXPECT_FALSE(reader.is_full());
}

}  // namespace
}  // namespace ztcp::perf
