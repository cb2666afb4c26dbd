// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/dma_map.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/kernel_release.h"
#include "core/log.h"

namespace ztcp::link {

bool forks_copy_pinned_pages(std::string_view kernel_release) {
  return kernel_version(kernel_release) >= kForksCopyPinnedPages;
}

DmaMap::DmaMap(DmaMapper& mapper, const char* name, std::size_t max_ranges)
    : mapper_(mapper), name_(name), max_ranges_(max_ranges) {}

DmaMap::~DmaMap() {
  for (const auto& [begin, range] : ranges_) mapper_.unmap(begin, range.end - begin);
}

std::size_t DmaMap::ranges() const {
  const std::scoped_lock lock(mutex_);
  return ranges_.size();
}

std::uint32_t DmaMap::acquire(const void* address, std::size_t size_bytes) {
  if (address == nullptr || size_bytes == 0) return kUnmapped;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t begin = at / kPageBytes * kPageBytes;
  const std::uintptr_t end = (at + size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::unique_lock lock(mutex_);
  const std::string why = map_gaps(begin, end);
  if (!why.empty()) {
    const bool said = std::exchange(said_, true);
    lock.unlock();  // A logger may block.
    if (!said) log::info("{}: some registered memory is sent by copying: {}", name_, why);
    return kUnmapped;
  }
  add_reference(begin, end);
  auto slot = std::find_if(registrations_.begin(), registrations_.end(),
                           [](const Registration& r) { return r.begin == 0; });
  if (slot == registrations_.end()) slot = registrations_.insert(slot, Registration{});
  *slot = {begin, end};
  return static_cast<std::uint32_t>(slot - registrations_.begin()) + 1;
}

void DmaMap::release(std::uint32_t key) {
  if (key == kUnmapped) return;
  const std::scoped_lock lock(mutex_);
  if (key > registrations_.size() || registrations_[key - 1].begin == 0) return;
  const Registration gone = registrations_[key - 1];
  registrations_[key - 1] = {};
  drop_reference(gone.begin, gone.end);
}

void DmaMap::retire(std::uint32_t key) {
  const std::scoped_lock lock(mutex_);
  if (key != kUnmapped && key <= registrations_.size()) registrations_[key - 1].retired = true;
}

// Whether a part of [begin, end) is mapped but belongs to no living registration.
bool DmaMap::is_stale(std::uintptr_t begin, std::uintptr_t end) {
  for (auto it = first_touching(begin); it != ranges_.end() && it->first < end; ++it)
    if (!is_owned(std::max(begin, it->first), std::min(end, it->second.end))) return true;
  return false;
}

bool DmaMap::is_owned(std::uintptr_t begin, std::uintptr_t end) const {
  while (begin < end) {
    std::uintptr_t reached = begin;
    for (const Registration& r : registrations_)
      if (!r.retired && r.begin <= begin) reached = std::max(reached, r.end);
    if (reached == begin) return false;
    begin = reached;
  }
  return true;
}

// Maps all parts of [begin, end) that are not mapped yet, or none.
std::string DmaMap::map_gaps(std::uintptr_t begin, std::uintptr_t end) {
  if (is_stale(begin, end))
    return "a device may still read the memory that was at its address before";
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> gaps;
  std::uintptr_t at = begin;
  for (auto it = first_touching(begin); it != ranges_.end() && it->first < end; ++it) {
    if (it->first > at) gaps.emplace_back(at, it->first);
    at = it->second.end;
  }
  if (at < end) gaps.emplace_back(at, end);
  if (ranges_.size() + gaps.size() > max_ranges_) {
    return fmt::format("the device's map is full ({} ranges)", ranges_.size());
  }
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const auto [from, to] = gaps[i];
    if (const Status mapped = mapper_.map(from, to - from); !mapped) {
      while (i-- > 0) {
        mapper_.unmap(gaps[i].first, gaps[i].second - gaps[i].first);
        ranges_.erase(gaps[i].first);
      }
      return fmt::format("{} failed ({})", mapped.error().where,
                         std::strerror(mapped.error().sys_errno));
    }
    ranges_.emplace(from, Range{to, 0});
  }
  return {};
}

void DmaMap::add_reference(std::uintptr_t begin, std::uintptr_t end) {
  for (auto it = first_touching(begin); it != ranges_.end() && it->first < end; ++it)
    ++it->second.references;
}

void DmaMap::drop_reference(std::uintptr_t begin, std::uintptr_t end) {
  for (auto it = first_touching(begin); it != ranges_.end() && it->first < end;) {
    if (--it->second.references > 0) {
      ++it;
      continue;
    }
    mapper_.unmap(it->first, it->second.end - it->first);
    it = ranges_.erase(it);
  }
}

// The first range that ends after `begin`.
DmaMap::Ranges::iterator DmaMap::first_touching(std::uintptr_t begin) {
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second.end > begin) --it;
  return it;
}

}  // namespace ztcp::link
