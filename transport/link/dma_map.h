// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The pages of user memory that a device may read. Registrations overlap, repeat and share pages;
// device maps must not overlap and are few (DPDK keeps 256 of them for vfio). So each registration
// is cut into page ranges: mapped ones gain a reference, missing ones are mapped, and a range is
// unmapped with its last registration. Nothing is kept beyond that: the address may be other memory
// by then. If no registration owns a part of a range any more, but others hold the range or a
// device may still read it (retire()), a new registration of that part is served by copying: the
// device would read the memory that was there before.
//
// Above the cap, or when the device refuses, a registration gets kUnmapped and its bytes are
// copied; that is logged once. Any thread may call these.
//
// User memory is not MADV_DONTFORK, as libibverbs makes it on old kernels: whole pages would vanish
// from forked children, and a data loader that reads a tensor on one of them would crash. It is not
// needed either where forks_copy_pinned_pages(); elsewhere nothing is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/result.h"

namespace ztcp::link {

// True for kernels ("6.1.0-56-amd64") that, when a process forks, at once copy pinned pages for the
// child, and mapped memory is pinned: ordinary and transparent huge pages since Linux 5.9,
// hugetlbfs since 5.13. Older kernels share them for copy on write: when the parent writes first it
// gets a new page, while the device goes on reading the old one. Back-ports to older kernels are
// not recognised.
bool forks_copy_pinned_pages(std::string_view kernel_release);

// The device's side. Called with page-aligned ranges that never overlap mapped ones.
class DmaMapper {
 public:
  virtual ~DmaMapper() = default;
  virtual Status map(std::uintptr_t address, std::size_t size_bytes) = 0;
  virtual void unmap(std::uintptr_t address, std::size_t size_bytes) = 0;
};

class DmaMap {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kMaxRanges = 240;  // Below vfio's 256, some of which are DPDK's own.

  // `name`: of the device or its container, for the log line that memory is copied from now on.
  DmaMap(DmaMapper& mapper, const char* name, std::size_t max_ranges = kMaxRanges);
  ~DmaMap();
  DmaMap(const DmaMap&) = delete;
  DmaMap& operator=(const DmaMap&) = delete;

  // Never fails: kUnmapped where the device can't read the range.
  std::uint32_t acquire(const void* address, std::size_t size_bytes);
  void release(std::uint32_t key);
  // The owner has the memory back, while frames in a device may still refer to it. It stays mapped
  // until release().
  void retire(std::uint32_t key);

  std::size_t ranges() const;

 private:
  struct Range {
    std::uintptr_t end;
    std::uint32_t references;
  };
  struct Registration {
    std::uintptr_t begin = 0;  // 0: the key is free.
    std::uintptr_t end = 0;
    bool retired = false;
  };
  using Ranges = std::map<std::uintptr_t, Range>;  // By first byte; disjoint.

  bool is_stale(std::uintptr_t begin, std::uintptr_t end);
  bool is_owned(std::uintptr_t begin, std::uintptr_t end) const;
  // Empty, or the reason for a failure.
  std::string map_gaps(std::uintptr_t begin, std::uintptr_t end);
  void add_reference(std::uintptr_t begin, std::uintptr_t end);
  void drop_reference(std::uintptr_t begin, std::uintptr_t end);
  Ranges::iterator first_touching(std::uintptr_t begin);

  DmaMapper& mapper_;
  const char* name_;
  std::size_t max_ranges_;
  mutable std::mutex mutex_;
  Ranges ranges_;
  std::vector<Registration> registrations_;  // By key - 1.
  bool said_ = false;
};

}  // namespace ztcp::link
