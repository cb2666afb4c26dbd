// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Wakes another thread from its sleep, or from one that is about to begin: the event stays
// signalled until a thread has slept on it. Any thread may signal; one sleeps.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "core/clock.h"
#include "core/descriptor.h"
#include "core/result.h"

namespace ztcp {

class WakeEvent {
 public:
  static Result<std::shared_ptr<WakeEvent>> make() {
    Descriptor fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!fd) return fail_errno("eventfd");
    return std::make_shared<WakeEvent>(std::move(fd));
  }
  explicit WakeEvent(Descriptor fd) : fd_(std::move(fd)) {}

  void signal() const {
    const std::uint64_t one = 1;
    // EAGAIN means that it is already signalled.
    [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof(one));
  }
  void sleep(Duration longest) const {
    const timespec ts{.tv_sec = longest.count() / 1'000'000'000,
                      .tv_nsec = longest.count() % 1'000'000'000};
    pollfd fd{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (ppoll(&fd, 1, &ts, nullptr) != 1) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(fd_.get(), &count, sizeof(count));
  }

 private:
  const Descriptor fd_;
};

}  // namespace ztcp
