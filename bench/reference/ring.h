// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An io_uring by its system calls alone, as one thread uses it: what is added leaves with the next
// enter(), which is the only call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <linux/io_uring.h>

namespace ztcp::bench {

class Ring {
 public:
  // Null: the kernel has it. Else what it does not have, or does not grant.
  static const char* why_not();
  static const char* why_no_zero_copy();

  // Of the calling thread.
  Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // As send(2) and recv(2); completions bring the mark back. With `zero_copy` two: that it was
  // sent, which IORING_CQE_F_MORE tells from one that failed, and that the memory is free again.
  void add_send(int socket, const std::byte* bytes, std::size_t size, std::uint64_t mark,
                bool zero_copy);
  void add_receive(int socket, std::byte* bytes, std::size_t size, std::uint64_t mark);

  // Submits all that was added, and waits for so many completions.
  void enter(unsigned wait_for);
  template <class Heard>
  void reap(Heard&& heard) {
    unsigned head = *completed_head_;
    const unsigned tail = std::atomic_ref(*completed_tail_).load(std::memory_order_acquire);
    for (; head != tail; ++head) heard(completions_[head & completed_mask_]);
    std::atomic_ref(*completed_head_).store(head, std::memory_order_release);
  }

 private:
  io_uring_sqe& add();

  int fd_;
  bool is_registered_ = false;  // Then calls name it by its place in the thread's table.
  unsigned entered_fd_ = 0;
  void* rings_ = nullptr;
  std::size_t rings_bytes_ = 0;
  io_uring_sqe* submissions_ = nullptr;
  std::size_t submissions_bytes_ = 0;
  unsigned* submitted_tail_ = nullptr;
  unsigned* submitted_order_ = nullptr;
  unsigned submitted_mask_ = 0;
  unsigned added_ = 0;
  unsigned* completed_head_ = nullptr;
  unsigned* completed_tail_ = nullptr;
  unsigned completed_mask_ = 0;
  io_uring_cqe* completions_ = nullptr;
};

}  // namespace ztcp::bench
