// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Consumes the SIGXFSZ that a write beyond the limit of file sizes (ulimit -f) raises: unhandled it
// ends the training, and the host's handlers and other threads' masks are not ours to change. The
// kernel sends it to the thread that writes or extends the file.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace ztcp {

// Active while an object exists.
class FileSizeSignal {
 public:
  FileSizeSignal() {
    sigset_t pending;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  }
  ~FileSizeSignal() {
    const int why = errno;
    const timespec now{0, 0};
    if (raised_ && !was_pending_)
      while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = why;
  }
  FileSizeSignal(const FileSizeSignal&) = delete;
  FileSizeSignal& operator=(const FileSizeSignal&) = delete;
  // The caller's write failed with EFBIG.
  void raised() { raised_ = true; }

 private:
  sigset_t signal_;
  sigset_t before_;
  bool was_pending_ = false;
  bool raised_ = false;
};

}  // namespace ztcp
