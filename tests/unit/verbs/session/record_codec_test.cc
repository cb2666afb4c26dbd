// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/record_codec.h"

#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::records {
namespace {

struct Protocol {
  enum class Kind : std::uint8_t { kShort = 1, kLong = 2, kOther = 3 };
  static constexpr std::uint32_t kMagic = 0x31323334;
  static constexpr std::uint8_t kVersion = 7;
  static constexpr std::size_t kMaxBytes = 40;
  static constexpr const char* kNoRecord = "no record";
  static constexpr const char* kOtherVersion = "another version";
};

struct Short {
  static constexpr Protocol::Kind kKind = Protocol::Kind::kShort;
  Header<Protocol> header;
};
struct Long {
  static constexpr Protocol::Kind kKind = Protocol::Kind::kLong;
  Header<Protocol> header;
  std::array<char, 32> text{};
};
// As long as a Long.
struct Other {
  static constexpr Protocol::Kind kKind = Protocol::Kind::kOther;
  Header<Protocol> header;
  std::array<char, 32> text{};
};

// How many of the bytes the reader took.
std::size_t feed(Reader<Protocol>& reader, std::span<const std::byte> bytes) {
  std::size_t fed = 0;
  while (fed < bytes.size()) {
    const auto complete = reader.is_complete();
    if (!complete || *complete) break;
    const auto room = reader.room();
    const std::size_t n = std::min(room.size(), bytes.size() - fed);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(fed), n, room.begin());
    reader.add(n);
    fed += n;
  }
  return fed;
}

TEST(RecordCodec, ReaderStopsBehindTheRecord) {
  std::vector<std::byte> stream;
  const Short first = make<Short>();
  const Long second = make<Long>();
  for (const auto& part : {bytes_of(first), bytes_of(second)})
    stream.insert(stream.end(), part.begin(), part.end());
  Reader<Protocol> reader;
  EXPECT_EQ(feed(reader, stream), sizeof(Short));
  EXPECT_TRUE(*reader.is_complete());
  EXPECT_EQ(reader.kind(), Protocol::Kind::kShort);
  EXPECT_TRUE(reader.take<Short>());
  EXPECT_EQ(feed(reader, std::span(stream).subspan(sizeof(Short))), sizeof(Long));
  EXPECT_TRUE(reader.take<Long>());
  EXPECT_FALSE(*reader.is_complete()) << "nothing is left";
}

TEST(RecordCodec, RecordOfAnotherKindOrSizeIsNotTaken) {
  Reader<Protocol> reader;
  const Long record = make<Long>();
  feed(reader, bytes_of(record));
  EXPECT_FALSE(reader.take<Short>());
  EXPECT_FALSE(reader.take<Other>());
  EXPECT_TRUE(reader.take<Long>());
}

TEST(RecordCodec, VersionIsTheFirstThingThatMayDiffer) {
  Long record = make<Long>();
  record.header.version ^= 1;
  Reader<Protocol> reader;
  feed(reader, bytes_of(record));
  const auto complete = reader.is_complete();
  ASSERT_FALSE(complete);
  EXPECT_STREQ(complete.error().where, "another version");
  EXPECT_TRUE(reader.is_of_other_version());
}

TEST(RecordCodec, MagicAndSizeAreChecked) {
  for (const std::uint16_t size : std::initializer_list<std::uint16_t>{0, 7, 41, 0xffff}) {
    Long record = make<Long>();
    record.header.size_bytes = size;
    Reader<Protocol> reader;
    EXPECT_EQ(feed(reader, bytes_of(record)), sizeof(Header<Protocol>)) << size;
    EXPECT_FALSE(reader.is_complete()) << size;
    EXPECT_LE(reader.room().size(), Protocol::kMaxBytes);
  }
  Long record = make<Long>();
  record.header.magic ^= 1;
  Reader<Protocol> reader;
  feed(reader, bytes_of(record));
  const auto complete = reader.is_complete();
  ASSERT_FALSE(complete);
  EXPECT_STREQ(complete.error().where, "no record");
  EXPECT_FALSE(reader.is_of_other_version());
}

TEST(RecordCodec, LoadTakesNothingFromTooFewBytes) {
  const Long record = make<Long>();
  EXPECT_FALSE(load<Long>(bytes_of(record).first(sizeof record - 1)));
  const auto loaded = load<Short>(bytes_of(record));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->header.kind, Protocol::Kind::kLong) << "the bytes alone are copied";
}

TEST(RecordCodec, TextIsCutAndPrintable) {
  std::array<char, 4> text{'x', 'x', 'x', 'x'};
  put_text("a\nbcd", text);
  EXPECT_EQ(printable(text), "a?b");
  put_text("", text);
  EXPECT_EQ(printable(text), "");
  text.fill('y');
  EXPECT_EQ(printable(text), "yyyy") << "without a zero";
}

}  // namespace
}  // namespace ztcp::records
