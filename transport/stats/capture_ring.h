// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames on their way from a lane to a program that captures them: a ring of bytes in memory that
// two processes share. The lane (CaptureWriter) never waits: a frame without room is counted as
// lost. The program (CaptureReader) maps the ring read-only and tells its progress in a cursor,
// which is the only value that a writer reads; a wrong cursor costs frames, never memory.
//
// One thread writes, one thread of another process reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"

namespace ztcp::stats {

// A frame in the ring: this header, its captured bytes, and padding to a multiple of kAlign.
struct CaptureRecord {
  static constexpr std::uint32_t kAlign = 8;
  static constexpr std::uint16_t kSent = 1;  // Else received.
  // The NIC computes the checksums of this frame, or it needs none.
  static constexpr std::uint16_t kWithoutChecksum = 2;

  std::uint64_t time_ns = 0;         // CLOCK_MONOTONIC.
  std::uint32_t captured_bytes = 0;  // Behind this header.
  std::uint32_t original_bytes = 0;
  std::uint32_t lost_before = 0;  // Frames of this lane that were lost since the last record.
  std::uint16_t flags = 0;
  // Payload bytes of each TCP segment that the link cuts from a super-segment; else 0.
  std::uint16_t segment_bytes = 0;
};
static_assert(sizeof(CaptureRecord) == 24 && sizeof(CaptureRecord) % CaptureRecord::kAlign == 0);

// In front of a lane's ring; written by the lane.
struct CaptureLaneState {
  std::atomic<std::uint64_t> tail_bytes{0};  // Ever written.
  std::atomic<std::uint64_t> recorded{0};    // Frames.
  std::atomic<std::uint64_t> lost{0};        // Frames.
};
// Written by the reader, in memory of its own.
struct alignas(64) CaptureCursor {
  std::atomic<std::uint64_t> head_bytes{0};  // Ever read.
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t kCaptureStateBytes = 4096;
static_assert(sizeof(CaptureLaneState) <= kCaptureStateBytes);
// The shared memory: for each lane its state and its ring.
constexpr std::size_t capture_bytes(std::size_t lanes, std::size_t ring_bytes) {
  return lanes * (kCaptureStateBytes + ring_bytes);
}
constexpr std::size_t capture_lane_offset(std::size_t lane, std::size_t ring_bytes) {
  return capture_bytes(lane, ring_bytes);
}

class CaptureWriter {
 public:
  // The size of `ring` is a power of two. `snap_bytes`: most bytes kept of a frame; 0: all.
  CaptureWriter(CaptureLaneState& state, std::span<std::byte> ring, const CaptureCursor& cursor,
                std::uint32_t snap_bytes)
      : state_(state), ring_(ring), cursor_(cursor), snap_bytes_(snap_bytes) {
    assert(std::has_single_bit(ring.size()));
  }

  // Writes a frame of facts.original_bytes. `pieces(put)` calls put(address, size) for its parts.
  template <class Pieces>
  void write(CaptureRecord facts, Pieces&& pieces) {
    facts.captured_bytes =
        snap_bytes_ == 0 ? facts.original_bytes : std::min(facts.original_bytes, snap_bytes_);
    const std::uint64_t size = padded(facts.captured_bytes);
    if (!has_room(size)) {
      ++lost_before_;
      state_.lost.store(++lost_, std::memory_order_relaxed);
      return;
    }
    facts.lost_before = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::exchange(lost_before_, 0), UINT32_MAX));
    copy_in(tail_, &facts, sizeof(facts));
    std::uint64_t at = tail_ + sizeof(facts);
    std::size_t left = facts.captured_bytes;
    pieces([&](const void* data, std::size_t bytes) {
      const std::size_t part = std::min(bytes, left);
      if (part == 0) return;
      copy_in(at, data, part);
      at += part;
      left -= part;
    });
    tail_ += size;
    state_.recorded.store(++recorded_, std::memory_order_relaxed);
    state_.tail_bytes.store(tail_, std::memory_order_release);
  }

