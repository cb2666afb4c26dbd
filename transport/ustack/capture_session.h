// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A running capture of one NIC: the memory that it shares with the capturing program, and a writer
// for each lane. Attached to the lanes' taps for its life. Belongs to the thread of CaptureServer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/fd.h"
#include "core/result.h"
#include "transport/stats/capture_ring.h"
#include "transport/stats/capture_tap.h"

namespace ztcp::ustack {

using CaptureTaps = std::vector<std::shared_ptr<stats::CaptureTap>>;

// Shared memory of this process and of the program that gets its descriptor. Its size is fixed by
// seals, so that no other process can take pages away. Not inherited by forked children.
class SharedPages {
 public:
  enum class Peer : std::uint8_t { kReads, kWrites };
  // All pages exist when this returns: no lane pays for their first use.
  static Result<std::unique_ptr<SharedPages>> make(const char* name, std::size_t size_bytes,
                                                   Peer peer);
  SharedPages(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  const Fd fd_;
  const std::span<std::byte> bytes_;
};

class CaptureSession {
 public:
  // kBusy: as many captures as a tap takes are running.
  static Result<std::unique_ptr<CaptureSession>> start(const CaptureTaps& taps,
                                                       std::uint32_t ring_bytes,
                                                       std::uint32_t snap_bytes);
  ~CaptureSession();
  CaptureSession(const CaptureSession&) = delete;
  CaptureSession& operator=(const CaptureSession&) = delete;

  int rings_fd() const { return rings_->fd(); }
  int cursors_fd() const { return cursors_->fd(); }

 private:
  CaptureSession(std::unique_ptr<SharedPages> rings, std::unique_ptr<SharedPages> cursors)
      : rings_(std::move(rings)), cursors_(std::move(cursors)) {}

  struct Lane {
    std::shared_ptr<stats::CaptureTap> tap;
    std::unique_ptr<stats::CaptureWriter> writer;
  };

  const std::unique_ptr<SharedPages> rings_;
  const std::unique_ptr<SharedPages> cursors_;
  std::vector<Lane> lanes_;  // Attached.
};

}  // namespace ztcp::ustack
