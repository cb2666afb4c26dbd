// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/capture_tap.h"

#include <ctime>

namespace ztcp::stats {
namespace {

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

bool CaptureTap::attach(CaptureWriter& writer) {
  for (auto& place : writers_) {
    CaptureWriter* none = nullptr;
    if (!place.compare_exchange_strong(none, &writer)) continue;
    attached_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void CaptureTap::detach(CaptureWriter& writer) {
  for (auto& place : writers_) {
    CaptureWriter* expected = &writer;
    if (!place.compare_exchange_strong(expected, nullptr)) continue;
    attached_.fetch_sub(1, std::memory_order_relaxed);
    // A lane that does not see the null yet has made the number odd before (both are sequentially
    // consistent).
    const std::uint32_t uses = uses_.load();
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 50'000};
    while (uses % 2 != 0 && uses_.load() == uses) nanosleep(&kPause, nullptr);
    return;
  }
}

template <class Write>
void CaptureTap::for_each_writer(Write&& write) {
  const std::uint32_t uses = uses_.load(std::memory_order_relaxed);
  uses_.store(uses + 1);
  for (auto& place : writers_)
    if (CaptureWriter* const writer = place.load(); writer != nullptr) write(*writer);
  uses_.store(uses + 2);
}

void CaptureTap::record_received(std::span<const RxFrame> frames) {
  const std::uint64_t now = monotonic_ns();
  for_each_writer([&](CaptureWriter& writer) {
    for (const RxFrame& frame : frames) {
      std::size_t size = frame.head.size();
      for (const std::span<const std::byte> part : frame.more) size += part.size();
      CaptureRecord record;
      record.time_ns = now;
      record.original_bytes = static_cast<std::uint32_t>(size);
      writer.write(record, [&](auto&& put) {
        put(frame.head.data(), frame.head.size());
        for (const std::span<const std::byte> part : frame.more) put(part.data(), part.size());
      });
    }
  });
}

void CaptureTap::record_sent(std::span<const TxFrame> frames) {
  const std::uint64_t now = monotonic_ns();
  for_each_writer([&](CaptureWriter& writer) {
    for (const TxFrame& frame : frames) {
      CaptureRecord record;
      record.time_ns = now;
      record.original_bytes = frame.header_bytes + frame.payload_bytes;
      record.flags = CaptureRecord::kSent;
      if (frame.checksum_offload) record.flags |= CaptureRecord::kWithoutChecksum;
      record.segment_bytes = frame.segment_size_bytes;
      writer.write(record, [&](auto&& put) {
        put(frame.header.data(), frame.header_bytes);
        for (std::size_t i = 0; i < frame.fragment_count; ++i)
          put(frame.fragments[i].data, frame.fragments[i].size_bytes);
      });
    }
  });
}

}  // namespace ztcp::stats
