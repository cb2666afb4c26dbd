// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory for frames that wait inside the switch: delayed, or for a full transmit ring. Buffers are
// kept by size class, so the steady state does not allocate. One owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ztcp::fabric {

class StoredFrame {
 public:
  StoredFrame() = default;
  std::span<std::byte> bytes() { return {data_.get(), size_bytes_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_bytes_}; }
  std::uint32_t size_bytes() const { return size_bytes_; }

 private:
  friend class FrameStore;
  std::unique_ptr<std::byte[]> data_;
  std::uint32_t size_bytes_ = 0;
  std::uint8_t size_class_ = 0;
};

class FrameStore {
 public:
  // At most 64 KiB, the largest Ethernet frame that memif carries.
  StoredFrame take(std::uint32_t size_bytes) {
    std::uint8_t c = 0;
    while (kClassBytes[c] < size_bytes) ++c;
    StoredFrame frame;
    if (free_[c].empty()) {
      frame.data_.reset(new std::byte[kClassBytes[c]]);
    } else {
      frame = std::move(free_[c].back());
      free_[c].pop_back();
    }
    frame.size_class_ = c;
    frame.size_bytes_ = size_bytes;
    return frame;
  }
  void give(StoredFrame&& frame) {
    if (frame.data_) free_[frame.size_class_].push_back(std::move(frame));
  }

 private:
  static constexpr std::array<std::uint32_t, 3> kClassBytes = {2048, 10240, 65536 + 64};
  std::array<std::vector<StoredFrame>, kClassBytes.size()> free_;
};

}  // namespace ztcp::fabric
