// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An io_uring through its system calls, used by one thread: added operations leave with the next
// enter(), which is the only call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <linux/io_uring.h>

namespace ztcp::bench {

class Ring {
 public:
  // Null: the kernel supports it. Otherwise the feature that is missing or not allowed.
  static const char* why_not();
  static const char* why_no_zero_copy();

  // A ring of the calling thread.
  Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // As send(2) and recv(2); completions return the mark. With `zero_copy` there are two: the first
  // reports the send and has IORING_CQE_F_MORE unless it failed, the second that the memory is
  // free.
  void add_send(int socket, const std::byte* bytes, std::size_t size, std::uint64_t mark,
                bool zero_copy);
  void add_receive(int socket, std::byte* bytes, std::size_t size, std::uint64_t mark);

  // Submits all added operations, and waits for so many completions.
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
  bool is_registered_ = false;  // Calls then use its index in the thread's table.
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
