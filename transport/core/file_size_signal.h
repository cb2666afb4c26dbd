// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Takes the SIGXFSZ that a file beyond the limit of file sizes (ulimit -f) brings: unhandled it
// ends the training, and handlers and other threads' masks are not ours to change. The kernel sends
// it to the thread that writes the file, or makes it that large.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace ztcp {

// While one exists.
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
  // A call has failed with EFBIG.
  void raised() { raised_ = true; }

 private:
  sigset_t signal_;
  sigset_t before_;
  bool was_pending_ = false;
  bool raised_ = false;
};

}  // namespace ztcp
