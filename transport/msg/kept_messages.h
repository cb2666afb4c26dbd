// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Copies of messages whose sender does not wait until they are received. They are sent from here,
// and again from here if a flow dies with them.
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

  // `largest_bytes`: size limit of a message. 0: keeps none, and needs no memory.
  explicit KeptMessages(std::size_t largest_bytes);
  ~KeptMessages();
  KeptMessages(const KeptMessages&) = delete;
  KeptMessages& operator=(const KeptMessages&) = delete;

  // Returns a record that replaces a start()ed message; it refers to that message's bytes until
  // copy(), and must be given back. Null: too large, or no room.
  SendMessage* keep(SendMessage& message);
  // The replaced message, whose owner is still to be told of its end; null once release() returned
  // it.
  SendMessage* lent(const SendMessage& kept) const { return static_cast<const Kept&>(kept).lent; }
  SendMessage& release(SendMessage& kept);
  // Copies the bytes of the replaced message, which are not needed afterwards. Once copied it stays
  // so.
  void copy(SendMessage& kept);
  bool is_copied(const SendMessage& kept) const { return static_cast<const Kept&>(kept).is_copied; }
  void give_back(SendMessage& kept);
  // All are given back; they are in no list any more.
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
  std::uint64_t free_ = ~std::uint64_t{0};  // One bit per page.
  std::uint64_t made_ = 0;                  // Constructed records; the memory of the others was
                                            // never touched.
  // Pages in front are taken first, so the others are never touched.
  const std::unique_ptr<std::byte[]> memory_;
  // One for each page at which a message may begin.
  const std::unique_ptr<Kept, Free> records_;
};

}  // namespace ztcp::msg
