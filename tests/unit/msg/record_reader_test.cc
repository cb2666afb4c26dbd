// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/record_reader.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

using Bytes = std::vector<std::byte>;
using Step = RecordReader::Step;

template <class Record>
void append(Bytes& out, const Record& record) {
  RecordBuffer buffer;
  const std::size_t size = encode(record, buffer);
  out.insert(out.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size));
}

// One record of each kind that a reader distinguishes, and the result of reading them whole.
Bytes stream() {
  Bytes out(kPreambleBytes);
  encode_preamble(1, out);
  append(out, Credit{3, 2, 1});
  append(out, Chunk{false, 5000, 0, 0, 5000});
  for (int i = 0; i < 5000; ++i) out.push_back(static_cast<std::byte>(i * 7));
  Map map{1, 900 * 4096, {}};
  map.units.set(5, 700);
  append(out, map);
  append(out, Chunk{true, 0, 1, 0, 0});
  append(out, Chunk{true, 3, 2, 0, 3});
  for (int i = 0; i < 3; ++i) out.push_back(std::byte{9});
  append(out, Bye{4});
  return out;
}

// A transcript that does not depend on the payload's division into pieces.
std::string read(const std::vector<Bytes>& pieces) {
  RecordReader reader;
  std::string text;
  for (const Bytes& piece : pieces) {
    std::span<const std::byte> input = piece;
    for (;;) {
      const Step step = reader.next(input);
      if (step == Step::kNeedMore) {
        EXPECT_TRUE(input.empty());
        break;
      }
      const auto add = [&](std::span<const std::byte> bytes) {
        for (const std::byte b : bytes) text += static_cast<char>(b);
      };
      switch (step) {
        case Step::kPreamble:
          text += "preamble" + std::to_string(reader.version());
          break;
        case Step::kRecord:
          text += "record" + std::to_string(static_cast<int>(reader.header().type));
          add(reader.body());
          break;
        case Step::kPayload:
          EXPECT_FALSE(reader.payload().empty());
          add(reader.payload());
          break;
        default:
          return text + "bad";
      }
    }
  }
  return text;
}

TEST(RecordReader, ResultDoesNotDependOnTheSplit) {
  const Bytes whole = stream();
  const std::string expected = read({whole});
  EXPECT_EQ(expected.substr(0, 16), "preamble1record7");
  EXPECT_EQ(expected.find("bad"), std::string::npos);

  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto at = whole.begin() + static_cast<std::ptrdiff_t>(cut);
    ASSERT_EQ(read({Bytes(whole.begin(), at), Bytes(at, whole.end())}), expected) << cut;
  }
  for (const std::size_t step : {1U, 2U, 3U, 7U, 31U, 32U, 33U}) {
    std::vector<Bytes> pieces;
    for (std::size_t at = 0; at < whole.size(); at += step)
      pieces.emplace_back(
          whole.begin() + static_cast<std::ptrdiff_t>(at),
          whole.begin() + static_cast<std::ptrdiff_t>(std::min(at + step, whole.size())));
    EXPECT_EQ(read(pieces), expected) << step;
  }
}

TEST(RecordReader, DetectsAStrayByItsFirstByte) {
  for (const char* text : {"G", "GET / HTTP/1.0", "zt", "ztc\xff", "\x16\x03\x01"}) {
    RecordReader reader;
    std::span<const std::byte> input =
        std::as_bytes(std::span(text, std::char_traits<char>::length(text)));
    const Step step = reader.next(input);
    EXPECT_EQ(step, std::string_view(text) == "zt" ? Step::kNeedMore : Step::kBadMagic) << text;
  }
}

TEST(RecordReader, ReportsTheVersionFirst) {
  Bytes bytes(kPreambleBytes);
  encode_preamble(77, bytes);
  bytes.resize(100, std::byte{0xff});
  RecordReader reader;
  std::span<const std::byte> input = bytes;
  EXPECT_EQ(reader.next(input), Step::kPreamble);
  EXPECT_EQ(reader.version(), 77U);
  EXPECT_EQ(reader.next(input), Step::kBad);
}

TEST(RecordReader, SurvivesNoise) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = stream();
    for (int i = 0; i < 3; ++i)
      bytes[8 + rng() % (bytes.size() - 8)] = static_cast<std::byte>(rng());
    RecordReader reader;
    std::span<const std::byte> input = bytes;
    Step step = Step::kPreamble;
    for (std::size_t steps = 0; step != Step::kNeedMore && step != Step::kBad; ++steps) {
      step = reader.next(input);
      ASSERT_LT(steps, bytes.size());  // Always progress.
    }
  }
}

// On a link in shared memory the peer can still write to bytes it has sent.
TEST(RecordReader, UsesTheCheckedBytesThoughThePeerChangesThem) {
  for (const bool is_last : {false, true}) {
    Bytes input(kPreambleBytes);
    encode_preamble(1, input);
    append(input, Credit{3, 2, 1});
    if (!is_last) input.resize(input.size() + 64);
    std::span<const std::byte> left = input;
    RecordReader reader;
    ASSERT_EQ(reader.next(left), Step::kPreamble);
    ASSERT_EQ(reader.next(left), Step::kRecord);
    std::fill(input.begin(), input.end(), std::byte{0xff});
    const auto credit = decode_credit(reader.body());
    ASSERT_TRUE(credit);
    EXPECT_EQ(credit->posted, 3U);
  }
}

}  // namespace
}  // namespace ztcp::msg
