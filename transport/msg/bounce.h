// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Where a receiver keeps bytes that came before their buffer was posted: at most the eager
// allowance. 64 pages of allowance / 32 bytes suffice, since a sender that keeps to record.h
//   * hands out a message in order and charges each of its bytes once, those that a dead flow lost
//     along with the others; what was released belongs to posted messages. So the messages without
//     a buffer reach, each from its first byte to the last that went out, over no more than the
//     allowance together: no message needs more than 32 pages, and all together 32 full ones;
//   * has no more than 32 such messages out, of all lanes: 32 more pages, which end partly filled.
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
