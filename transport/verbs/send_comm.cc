// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/send_comm.h"

#include <fmt/format.h>

namespace ztcp::verbs {

QueuePairSend::QueuePairSend(std::shared_ptr<ControlThread> control_thread,
                             std::shared_ptr<Connection> connection)
    : end_(std::move(control_thread), std::move(connection)), timer_(end_.connection().report()) {
  for (std::uint16_t i = 0; i < SendSession::kMessages; ++i) {
    requests_[i].comm = this;
    requests_[i].number = i;
    free_[i] = static_cast<std::uint16_t>(SendSession::kMessages - 1 - i);
  }
}

Result<bool> QueuePairSend::is_ready() {
  Connection& connection = end_.connection();
  const Connection::Phase phase = connection.phase();
  if (phase == Connection::Phase::kConnecting) return false;
  if (phase == Connection::Phase::kFailed) return tl::unexpected(connection.error());
  is_ready_ = true;
  return true;
}

Result<Request*> QueuePairSend::post_send(std::span<const std::byte> bytes, int tag,
                                          MemoryKey* key) {
  const CommEnd::Scope scope(end_);
  if (end_.error()) [[unlikely]]
    return tl::unexpected(*end_.error());
  if (!is_ready_) return fail(Errc::kInvalidArgument, "a send before the connection is ready");
  if (key == nullptr && !bytes.empty())
    return fail(Errc::kInvalidArgument, "a send of memory that was not registered");
  if (free_count_ == 0) return nullptr;
  Sent& sent = requests_[free_[free_count_ - 1]];
  const RegisteredMemory* const memory = registered(key);
  const Result<bool> taken =
      session().post(sent.number, {.bytes = bytes,
                                   .tag = tag,
                                   .lkeys = memory == nullptr ? nullptr : &memory->lkeys,
                                   .is_host = memory == nullptr || memory->is_host});
  if (!taken) [[unlikely]]
    return tl::unexpected(end_.fail(taken.error(), why(taken.error())));
  if (!*taken) {
    timer_.hold(bytes.size(), tag);
    ZTCP_CHECK(progress(true));
    return nullptr;
  }
  sent.size_bytes = bytes.size();
  sent.begun = timer_.begin(bytes.size(), tag);
  --free_count_;
  return &sent;
}

std::string QueuePairSend::why(const Error& error) const {
  if (error.code != Errc::kTruncated) return {};
  const SendSession::Truncated& what = session().truncated();
  return fmt::format(
      "a message of {} bytes with tag {} for a buffer of {}; the ranks disagree about the size or "
      "the order of their collectives",
      what.sent_bytes, what.tag, what.posted_bytes);
}

Status QueuePairSend::progress(bool waits_for_peer) {
  const bool moved = ZTCP_TRY(end_.poll());
  return moved ? Status() : end_.check_peer(waits_for_peer);
}

Result<bool> QueuePairSend::test(Sent& sent, std::span<std::size_t> sizes_bytes) {
  const CommEnd::Scope scope(end_);
  if (!session().is_done(sent.number)) {
    if (end_.error()) [[unlikely]]
      return tl::unexpected(*end_.error());
    ZTCP_CHECK(progress(false));
    if (!session().is_done(sent.number)) return false;
  }
  if (!sizes_bytes.empty()) sizes_bytes[0] = sent.size_bytes;
  timer_.end(sent.size_bytes, sent.begun);
  free_[free_count_++] = sent.number;
  return true;
}

std::size_t QueuePairSend::pieces(const Sent& sent, std::span<PieceFacts, kMaxPieces> out) {
  const CommEnd::Scope scope(end_);
  const Traffic& traffic = end_.connection().traffic();
  std::size_t count = 0;
  session().each_posted(sent.number, [&](std::uint32_t over, std::uint64_t id, const Piece& piece) {
    PieceFacts& facts = out[count++];
    facts = traffic.facts_of(over);
    facts.work_id = id;
    facts.size_bytes = piece.size_bytes;
    facts.number = piece.number;
  });
  // Its rail has failed meanwhile.
  if (count == 0) {
    out[count] = {};
    out[count++].size_bytes = sent.size_bytes;
  }
  return count;
}

std::uint32_t QueuePairSend::finished_pieces(const Sent& sent) {
  const CommEnd::Scope scope(end_);
  return ~session().unfinished(sent.number);
}

void QueuePairSend::close() {
  end_.close();
  delete this;
}

}  // namespace ztcp::verbs
