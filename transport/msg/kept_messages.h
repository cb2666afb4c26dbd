// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Copies of messages whose sender does not wait for the receiver's word of them. They go out from
// here, and out again where a flow died with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "transport/msg/send_message.h"

namespace ztcp::msg {

class KeptMessages {
 public:
  static constexpr std::size_t kPages = 64;
  static constexpr std::size_t kPagesPerMessage = 16;

  // `largest_bytes`: of one message. 0: keeps none, and needs no memory.
  explicit KeptMessages(std::size_t largest_bytes);
  ~KeptMessages();
  KeptMessages(const KeptMessages&) = delete;
  KeptMessages& operator=(const KeptMessages&) = delete;

  // Takes the place of what was start()ed, whose bytes it refers to until copy(); to be given back.
  // Null: it is too large, or there is no room.
  SendMessage* keep(SendMessage& message);
  // What it stands for, which its owner is still to be told of; null once release() returned it.
  SendMessage* lent(const SendMessage& kept) const { return static_cast<const Kept&>(kept).lent; }
  SendMessage& release(SendMessage& kept);
  // From here on the bytes of what it stands for are not needed. Once copied it stays so.
  void copy(SendMessage& kept);
  bool is_copied(const SendMessage& kept) const { return static_cast<const Kept&>(kept).is_copied; }
  void give_back(SendMessage& kept);
  // All are back; they are in no list any more.
  void clear() { free_ = ~std::uint64_t{0}; }
  bool owns(const SendMessage& message) const {
    return made_ != 0 && &message >= records_.get() && &message < records_.get() + kPages;
  }

 private:
  struct Kept final : SendMessage {
    SendMessage* lent = nullptr;
    bool is_copied = false;
  };

  std::size_t pages_of(std::size_t bytes) const {
    return bytes <= page_bytes_ ? 1 : (bytes + page_bytes_ - 1) / page_bytes_;
  }
  static std::uint64_t run(std::size_t first, std::size_t pages) {
    return ((std::uint64_t{1} << pages) - 1) << first;
  }

  std::size_t first_page(const SendMessage& kept) const {
    return static_cast<std::size_t>(&static_cast<const Kept&>(kept) - records_.get());
  }

  struct Free {
    void operator()(Kept* records) const { ::operator delete(records); }
  };

  const std::size_t page_bytes_;
  std::uint64_t free_ = ~std::uint64_t{0};  // One bit each.
  std::uint64_t made_ = 0;                  // Records; the others' memory was never touched.
  // Nor was that of pages: those in front are taken first.
  const std::unique_ptr<std::byte[]> memory_;
  // One for each page that a message may begin with.
  const std::unique_ptr<Kept, Free> records_;
};

}  // namespace ztcp::msg