 private:
  static std::uint64_t padded(std::uint32_t captured) {
    constexpr std::uint64_t kMask = CaptureRecord::kAlign - 1;
    return sizeof(CaptureRecord) + ((captured + kMask) & ~kMask);
  }
  bool has_room(std::uint64_t size) {
    if (tail_ + size - head_ <= ring_.size()) return true;
    const std::uint64_t head = cursor_.head_bytes.load(std::memory_order_acquire);
    if (head < head_ || head > tail_) return false;  // The reader is broken.
    head_ = head;
    return tail_ + size - head_ <= ring_.size();
  }
  void copy_in(std::uint64_t at, const void* data, std::size_t bytes) {
    const std::size_t offset = at & (ring_.size() - 1);
    const std::size_t first = std::min(bytes, ring_.size() - offset);
    std::memcpy(ring_.data() + offset, data, first);
    if (first < bytes)
      std::memcpy(ring_.data(), static_cast<const std::byte*>(data) + first, bytes - first);
  }

  CaptureLaneState& state_;
  const std::span<std::byte> ring_;
  const CaptureCursor& cursor_;
  const std::uint32_t snap_bytes_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  // As last read.
  std::uint64_t recorded_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t lost_before_ = 0;
};

// Trusts nothing that it reads: the job may be any process.
class CaptureReader {
 public:
  CaptureReader(const CaptureLaneState& state, std::span<const std::byte> ring,
                CaptureCursor& cursor)
      : state_(state), ring_(ring), cursor_(cursor) {
    assert(std::has_single_bit(ring.size()));
  }

  struct Frame {
    CaptureRecord record;
    std::span<const std::byte> bytes;  // A copy.
  };

  // Bytes ever written; records up to here are complete.
  std::uint64_t written_bytes() const { return state_.tail_bytes.load(std::memory_order_acquire); }
  std::uint64_t recorded() const { return state_.recorded.load(std::memory_order_relaxed); }
  std::uint64_t lost() const { return state_.lost.load(std::memory_order_relaxed); }

  // The next frame; null: none before `end_bytes`, a value of written_bytes(). The same one until
  // pop(). kProtocol: the memory holds no ring.
  Result<const Frame*> peek(std::uint64_t end_bytes) {
    if (has_frame_) return &frame_;
    if (head_ == end_bytes) return nullptr;
    CaptureRecord record;
    const std::uint64_t available = end_bytes - head_;
    if (available > ring_.size() || available < sizeof(record))
      return fail(Errc::kProtocol, "capture ring");
    copy_out(head_, &record, sizeof(record));
    if (record.captured_bytes > available - sizeof(record) ||
        record.captured_bytes > record.original_bytes)
      return fail(Errc::kProtocol, "capture record");
    buffer_.resize(record.captured_bytes);
    copy_out(head_ + sizeof(record), buffer_.data(), record.captured_bytes);
    constexpr std::uint64_t kMask = CaptureRecord::kAlign - 1;
    next_ = head_ + sizeof(record) + ((record.captured_bytes + kMask) & ~kMask);
    if (next_ - head_ > available) return fail(Errc::kProtocol, "capture record");
    frame_ = {record, buffer_};
    has_frame_ = true;
    return &frame_;
  }
  // Gives the frame's room back to the writer; its bytes stay valid until the next peek().
  void pop() {
    assert(has_frame_);
    has_frame_ = false;
    head_ = next_;
    cursor_.head_bytes.store(head_, std::memory_order_release);
  }

 private:
  void copy_out(std::uint64_t at, void* data, std::size_t bytes) const {
    if (bytes == 0) return;
    const std::size_t offset = at & (ring_.size() - 1);
    const std::size_t first = std::min(bytes, ring_.size() - offset);
    std::memcpy(data, ring_.data() + offset, first);
    if (first < bytes)
      std::memcpy(static_cast<std::byte*>(data) + first, ring_.data(), bytes - first);
  }

  const CaptureLaneState& state_;
  const std::span<const std::byte> ring_;
  CaptureCursor& cursor_;
  std::vector<std::byte> buffer_;
  Frame frame_;
  bool has_frame_ = false;
  std::uint64_t head_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace ztcp::stats
