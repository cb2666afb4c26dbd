// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/bounce.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "core/ordered_copy.h"

namespace ztcp::msg {

// Not zeroed: pages that are never used cost nothing.
Bounce::Bounce(std::uint32_t allowance_bytes)
    : allowance_bytes_(allowance_bytes),
      page_bytes_(allowance_bytes / kPagesPerMessage),
      memory_(new std::byte[page_bytes_ * kPages]) {
  assert(allowance_bytes >= kMinAllowanceBytes && allowance_bytes % kMinAllowanceBytes == 0);
}

bool Bounce::reserve(std::uint64_t bytes) {
  if (bytes > allowance_bytes_ - reserved_bytes_) return false;
  reserved_bytes_ += bytes;
  return true;
}

void Bounce::unreserve(std::uint64_t bytes) {
  assert(bytes <= reserved_bytes_);
  reserved_bytes_ -= bytes;
}

bool Bounce::write(Table& table, std::uint64_t offset, std::span<const std::byte> bytes) {
  assert(offset + bytes.size() <= allowance_bytes_);
  while (!bytes.empty()) {
    const std::size_t index = static_cast<std::size_t>(offset) / page_bytes_;
    const std::size_t within = static_cast<std::size_t>(offset) % page_bytes_;
    const std::size_t take = std::min(page_bytes_ - within, bytes.size());
    std::uint8_t& page = table.pages[index];
    if (page == kNoPage) {
      if (free_pages_ == 0) return false;
      page = static_cast<std::uint8_t>(std::countr_zero(free_pages_));
      free_pages_ &= free_pages_ - 1;
    }
    std::memcpy(memory_.get() + page * page_bytes_ + within, bytes.data(), take);
    bytes = bytes.subspan(take);
    offset += take;
  }
  return true;
}

void Bounce::read(const Table& table, std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t index = static_cast<std::size_t>(offset) / page_bytes_;
    const std::size_t within = static_cast<std::size_t>(offset) % page_bytes_;
    const std::size_t take = std::min(page_bytes_ - within, out.size());
    assert(table.pages[index] != kNoPage);
    ordered_copy(out.data(), memory_.get() + table.pages[index] * page_bytes_ + within, take);
    out = out.subspan(take);
    offset += take;
  }
}

void Bounce::release(Table& table) {
  for (std::uint8_t& page : table.pages) {
    if (page == kNoPage) continue;
    free_pages_ |= std::uint64_t{1} << page;
    page = kNoPage;
  }
}

}  // namespace ztcp::msg
