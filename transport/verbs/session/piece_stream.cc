// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/piece_stream.h"

#include <algorithm>
#include <cassert>

#include "core/ordered_copy.h"
#include "transport/verbs/session/record_codec.h"

namespace ztcp::verbs {

PieceStream::PieceStream(Pipe& pipe, Landings& landings) : pipe_(pipe), landings_(landings) {}

PieceStream::Outgoing& PieceStream::push(const StreamRecord& record) {
  assert(next_queued_ - first_queued_ < kQueued);
  Outgoing& out = queue_[next_queued_++ % kQueued];
  out.record = record;
  out.bytes = nullptr;
  return out;
}

void PieceStream::welcome() {
  push({.kind = StreamRecord::Kind::kWelcome});
  if (const Status sent = flush(); !sent) broken_ = sent.error();
}

void PieceStream::post(const WorkRequest& request) {
  const bool is_piece = request.kind == WorkRequest::Kind::kWriteImmediate;
  Outgoing& out = push({.kind = is_piece ? StreamRecord::Kind::kPiece : StreamRecord::Kind::kWrite,
                        .wants_answer = static_cast<std::uint8_t>(request.is_signalled ? 1 : 0),
                        .size_bytes = request.size_bytes,
                        .remote = request.remote,
                        .immediate = request.immediate});
  if (request.is_inline)
    std::copy_n(request.local, request.size_bytes, out.kept.begin());
  else
    out.bytes = request.local;
  if (request.is_signalled) answered_ids_[wanted_answers_++ % kSendDepth] = request.id;
  if (blocked_polls_ != 0 || broken_) return;
  if (const Status sent = flush(); !sent) broken_ = sent.error();
}

// Sends a portion of the queue.
Status PieceStream::flush() {
  std::size_t left = kPortionBytes;
  blocked_polls_ = 0;
  while (first_queued_ != next_queued_) {
    const Outgoing& first = queue_[first_queued_ % kQueued];
    const std::size_t whole = sizeof first.record + first.record.size_bytes;
    // The unsent parts of the record and of its bytes.
    const std::size_t skipped = std::min(sent_bytes_, sizeof first.record);
    const std::size_t begin = sent_bytes_ - skipped;
    const std::byte* const bytes = first.bytes == nullptr ? first.kept.data() : first.bytes;
    const std::array<std::span<const std::byte>, 2> parts{
        records::bytes_of(first.record).subspan(skipped),
        std::span(bytes + begin, std::min(first.record.size_bytes - begin, left))};
    const std::size_t took = left == 0 ? 0 : ZTCP_TRY(pipe_.send(parts));
    left -= std::min(took, left);
    sent_bytes_ += took;
    if (sent_bytes_ == whole) {
      if (first.record.wants_answer != 0) ++awaited_answers_;
      ++first_queued_;
      sent_bytes_ = 0;
    } else if (took < parts[0].size() + parts[1].size() || left == 0) {
      // The next portion follows at the next poll; after some polls if the pipe is full.
      blocked_polls_ = took == 0 && left != 0 ? 1 : kPollEvery;
      return {};
    }
  }
  return {};
}

Result<std::size_t> PieceStream::poll(std::span<Told> out) {
  if (broken_) return tl::unexpected(*broken_);
  std::size_t count = 0;
  Status outcome;
  if (blocked_polls_ != 0 && ++blocked_polls_ > kPollEvery) outcome = flush();
  if (outcome) outcome = take(out, count);
  if (outcome) return count;
  // Records before the error count.
  broken_ = outcome.error();
  if (count > 0) return count;
  return tl::unexpected(*broken_);
}

// Moves the staged bytes to the front and reads behind them.
Result<std::size_t> PieceStream::fill() {
  std::copy(staged_.begin() + static_cast<std::ptrdiff_t>(staged_begin_),
            staged_.begin() + static_cast<std::ptrdiff_t>(staged_end_), staged_.begin());
  staged_end_ -= staged_begin_;
  staged_begin_ = 0;
  const std::array<std::span<std::byte>, 1> parts{std::span(staged_).subspan(staged_end_)};
  const std::size_t got = ZTCP_TRY(pipe_.receive(parts));
  staged_end_ += got;
  return got;
}

Status PieceStream::take(std::span<Told> out, std::size_t& count) {
  std::size_t left = kPortionBytes;
  const auto look = [&](Result<std::size_t> got) -> Result<bool> {
    const std::size_t bytes = ZTCP_TRY(got);
    left -= std::min(bytes, left);
    silent_polls_ = bytes == 0 ? 1 : 0;
    return bytes != 0;
  };
  if (untold_ && first_queued_ == next_queued_ && count < out.size()) {
    out[count++] = *untold_;
    untold_.reset();
  }
  if (silent_polls_ != 0 && silent_polls_++ % kPollEvery != 0) return {};
  while (count < out.size() && left > 0 && !untold_ && next_queued_ - first_queued_ <= kSendDepth) {
    if (!landing_) {
      if (staged_end_ - staged_begin_ < sizeof(StreamRecord)) {
        if (!ZTCP_TRY(look(fill()))) return {};
        continue;
      }
      landing_ = records::load<StreamRecord>(std::span(staged_).subspan(staged_begin_));
      staged_begin_ += sizeof *landing_;
      landed_bytes_ = 0;
      const auto kind = landing_->kind;
      if (kind < StreamRecord::Kind::kWelcome || kind > StreamRecord::Kind::kDone)
        return fail(Errc::kProtocol, "no record of a rail of TCP");
    }
    if (landed_bytes_ < landing_->size_bytes && !ZTCP_TRY(look(land(left)))) return {};
    if (landed_bytes_ == landing_->size_bytes) ZTCP_CHECK(finish(out, count));
  }
  return {};
}

// Reads at most `most` bytes of the record; returns how many.
Result<std::size_t> PieceStream::land(std::size_t most) {
  if (landing_->kind != StreamRecord::Kind::kWrite && landing_->kind != StreamRecord::Kind::kPiece)
    return fail(Errc::kProtocol, "bytes behind a record that has none");
  const Landing to = ZTCP_TRY(landings_.place(*landing_));
  std::byte* const next = to.begin + landed_bytes_;
  const std::size_t missing = landing_->size_bytes - landed_bytes_;
  if (staged_begin_ == staged_end_ && !to.is_polled) {
    // Reads ahead into the staging buffer.
    const std::array<std::span<std::byte>, 2> parts{std::span(next, std::min(missing, most)),
                                                    std::span(staged_)};
    const std::size_t got = ZTCP_TRY(pipe_.receive({parts.data(), missing > most ? 1U : 2U}));
    const std::size_t landed = std::min(got, missing);
    landed_bytes_ += static_cast<std::uint32_t>(landed);
    staged_begin_ = 0;
    staged_end_ = got - landed;
    return got;
  }
  if (staged_begin_ == staged_end_ && ZTCP_TRY(fill()) == 0) return 0;
  const std::size_t landed = std::min({staged_end_ - staged_begin_, missing, most});
  ordered_copy(next, &staged_[staged_begin_], landed);
  staged_begin_ += landed;
  landed_bytes_ += static_cast<std::uint32_t>(landed);
  return landed;
}

// The record has arrived whole.
Status PieceStream::finish(std::span<Told> out, std::size_t& count) {
  const StreamRecord record = *landing_;
  landing_.reset();
  switch (record.kind) {
    case StreamRecord::Kind::kWelcome:
      is_welcome_ = true;
      return {};
    case StreamRecord::Kind::kDone:
      return on_done(record, out, count);
    case StreamRecord::Kind::kWrite:
      ZTCP_CHECK(landings_.place(record));
      return record.wants_answer != 0 ? answer() : Status();
    case StreamRecord::Kind::kPiece:
      // A piece without bytes was not placed yet.
      ZTCP_CHECK(landings_.place(record));
      if (record.wants_answer != 0) ZTCP_CHECK(answer());
      untold_ = Told{
          .is_immediate = true, .immediate = record.immediate, .size_bytes = record.size_bytes};
      if (first_queued_ != next_queued_) return {};
      out[count++] = *untold_;
      untold_.reset();
  }
  return {};
}

Status PieceStream::answer() {
  push({.kind = StreamRecord::Kind::kDone, .landed = ++landed_});
  return blocked_polls_ == 0 ? flush() : Status();
}

Status PieceStream::on_done(const StreamRecord& record, std::span<Told> out, std::size_t& count) {
  const std::uint32_t fresh = record.landed - answers_;
  if (fresh == 0 || fresh > awaited_answers_ - answers_)
    return fail(Errc::kProtocol, "an answer to nothing");
  answers_ = record.landed;
  out[count++] = {.id = answered_ids_[(answers_ - 1) % kSendDepth]};
  return {};
}

}  // namespace ztcp::verbs
