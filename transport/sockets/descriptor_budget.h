// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The file descriptors that connections of this process may have: all that the soft limit
// (ulimit -n) leaves beside those that the application has open, less a reserve for it. One budget
// for all devices and lanes of a transport; nothing is divided between them beforehand.
//
// The limit is the application's and is never raised here: a program that calls select() must not
// be given descriptors above 1023 behind its back.
//
// Nobody counts the application's descriptors. POSIX gives each new one the lowest free number, so
// a descriptor numbered n proves that n others are open.
//
// Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <string>

#include "transport/core/clock.h"
#include "transport/core/result.h"

namespace ztcp::sockets {

class DescriptorBudget {
 public:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  // At most `most` for connections, whatever the process's limit allows.
  explicit DescriptorBudget(std::size_t most = kUnlimited) : most_(most) {}

  // That the process may have open, connections' included: the soft limit less the reserve.
  static std::size_t usable();
  // That are open in the process, as far as known: never more than really are at that time.
  std::size_t in_use() const { return others_.load(kRelaxed) + connections(); }
  std::size_t connections() const { return connections_.load(kRelaxed); }
  // That connections may still have.
  std::size_t left() const;
  // Where none is left as far as known, the number of a new descriptor tells whether the
  // application has closed some since.
  bool has_room();

  // A descriptor for a connection was made. False: it is one of the reserve, or beyond `most`; the
  // caller closes it.
  bool may_keep(int descriptor);

  // The descriptors that one lane's connections have; all that it was last told.
  class Part {
   public:
    explicit Part(DescriptorBudget& budget) : budget_(budget) {}
    ~Part() { set(0); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    void set(std::size_t count) {
      budget_.connections_.fetch_add(count - count_, kRelaxed);  // Unsigned: may wrap to less.
      count_ = count;
    }

   private:
    DescriptorBudget& budget_;
    std::size_t count_ = 0;
  };

  // What an operator reads when there was none for a connection: how many there may be, how many
  // are open, and the command that gives more. Empty: it was said less than a minute ago.
  std::string shortage(TimePoint now, const Error& error);

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  const std::size_t most_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> others_{0};
  std::atomic<Duration::rep> next_complaint_{0};
};

// "; ulimit -n is 1024 and leaves 960 descriptors for its connections ..." for a device's init
// line; empty where `connections`, which the device takes, all find one.
std::string descriptors_text(std::size_t connections);

}  // namespace ztcp::sockets
