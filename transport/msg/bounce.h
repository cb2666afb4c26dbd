// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Where a receiver keeps bytes that came before their buffer was posted: at most the eager
// allowance. Eager chunks of a message lie in its first `allowance` bytes, since what was released
// belongs to posted messages; so a page is allowance / 32 bytes, a message has a table of 32 pages,
// and 64 pages suffice: 32 for the bytes and one more, partly filled, for each of the 32 messages
// that can be outstanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ztcp::msg {

class Bounce {
 public:
  static constexpr std::size_t kPages = 64;
  static constexpr std::size_t kPagesPerMessage = 32;
  static constexpr std::uint32_t kMinAllowanceBytes = 4096;
  static constexpr std::uint8_t kNoPage = 0xff;

  // The pages of one message.
  struct Table {
    void clear() { pages.fill(kNoPage); }
    std::array<std::uint8_t, kPagesPerMessage> pages;
  };

  // `allowance_bytes` is a multiple of 4096.
  explicit Bounce(std::uint32_t allowance_bytes);

  std::uint32_t allowance_bytes() const { return allowance_bytes_; }
  // Bytes promised to chunks under way and held for finished ones; never above the allowance.
  std::uint64_t reserved_bytes() const { return reserved_bytes_; }
  // False, and nothing reserved, beyond the allowance.
  [[nodiscard]] bool reserve(std::uint64_t bytes);
  void unreserve(std::uint64_t bytes);

  // False when the pages do not suffice, which only a peer that breaks the order of chunks brings
  // about. `offset + bytes.size()` is within the allowance.
  [[nodiscard]] bool write(Table& table, std::uint64_t offset, std::span<const std::byte> bytes);
  void read(const Table& table, std::uint64_t offset, std::span<std::byte> out) const;
  void release(Table& table);

 private:
  std::uint32_t allowance_bytes_;
  std::size_t page_bytes_;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t free_pages_ = ~std::uint64_t{0};  // One bit each.
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace ztcp::msg
