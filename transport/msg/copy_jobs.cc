// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/copy_jobs.h"

#include <algorithm>
#include <cassert>

#include "core/ordered_copy.h"
#include "transport/msg/recv_message.h"

namespace ztcp::msg {

CopyJobs::CopyJobs(const CopySettings& settings, Workers& workers, FrameLoans& loans)
    : settings_(settings), workers_(workers), loans_(loans) {
  assert(settings.stretch_bytes % 128 == 0);
  for (std::size_t i = 0; i < std::min(settings.workers, kMaxWorkers); ++i)
    rings_.push_back(std::make_unique<Worker>());
}

void CopyJobs::copy(CopyClient& client, RecvMessage& message, CopyTrack& track, std::uint64_t at,
                    std::span<const std::byte> bytes) {
  const bool is_worth_it = bytes.size() >= settings_.least_piece_bytes;
  while (!bytes.empty()) {
    if (at >= track.end) begin_stretch(track, at, is_worth_it);
    const auto piece = bytes.first(std::min<std::uint64_t>(bytes.size(), track.end - at));
    if (track.worker != CopyTrack::kHere && give(client, message, track.worker, at, piece)) {
      track.is_begun = true;
    } else {
      // The rest of the stretch is copied here, after the worker has finished its pieces.
      if (track.is_begun) wait_until_done(track.worker, rings_[track.worker]->ring.position());
      track.worker = CopyTrack::kHere;
      track.is_begun = false;
      ordered_copy(message.buffer() + at, piece.data(), piece.size());
    }
    bytes = bytes.subspan(piece.size());
    at += piece.size();
  }
}

void CopyJobs::begin_stretch(CopyTrack& track, std::uint64_t at, bool is_worth_it) {
  if (track.worker != CopyTrack::kHere) publish(track.worker);
  track.end = (at / settings_.stretch_bytes + 1) * settings_.stretch_bytes;
  track.worker = is_worth_it ? choose_worker() : CopyTrack::kHere;
  track.is_begun = false;
}

std::uint8_t CopyJobs::choose_worker() {
  if (const std::uint8_t known = least_busy(); known != CopyTrack::kHere) return known;
  for (const auto& worker : rings_) worker->reap();
  return least_busy();
}

std::uint8_t CopyJobs::least_busy() const {
  std::uint8_t chosen = CopyTrack::kHere;
  std::uint64_t least_bytes = kTooMuch * settings_.stretch_bytes;
  for (std::size_t i = 0; i < count(); ++i) {
    const Worker& worker = *rings_[i];
    if (worker.out_bytes >= least_bytes || worker.ring.room() < kRoomForStretch) continue;
    chosen = static_cast<std::uint8_t>(i);
    least_bytes = worker.out_bytes;
    if (least_bytes < kEnough * settings_.stretch_bytes) break;
  }
  return chosen;
}

bool CopyJobs::give(CopyClient& client, RecvMessage& message, std::uint8_t to, std::uint64_t at,
                    std::span<const std::byte> bytes) {
  Worker& worker = *rings_[to];
  if (worker.ring.room() == 0) return false;
  const std::uint32_t loan = loans_.lend();
  if (loan == FrameLoans::kNone) return false;
  worker.ring.put({.to = message.buffer() + at,
                   .from = bytes.data(),
                   .size_bytes = static_cast<std::uint32_t>(bytes.size()),
                   .loan = loan,
                   .client = &client,
                   .message = &message});
  worker.out_bytes += bytes.size();
  ++out_;
  client.note_given();
  message.note_copy_given();
  return true;
}

void CopyJobs::publish(std::size_t worker) {
  if (rings_[worker]->ring.publish()) workers_.wake(worker);
}

void CopyJobs::publish() {
  if (is_idle()) return;
  for (std::size_t i = 0; i < rings_.size(); ++i) publish(i);
}

bool CopyJobs::work(std::size_t worker) {
  return rings_[worker]->ring.work(
      [](const CopyJob& job) { ordered_copy(job.to, job.from, job.size_bytes); });
}

// Clients may give jobs and wait for others inside their callbacks.
bool CopyJobs::collect(TimePoint now) {
  if (is_idle()) return false;
  bool any = false;
  for (const auto& worker : rings_) {
    if (worker->ring.is_empty()) continue;
    worker->reap();
    while (const CopyJob* const first = worker->ring.first_done()) {
      const CopyJob job = *first;
      worker->ring.take_first();
      --out_;
      any = true;
      loans_.give_back(job.loan);
      if (job.client == nullptr) continue;
      job.client->note_back();
      job.message->note_copied();
      job.client->on_copied(now, *job.message);
    }
  }
  return any;
}

bool CopyJobs::wait_until_done(std::size_t worker, std::uint32_t position) {
  publish(worker);
  while (!rings_[worker]->ring.is_done(position))
    if (!workers_.wait_for(worker)) return false;
  return true;
}

bool CopyJobs::wait_for(const CopyClient& client) {
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    Ring& ring = rings_[i]->ring;
    bool has_some = false;
    ring.for_each_out([&](const CopyJob& job) { has_some |= job.client == &client; });
    if (has_some && !wait_until_done(i, ring.position())) return false;
  }
  return true;
}

void CopyJobs::settle(TimePoint now, CopyClient& client) {
  while (client.has_copies_out()) {
    if (!wait_for(client)) return forget(client);
    collect(now);
  }
}

void CopyJobs::forget(CopyClient& client) {
  wait_for(client);
  for (const auto& worker : rings_)
    worker->ring.for_each_out([&](CopyJob& job) {
      if (job.client == &client) job.client = nullptr;
    });
  client.note_forgotten();
}

}  // namespace ztcp::msg
