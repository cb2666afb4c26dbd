// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/reference/ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "bench/reference/loopback.h"

namespace ztcp::bench {
namespace {

// More are never in flight: see Lent in carriers.cc.
constexpr unsigned kEntries = 512;

// With the flags for rings of a single thread (6.1) where the kernel has them, else without.
int set_up(io_uring_params& params) {
  for (const unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0U}) {
    params = {};
    params.flags = flags;
    const long fd = ::syscall(SYS_io_uring_setup, kEntries, &params);
    if (fd >= 0 || errno != EINVAL) return static_cast<int>(fd);
  }
  return -1;
}

int enroll(int fd, unsigned what, void* argument, unsigned count) {
  return static_cast<int>(::syscall(SYS_io_uring_register, fd, what, argument, count));
}

template <class T>
T* at(void* base, std::uint32_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

}  // namespace

const char* Ring::why_not() {
  io_uring_params params;
  const int fd = set_up(params);
  if (fd < 0) return errno == ENOSYS ? "this kernel has no io_uring" : std::strerror(errno);
  ::close(fd);
  return (params.features & IORING_FEAT_SINGLE_MMAP) == 0 ? "this kernel's io_uring is too old"
                                                          : nullptr;
}

const char* Ring::why_no_zero_copy() {
  if (const char* const why = why_not()) return why;
  constexpr std::size_t kMostOperations = 256;
  // The structure ends in an array of no size.
  std::vector<std::uint64_t> memory(
      (sizeof(io_uring_probe) + kMostOperations * sizeof(io_uring_probe_op)) / 8);
  auto* const probe = reinterpret_cast<io_uring_probe*>(memory.data());
  io_uring_params params;
  const int fd = set_up(params);
  const bool has_it = enroll(fd, IORING_REGISTER_PROBE, probe, kMostOperations) == 0 &&
                      probe->last_op >= IORING_OP_SEND_ZC &&
                      (probe->ops[IORING_OP_SEND_ZC].flags & IO_URING_OP_SUPPORTED) != 0;
  ::close(fd);
  return has_it ? nullptr : "this kernel's io_uring has no SEND_ZC";
}

Ring::Ring() {
  io_uring_params params;
  fd_ = checked(set_up(params), "io_uring_setup");
  rings_bytes_ =
      std::max<std::size_t>(params.sq_off.array + params.sq_entries * sizeof(unsigned),
                            params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe));
  submissions_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
  const auto map = [this](std::size_t bytes, off_t what) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, what);
    if (memory == MAP_FAILED) give_up("mmap");
    return memory;
  };
  rings_ = map(rings_bytes_, IORING_OFF_SQ_RING);
  submissions_ = static_cast<io_uring_sqe*>(map(submissions_bytes_, IORING_OFF_SQES));
  submitted_tail_ = at<unsigned>(rings_, params.sq_off.tail);
  submitted_order_ = at<unsigned>(rings_, params.sq_off.array);
  submitted_mask_ = *at<unsigned>(rings_, params.sq_off.ring_mask);
  completed_head_ = at<unsigned>(rings_, params.cq_off.head);
  completed_tail_ = at<unsigned>(rings_, params.cq_off.tail);
  completed_mask_ = *at<unsigned>(rings_, params.cq_off.ring_mask);
  completions_ = at<io_uring_cqe>(rings_, params.cq_off.cqes);
  // A ring registered in the thread's table saves each call the lookup of the descriptor (5.18).
  io_uring_rsrc_update update{};
  update.offset = ~0U;
  update.data = static_cast<std::uint64_t>(fd_);
  is_registered_ = enroll(fd_, IORING_REGISTER_RING_FDS, &update, 1) == 1;
  entered_fd_ = is_registered_ ? update.offset : static_cast<unsigned>(fd_);
}

Ring::~Ring() {
  ::munmap(submissions_, submissions_bytes_);
  ::munmap(rings_, rings_bytes_);
  if (is_registered_) {
    io_uring_rsrc_update update{};
    update.offset = entered_fd_;
    enroll(fd_, IORING_UNREGISTER_RING_FDS, &update, 1);
  }
  ::close(fd_);
}

io_uring_sqe& Ring::add() {
  const unsigned tail = *submitted_tail_;
  const unsigned index = tail & submitted_mask_;
  submitted_order_[index] = index;
  submissions_[index] = {};
  std::atomic_ref(*submitted_tail_).store(tail + 1, std::memory_order_release);
  ++added_;
  return submissions_[index];
}

void Ring::add_send(int socket, const std::byte* bytes, std::size_t size, std::uint64_t mark,
                    bool zero_copy) {
  io_uring_sqe& entry = add();
  entry.opcode = zero_copy ? IORING_OP_SEND_ZC : IORING_OP_SEND;
  if (zero_copy) entry.ioprio = IORING_SEND_ZC_REPORT_USAGE;
  entry.fd = socket;
  entry.addr = reinterpret_cast<std::uint64_t>(bytes);
  entry.len = static_cast<std::uint32_t>(size);
  entry.msg_flags = MSG_NOSIGNAL;
  entry.user_data = mark;
}

void Ring::add_receive(int socket, std::byte* bytes, std::size_t size, std::uint64_t mark) {
  io_uring_sqe& entry = add();
  entry.opcode = IORING_OP_RECV;
  entry.fd = socket;
  entry.addr = reinterpret_cast<std::uint64_t>(bytes);
  entry.len = static_cast<std::uint32_t>(size);
  entry.user_data = mark;
}

void Ring::enter(unsigned wait_for) {
  const unsigned flags =
      IORING_ENTER_GETEVENTS | (is_registered_ ? IORING_ENTER_REGISTERED_RING : 0U);
  const long taken =
      ::syscall(SYS_io_uring_enter, entered_fd_, added_, wait_for, flags, nullptr, 0);
  if (taken >= 0)
    added_ -= static_cast<unsigned>(taken);
  else if (errno != EINTR && errno != EAGAIN && errno != EBUSY)
    give_up("io_uring_enter");
}

}  // namespace ztcp::bench
