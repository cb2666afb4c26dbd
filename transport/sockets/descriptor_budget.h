// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The number of file descriptors that connections of this process may have: the soft limit
// (ulimit -n) less those that the application has open and a reserve for it. All devices and lanes
// of a transport share one budget; none has a fixed part.
//
// The limit belongs to the application and is never raised here: a program that calls select() must
// not get descriptors above 1023.
//
// The application's descriptors can't be counted directly. POSIX gives each new descriptor the
// lowest free number, so a descriptor numbered n proves that n others are open.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <string>

#include "core/clock.h"
#include "core/result.h"

namespace ztcp::sockets {

class DescriptorBudget {
 public:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  // At most `most` for connections, even if the process's limit allows more.
  explicit DescriptorBudget(std::size_t most = kUnlimited) : most_(most) {}

  // Descriptors that the process may have open, connections included: the soft limit less the
  // reserve.
  static std::size_t usable();
  // Descriptors known to be open in the process; at the time of the estimate a lower bound.
  std::size_t in_use() const { return others_.load(kRelaxed) + connections(); }
  std::size_t connections() const { return connections_.load(kRelaxed); }
  // Descriptors that connections may still get.
  std::size_t left() const;
  // Whether any is left. If none seems to be, the number of a new descriptor tells whether the
  // application has closed some since.
  bool has_room();

  // Whether a connection may keep its new descriptor. False: it belongs to the reserve, or is
  // beyond `most`; the caller closes it.
  bool may_keep(int descriptor);

  // The number of descriptors that one lane's connections have, as last set().
  class Part {
   public:
    explicit Part(DescriptorBudget& budget) : budget_(budget) {}
    ~Part() { set(0); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    void set(std::size_t count) {
      budget_.connections_.fetch_add(count - count_, kRelaxed);  // A decrease wraps around.
      count_ = count;
    }

   private:
    DescriptorBudget& budget_;
    std::size_t count_ = 0;
  };

  // The log line when a connection got no descriptor: the limit, the number in use, and the command
  // that raises it. Empty: there was one within the last minute.
  std::string shortage(TimePoint now, const Error& error);

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  const std::size_t most_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> others_{0};
  std::atomic<Duration::rep> next_complaint_{0};
};

// "; at most 960 connections in this process (ulimit -n is 1024, ...)" for a device's init line;
// empty if there are descriptors for all `connections` that the device allows.
std::string descriptors_text(std::size_t connections);

}  // namespace ztcp::sockets
