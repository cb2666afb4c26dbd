// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/kept_messages.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

namespace ztcp::msg {

KeptMessages::KeptMessages(std::size_t largest_bytes)
    : page_bytes_(largest_bytes / kPagesPerMessage),
      memory_(page_bytes_ == 0 ? nullptr : new std::byte[kPages * page_bytes_]),
      records_(page_bytes_ == 0 ? nullptr
                                : static_cast<Kept*>(::operator new(kPages * sizeof(Kept)))) {}

KeptMessages::~KeptMessages() {
  for (std::uint64_t made = made_; made != 0; made &= made - 1)
    std::destroy_at(records_.get() + std::countr_zero(made));
}

SendMessage* KeptMessages::keep(SendMessage& message) {
  const std::size_t bytes = message.total();
  if (bytes > kPagesPerMessage * page_bytes_ || memory_ == nullptr) return nullptr;
  const std::size_t pages = pages_of(bytes);
  // Bit i stays set while the pages from i on are free, as many as were checked so far.
  std::uint64_t runs = free_;
  for (std::size_t seen = 1; seen < pages;) {
    const std::size_t more = std::min(seen, pages - seen);
    runs &= runs >> more;
    seen += more;
  }
  if (runs == 0) return nullptr;
  const auto first = static_cast<std::size_t>(std::countr_zero(runs));
  free_ &= ~run(first, pages);

  Kept* const kept = records_.get() + first;
  if ((made_ >> first & 1) == 0) {
    new (kept) Kept;
    made_ |= std::uint64_t{1} << first;
  }
  kept->start({message.data(), bytes}, message.tag(), message.memory_key());
  kept->lent = &message;
  kept->is_copied = false;
  return kept;
}

void KeptMessages::copy(SendMessage& kept) {
  if (std::exchange(static_cast<Kept&>(kept).is_copied, true)) return;
  std::byte* const bytes = memory_.get() + first_page(kept) * page_bytes_;
  if (kept.total() != 0) std::memcpy(bytes, kept.data(), kept.total());
  kept.move_to(bytes, kUnmapped);
}

SendMessage& KeptMessages::release(SendMessage& kept) {
  return *std::exchange(static_cast<Kept&>(kept).lent, nullptr);
}

void KeptMessages::give_back(SendMessage& kept) {
  assert(owns(kept));
  free_ |= run(first_page(kept), pages_of(kept.total()));
}

}  // namespace ztcp::msg
