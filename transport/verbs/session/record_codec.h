// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The codec of records with a fixed layout, versioned and bounded, for protocols between two
// processes of one release. A protocol is a type with the properties that all its records have in
// common:
//
//   struct Protocol {
//     enum class Kind : std::uint8_t { ... };
//     static constexpr std::uint32_t kMagic = ...;
//     static constexpr std::uint8_t kVersion = ...;
//     static constexpr std::size_t kMaxBytes = ...;            // The longest record's.
//     static constexpr const char* kNoRecord = "...";          // Errors, for log lines.
//     static constexpr const char* kOtherVersion = "...";
//   };
//
// A record is a trivially copyable struct that begins with the protocol's header and names its kind
// as `kKind`. The magic number, the version and the size are checked before any other member is
// read, and a peer can't make the reader hold more than kMaxBytes. Integers are the machine's:
// little-endian.
//
// Depends on core alone. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/result.h"

namespace ztcp::records {

template <class Protocol>
struct Header {
  std::uint32_t magic = Protocol::kMagic;
  std::uint8_t version = Protocol::kVersion;
  typename Protocol::Kind kind{};
  std::uint16_t size_bytes = 0;  // The whole record's.
};

// A record with its header filled in and its other members at their defaults.
template <class Record>
Record make() {
  Record out;
  out.header.kind = Record::kKind;
  out.header.size_bytes = sizeof out;
  return out;
}

template <class Record>
std::span<const std::byte> bytes_of(const Record& record) {
  static_assert(std::is_trivially_copyable_v<Record>);
  return std::as_bytes(std::span(&record, 1));
}
// The bytes of a temporary would dangle.
template <class Record>
std::span<const std::byte> bytes_of(const Record&& record) = delete;

// A record that stands at the beginning of `bytes`, which may be longer. Absent: they are fewer.
template <class Record>
std::optional<Record> load(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Record>);
  if (bytes.size() < sizeof(Record)) return std::nullopt;
  Record out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

// Text of fixed size: cut to it, and always ended by a zero.
template <std::size_t N>
void put_text(std::string_view text, std::array<char, N>& to) {
  to = {};
  text.copy(to.data(), N - 1);
}
// Text from a peer, made fit for a log line.
template <std::size_t N>
std::string printable(const std::array<char, N>& from) {
  std::string out;
  for (const char c : from) {
    if (c == '\0') break;
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out;
}

// Cuts a stream of bytes into records, which may come in any pieces.
template <class Protocol>
class Reader {
 public:
  using Kind = typename Protocol::Kind;

  // Where to read to, and how much at most: never beyond the current record, since the bytes behind
  // it may belong to another reader.
  std::span<std::byte> room() { return std::span(bytes_).subspan(size_, wanted() - size_); }
  void add(std::size_t bytes) { size_ += bytes; }
  // Whether a whole record is here. kProtocol: the bytes are no record, or one of another version.
  Result<bool> is_complete() const {
    if (size_ < sizeof(Head)) return false;
    const Head head = header();
    if (head.magic != Protocol::kMagic || head.size_bytes < sizeof head ||
        head.size_bytes > Protocol::kMaxBytes)
      return fail(Errc::kProtocol, Protocol::kNoRecord);
    if (head.version != Protocol::kVersion) return fail(Errc::kProtocol, Protocol::kOtherVersion);
    return size_ == head.size_bytes;
  }
  Kind kind() const { return header().kind; }
  // Whether the bytes are a record of another version.
  bool is_of_other_version() const {
    return header().magic == Protocol::kMagic && header().version != Protocol::kVersion;
  }
  // Takes out the record, which is complete. kProtocol: it is another record.
  template <class Record>
  Result<Record> take() {
    static_assert(sizeof(Record) <= Protocol::kMaxBytes);
    if (size_ != sizeof(Record) || kind() != Record::kKind)
      return fail(Errc::kProtocol, "a record of another kind or size");
    size_ = 0;
    return *load<Record>(bytes_);
  }

 private:
  using Head = Header<Protocol>;

  Head header() const {
    Head out;
    std::memcpy(&out, bytes_.data(), sizeof out);
    return out;
  }
  std::size_t wanted() const {
    if (size_ < sizeof(Head)) return sizeof(Head);
    return std::clamp<std::size_t>(header().size_bytes, sizeof(Head), Protocol::kMaxBytes);
  }

  std::array<std::byte, Protocol::kMaxBytes> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace ztcp::records
