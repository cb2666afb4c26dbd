// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Keeps bytes that arrived before their buffer was posted: at most the eager allowance. 64 pages of
// allowance / 32 bytes suffice, since a sender that keeps to record.h
//   * sends a message in order and charges each of its bytes once, including bytes lost with a dead
//     flow; released bytes belong to posted messages. So the messages without a buffer, each from
//     its first byte to the last one sent, together span no more than the allowance: no message
//     needs more than 32 pages, and all together need 32 full ones;
//   * has at most 32 such messages out, over all lanes: 32 more pages, for partly filled ends.
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

  // False when the pages do not suffice, which happens only if a peer breaks the order of chunks.
  // `offset + bytes.size()` is within the allowance.
  [[nodiscard]] bool write(Table& table, std::uint64_t offset, std::span<const std::byte> bytes);
  void read(const Table& table, std::uint64_t offset, std::span<std::byte> out) const;
  void release(Table& table);

 private:
  std::uint32_t allowance_bytes_;
  std::size_t page_bytes_;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t free_pages_ = ~std::uint64_t{0};  // One bit per page.
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace ztcp::msg
