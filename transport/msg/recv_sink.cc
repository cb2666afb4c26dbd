// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <cassert>

#include "transport/core/ordered_copy.h"
#include "transport/msg/acceptor_impl.h"

namespace ztcp::msg {

void RecvSession::Impl::on_chunk(TimePoint now, RecvFlow& flow, const Chunk& chunk) {
  heard_last_ = &flow;
  RecvFlow::Cursor& cursor = flow.cursor;
  cursor = {chunk.message, chunk.offset, 0, chunk.eager};
  if (state_ != State::kRunning) return;
  if (chunk.message >= received_ + kMaxOutstanding || (has_bye_ && chunk.message >= bye_messages_))
    return on_protocol_error(now, "chunk outside the message window");
  if (is_finished(chunk.message)) return;

  RecvMessage& m = message(chunk.message);
  if (!begin(now, m, chunk)) return;
  if (!m.is_posted) {
    if (!chunk.eager) return on_protocol_error(now, "plain chunk without a posted buffer");
    const std::uint64_t end = chunk.offset + chunk.size_bytes;
    std::uint64_t wanted = chunk.size_bytes;
    for (std::uint64_t u = m.unit.index(chunk.offset), last = m.units_below(end); u < last; ++u)
      if (m.held.test(u)) wanted -= m.bytes_of(u, u + 1);
    if (end > bounce_.allowance_bytes() || !bounce_.reserve(wanted)) {
      const std::uint64_t asked = std::max(end, bounce_.reserved_bytes() + wanted);
      return fail(
          now, Error{Errc::kProtocol, 0, "eager allowance"},
          FailureDetail{Reason::kAllowance, /*from_peer=*/false, bounce_.allowance_bytes(), asked});
    }
    m.reserved_bytes += wanted;
    cursor.reserved_bytes = wanted;
  } else if (m.total == 0) {
    finish(chunk.message);
  }
}

// The message's size is known from its first chunk on. False when it failed the session.
bool RecvSession::Impl::begin(TimePoint now, RecvMessage& m, const Chunk& chunk) {
  if (!m.has_begun) {
    m.has_begun = true;
    m.total = chunk.total;
    m.unit = UnitSize(chunk.total);
  } else if (m.total != chunk.total) {
    on_protocol_error(now, "chunks disagree on their message's size");
    return false;
  }
  return !m.is_posted || fits(now, m);
}

bool RecvSession::Impl::fits(TimePoint now, const RecvMessage& m) {
  if (m.total <= m.capacity_bytes) return true;
  fail(now, Error{Errc::kTruncated, 0, "message larger than its buffer"},
       FailureDetail{Reason::kTruncated, /*from_peer=*/false, m.capacity_bytes, m.total});
  return false;
}

void RecvSession::Impl::on_payload(TimePoint now, RecvFlow& flow,
                                   std::span<const std::byte> bytes) {
  RecvFlow::Cursor& cursor = flow.cursor;
  const std::uint64_t from = cursor.position;
  const std::uint64_t to = from + bytes.size();
  cursor.position = to;
  if (state_ != State::kRunning || is_finished(cursor.message)) return;

  RecvMessage& m = message(cursor.message);
  const std::uint64_t first = m.unit.index(from);
  const std::uint64_t last = m.unit.index(to - 1) + 1;
  if (m.held.count(first, last) == 0) [[likely]] {
    if (!sink(now, m, flow, from, bytes)) return;
  } else {
    // A peer that sends twice what we hold. What is held is never written again.
    for (std::uint64_t u = first; u < last; ++u) {
      if (m.held.test(u)) continue;
      const std::uint64_t begin = std::max(from, m.unit.offset(u));
      const std::uint64_t end = std::min(to, m.unit.offset(u + 1));
      if (!sink(now, m, flow, begin, bytes.subspan(begin - from, end - begin))) return;
    }
  }
  if (m.is_posted && m.held_bytes == m.total)
    finish(cursor.message);
  else if (has_credit_to_tell())
    owe_credit();
}

// Bytes of units that are not held, contiguous from byte `from`. Units end as their last byte
// comes: a chunk begins with its first.
bool RecvSession::Impl::sink(TimePoint now, RecvMessage& m, RecvFlow& flow, std::uint64_t from,
                             std::span<const std::byte> bytes) {
  if (m.is_posted) {
    ordered_copy(m.buffer + from, bytes.data(), bytes.size());
  } else if (!bounce_.write(m.pages, from, bytes)) {
    on_protocol_error(now, "eager chunks out of order");
    return false;
  }
  const std::uint64_t first = m.unit.index(from);
  const std::uint64_t last = m.units_below(from + bytes.size());
  if (first >= last) return true;
  m.held.set(first, last);
  const std::uint64_t size_bytes = m.bytes_of(first, last);
  m.held_bytes += size_bytes;
  if (!flow.cursor.eager) return true;
  if (m.is_posted) {
    released_ += size_bytes;
  } else {
    m.eager_bytes += size_bytes;
    flow.cursor.reserved_bytes -= size_bytes;
  }
  return true;
}

bool RecvSession::Impl::post(TimePoint now, std::span<std::byte> bytes, std::uint32_t token) {
  assert(owner_ != nullptr);
  if (state_ != State::kRunning) return true;  // The owner knows, or will hear, how it ended.
  if (!can_post()) return false;
  take(now, posted_++, bytes, token);
  return true;
}

void RecvSession::Impl::take(TimePoint now, std::uint64_t number, std::span<std::byte> bytes,
                             std::uint32_t token) {
  // With no posted buffer left that it knows of, the sender may be waiting for this one.
  const bool sender_may_be_short = told_.posted <= received_;
  RecvMessage& m = message(number);
  m.buffer = bytes.data();
  m.capacity_bytes = bytes.size();
  m.token = token;
  m.is_posted = true;
  if (has_bye_ && number >= bye_messages_)
    return fail(now, Error{Errc::kPeerClosed, 0, "post: the sender has closed"}, why_sender_left());
  if (m.has_begun) {
    if (!fits(now, m)) return;
    take_from_bounce(m, number);
    if (m.held_bytes == m.total) finish(number);
  }
  if (sender_may_be_short)
    flush();
  else
    owe_credit();
}

// Exactly what has come: the memory between must not change before its bytes arrive, for someone
// may poll it.
void RecvSession::Impl::take_from_bounce(RecvMessage& m, std::uint64_t number) {
  const std::uint64_t units = m.unit.count(m.total);
  for (std::uint64_t u = 0, left = m.held_bytes; left != 0 && u < units; ++u) {
    if (!m.held.test(u)) continue;
    const std::uint64_t size_bytes = m.bytes_of(u, u + 1);
    bounce_.read(m.pages, m.unit.offset(u), {m.buffer + m.unit.offset(u), size_bytes});
    left -= size_bytes;
  }
  for (const auto& flow : flows_) {  // Units under way.
    if (flow == nullptr || !flow->is_alive() || flow->cursor.message != number) continue;
    const std::uint64_t position = flow->cursor.position;
    const std::uint64_t unit = m.unit.index(position);
    const std::uint64_t begin = m.unit.offset(unit);
    if (position >= m.total || position == begin || m.held.test(unit)) continue;
    bounce_.read(m.pages, begin, {m.buffer + begin, position - begin});
  }
  bounce_.release(m.pages);
  bounce_.unreserve(m.reserved_bytes);
  m.reserved_bytes = 0;
  released_ += m.eager_bytes;
  m.eager_bytes = 0;
}

// The flow's stream has ended: the units it left unfinished count as nothing.
void RecvSession::Impl::drop_chunk(RecvFlow& flow) {
  const RecvFlow::Cursor cursor = flow.cursor;
  flow.cursor = {};
  if (cursor.reserved_bytes == 0 || is_finished(cursor.message)) return;
  RecvMessage& m = message(cursor.message);
  if (m.is_posted) return;  // The post has taken the reservations back.
  m.reserved_bytes -= cursor.reserved_bytes;
  bounce_.unreserve(cursor.reserved_bytes);
}

void RecvSession::Impl::finish(std::uint64_t number) {
  RecvMessage& m = message(number);
  m.is_done = true;
  const std::uint32_t token = m.token;
  const std::size_t size_bytes = m.total;
  while (received_ != posted_ && message(received_).is_done) {
    message(received_) = RecvMessage();
    ++received_;
  }
  owe_credit();
  owner_->on_done(token, size_bytes);  // Last: the owner may post, close or abort.
}

}  // namespace ztcp::msg
