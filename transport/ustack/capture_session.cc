// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/capture_session.h"

#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1.
#endif

namespace ztcp::ustack {

Result<std::unique_ptr<SharedPages>> SharedPages::make(const char* name, std::size_t size_bytes,
                                                       Peer peer) {
  Fd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  const auto size = static_cast<off_t>(size_bytes);
  // fallocate() reports a lack of memory that a later access would answer with SIGBUS.
  if (ftruncate(fd.get(), size) != 0) return fail_errno("ftruncate");
  if (fallocate(fd.get(), 0, 0, size) != 0) return fail_errno("fallocate");
  void* const memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("mmap");
  const std::span bytes(static_cast<std::byte*>(memory), size_bytes);
  auto pages = std::make_unique<SharedPages>(std::move(fd), bytes);
  // A child would keep the pages after this process.
  if (madvise(memory, size_bytes, MADV_DONTFORK) != 0) return fail_errno("madvise");
  if (peer == Peer::kReads)  // Older kernels lack this seal; the writers read nothing of the rings.
    fcntl(pages->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  if (fcntl(pages->fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("F_ADD_SEALS");
  return pages;
}

SharedPages::~SharedPages() { munmap(bytes_.data(), bytes_.size()); }

Result<std::unique_ptr<CaptureSession>> CaptureSession::start(const CaptureTaps& taps,
                                                              std::uint32_t ring_bytes,
                                                              std::uint32_t snap_bytes) {
  auto rings = ZTCP_TRY(SharedPages::make(
      "ztcp-capture", stats::capture_bytes(taps.size(), ring_bytes), SharedPages::Peer::kReads));
  auto cursors =
      ZTCP_TRY(SharedPages::make("ztcp-capture-cursors", taps.size() * sizeof(stats::CaptureCursor),
                                 SharedPages::Peer::kWrites));
  std::unique_ptr<CaptureSession> session(new CaptureSession(std::move(rings), std::move(cursors)));
  session->lanes_.reserve(taps.size());
  for (std::size_t lane = 0; lane < taps.size(); ++lane) {
    std::byte* const at =
        session->rings_->bytes().data() + stats::capture_lane_offset(lane, ring_bytes);
    auto* const state = new (at) stats::CaptureLaneState;
    std::byte* const cursor_at =
        session->cursors_->bytes().data() + lane * sizeof(stats::CaptureCursor);
    const auto* const cursor = new (cursor_at) stats::CaptureCursor;
    auto writer = std::make_unique<stats::CaptureWriter>(
        *state, std::span(at + stats::kCaptureStateBytes, ring_bytes), *cursor, snap_bytes);
    if (!taps[lane]->attach(*writer)) return fail(Errc::kBusy, "capture");
    session->lanes_.push_back({taps[lane], std::move(writer)});
  }
  return session;
}

CaptureSession::~CaptureSession() {
  for (const Lane& lane : lanes_) lane.tap->detach(*lane.writer);
}

}  // namespace ztcp::ustack
