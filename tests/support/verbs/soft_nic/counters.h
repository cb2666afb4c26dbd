// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Counts the work of a process's software NICs and the program's misuse of verbs; written to
// SOFT_NIC_FOLDER/counted.PID.json when the process ends. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ztcp::soft_nic {

inline constexpr std::uint32_t kMostDevices = 16;

enum class Count : std::uint8_t {
  kDoorbells,  // Calls that post sends.
  kMessages,   // Writes with an immediate, and sends.
  kWrites,     // Writes without an immediate.
  kReads,
  kSentBytes,
  kReceivedBytes,
  kGpuReadBytes,
  kGpuWrittenBytes,
  kHeldWrites,     // To GPU memory, brought out by a read.
  kRegistrations,  // Host memory.
  kDmabufRegistrations,
  kPeerMemoryRegistrations,
  kDelayed,
  kDropped,
  kNotReady,   // Immediates that found no receive.
  kSentAgain,  // Times that a queue pair went back for want of an answer.
  kFailed,     // Work requests that failed themselves.
  kEnd
};

class Counters {
 public:
  void add(Count what, std::uint64_t n = 1) {
    counts_[static_cast<std::size_t>(what)].fetch_add(n, std::memory_order_relaxed);
  }
  void add_sent(std::uint32_t device, std::uint64_t bytes) {
    add(Count::kSentBytes, bytes);
    sent_bytes_[device].fetch_add(bytes, std::memory_order_relaxed);
  }
  // Also said on stderr.
  void note_misuse(const std::string& what);
  void write_to(const std::string& folder) const;

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Count::kEnd)> counts_{};
  std::array<std::atomic<std::uint64_t>, kMostDevices> sent_bytes_{};
  mutable std::mutex mutex_;
  std::vector<std::string> misuse_;
};

}  // namespace ztcp::soft_nic
