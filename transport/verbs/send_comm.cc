// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/send_comm.h"

#include <fmt/format.h>

namespace ztcp::verbs {

QueuePairSend::QueuePairSend(std::shared_ptr<Control> control,
                             std::shared_ptr<Connection> connection)
    : end_(std::move(control), std::move(connection)) {
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
  if (!session_) session_.emplace(connection.queue_pairs(), connection.memory().ring, connection);
  return true;
}

Result<Request*> QueuePairSend::post_send(std::span<const std::byte> bytes, int tag,
                                          MemoryKey* key) {
  if (end_.error()) [[unlikely]]
    return tl::unexpected(*end_.error());
  if (!session_) return fail(Errc::kInvalidArgument, "a send before the connection is ready");
  if (key == nullptr && !bytes.empty())
    return fail(Errc::kInvalidArgument, "a send of memory that was not registered");
  if (free_count_ == 0) return nullptr;
  Sent& sent = requests_[free_[free_count_ - 1]];
  const RegisteredMemory* const memory = registered(key);
  const Result<bool> taken =
      session_->post(sent.number, {.bytes = bytes,
                                   .tag = tag,
                                   .lkeys = memory == nullptr ? nullptr : &memory->lkeys,
                                   .is_host = memory == nullptr || memory->is_host});
  if (!taken) [[unlikely]]
    return tl::unexpected(end_.fail(taken.error(), why(taken.error())));
  if (!*taken) {
    ZTCP_CHECK(progress(true));
    return nullptr;
  }
  sent.size_bytes = bytes.size();
  --free_count_;
  return &sent;
}

std::string QueuePairSend::why(const Error& error) const {
  if (error.code != Errc::kTruncated) return {};
  const SendSession::Truncated& what = session_->truncated();
  return fmt::format(
      "a message of {} bytes with tag {} for a buffer of {}; the ranks disagree about the size or "
      "the order of their collectives",
      what.sent_bytes, what.tag, what.posted_bytes);
}

Status QueuePairSend::progress(bool waits_for_peer) {
  const bool moved = ZTCP_TRY(end_.poll([this](std::uint32_t queue_pair, const ibv_wc& completion) {
    return session_->on_completion(queue_pair, completion.wr_id);
  }));
  return moved ? Status() : end_.hear_news(waits_for_peer);
}

Result<bool> QueuePairSend::test(Sent& sent, std::span<std::size_t> sizes_bytes) {
  if (!session_->is_done(sent.number)) {
    if (end_.error()) [[unlikely]]
      return tl::unexpected(*end_.error());
    ZTCP_CHECK(progress(false));
    if (!session_->is_done(sent.number)) return false;
  }
  if (!sizes_bytes.empty()) sizes_bytes[0] = sent.size_bytes;
  free_[free_count_++] = sent.number;
  return true;
}

void QueuePairSend::close() {
  end_.close(!session_ || session_->is_idle());
  delete this;
}

}  // namespace ztcp::verbs
