// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/memory_streams.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ztcp::testing_support {

std::size_t MemoryStream::room() const {
  if (stalled_ || user_ == User::kLeft || must_fail_) return 0;
  const std::uint64_t unacked = written_ - acked_;
  return unacked < net_.script_.window_bytes ? net_.script_.window_bytes - unacked : 0;
}

bool MemoryStream::write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
  assert(user_ == User::kListening && !fin_queued_ && copied.size() <= kMaxCopiedBytes);
  if (room() == 0 && written_ - acked_ >= net_.script_.ring_bytes) return false;
  Item item;
  item.copied.assign(copied.begin(), copied.end());
  item.size = copied.size();
  written_ += item.size;
  if (item.size != 0) queue_.push_back(std::move(item));
  for (const Fragment& fragment : referenced) {
    Item by_reference;
    by_reference.referenced = fragment.data;
    by_reference.size = fragment.size_bytes;
    written_ += by_reference.size;
    queue_.push_back(std::move(by_reference));
  }
  return true;
}

void MemoryStream::close() {
  assert(user_ == User::kListening);
  user_ = User::kLeft;
  fin_queued_ = true;
}

void MemoryStream::abort() {
  if (is_orphan_) return;
  assert(user_ == User::kListening);
  user_ = User::kLeft;
  queue_.clear();
  taken_.clear();
  fin_queued_ = false;
  peer_->must_accept_ = false;
  if (peer_->events_ != nullptr && peer_->user_ == User::kListening && !peer_->must_fail_) {
    peer_->must_fail_ = true;
    peer_->failure_ = Error{Errc::kPeerClosed, 0, "reset"};
  }
}

Result<Stream*> MemoryStreams::dial(TimePoint, StreamEvents& events) {
  if (refused_dials_ != 0) {
    --refused_dials_;
    return fail(Errc::kNoRoute, "dial");
  }
  const std::size_t index = pairs_.size();
  Pair pair{std::make_unique<MemoryStream>(*this, index),
            std::make_unique<MemoryStream>(*this, index)};
  pair.first->peer_ = pair.second.get();
  pair.second->peer_ = pair.first.get();
  pair.first->events_ = &events;
  if (lost_dials_ != 0)
    --lost_dials_;
  else
    pair.second->must_accept_ = true;
  pairs_.push_back(std::move(pair));
  return pairs_.back().first.get();
}

void MemoryStreams::kill(std::size_t index, Errc why) {
  for (MemoryStream* end : {pairs_[index].first.get(), pairs_[index].second.get()}) {
    end->queue_.clear();
    end->taken_.clear();
    end->fin_queued_ = false;
    end->must_accept_ = false;
    end->must_open_ = false;
    if (end->user_ == MemoryStream::User::kLeft || end->events_ == nullptr) continue;
    end->must_fail_ = true;
    end->failure_ = Error{why, 0, "killed"};
  }
}

void MemoryStreams::orphan(std::size_t index) {
  MemoryStream& end = *pairs_[index].first;
  if (end.user_ == MemoryStream::User::kLeft) return;
  end.is_orphan_ = true;
  end.user_ = MemoryStream::User::kLeft;
  end.queue_.clear();
  end.fin_queued_ = true;
}

bool MemoryStreams::is_alive(std::size_t index) const {
  const MemoryStream& end = *pairs_[index].first;
  return end.user_ == MemoryStream::User::kListening && !end.must_fail_;
}

bool MemoryStreams::can_act(const MemoryStream& end) const {
  if (end.must_accept_) return true;
  const bool listens = end.user_ == MemoryStream::User::kListening;
  if (listens && (end.must_fail_ || end.must_open_)) return true;
  if (!end.is_open_ && end.queue_.empty() && !end.fin_queued_) return false;
  if (!end.stalled_ && (!end.queue_.empty() || !end.taken_.empty())) return true;
  if (!end.stalled_ && end.fin_queued_ && !end.fin_delivered_) return true;
  return listens && (end.acked_ != acknowledgeable(end) || can_tell_delivery(end));
}

bool MemoryStreams::can_tell_delivery(const MemoryStream& end) const {
  return script_.is_kernel_like && end.wants_delivery_ && end.told_delivered_ != end.delivered_;
}

void MemoryStreams::deliver(TimePoint now, MemoryStream& from) {
  MemoryStream& to = *from.peer_;
  if (from.queue_.empty() && from.taken_.empty()) {
    from.fin_delivered_ = true;
    if (to.user_ == MemoryStream::User::kListening && !to.must_fail_) to.events_->on_closed(now);
    return;
  }
  const std::size_t wanted = 1 + draw(script_.max_piece_bytes);
  std::vector<std::byte> piece;
  if (script_.is_kernel_like) {
    if (!from.queue_.empty() && (from.taken_.empty() || draw(2) == 0)) {
      const std::vector<std::byte> copied = take(from, wanted);
      from.taken_.insert(from.taken_.end(), copied.begin(), copied.end());
      from.taken_bytes_ += copied.size();
      return;
    }
    const auto end =
        from.taken_.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, from.taken_.size()));
    piece.assign(from.taken_.begin(), end);
    from.taken_.erase(from.taken_.begin(), end);
  } else {
    piece = take(from, wanted);
  }
  from.delivered_ += piece.size();
  hand_over(now, to, piece);
}

// Collects bytes across writes, as TCP segments do.
std::vector<std::byte> MemoryStreams::take(MemoryStream& from, std::size_t wanted) {
  std::vector<std::byte> piece;
  while (piece.size() < wanted && !from.queue_.empty()) {
    MemoryStream::Item& item = from.queue_.front();
    const std::size_t size = std::min(wanted - piece.size(), item.size - item.taken);
    const std::byte* data =
        (item.referenced != nullptr ? item.referenced : item.copied.data()) + item.taken;
    piece.insert(piece.end(), data, data + size);
    item.taken += size;
    if (item.taken == item.size) from.queue_.pop_front();
  }
  return piece;
}

void MemoryStreams::hand_over(TimePoint now, MemoryStream& to, std::span<const std::byte> bytes) {
  const auto listens = [&to] {
    return to.user_ == MemoryStream::User::kListening && !to.must_fail_;
  };
  if (to.is_orphan_ && !to.fin_delivered_) {  // The kernel answers with RST.
    to.taken_.clear();
    to.fin_queued_ = false;
    to.peer_->must_fail_ = to.peer_->user_ == MemoryStream::User::kListening;
    to.peer_->failure_ = Error{Errc::kPeerClosed, 0, "reset"};
  }
  if (!listens()) return;
  const std::span<std::byte> place =
      script_.is_kernel_like ? to.events_->place().unpolled() : std::span<std::byte>();
  if (const std::size_t placed = std::min(place.size(), bytes.size()); placed != 0) {
    std::copy_backward(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(placed),
                       place.begin() + static_cast<std::ptrdiff_t>(placed));
    bytes = bytes.subspan(placed);
    to.events_->on_placed(now, placed);
  }
  if (bytes.empty() || !listens()) return;
  shown_ = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  to.events_->on_bytes(now, *shown_);
  shown_.reset();
}

std::uint32_t MemoryStreams::lend() {
  if (shown_ == nullptr) return kNone;
  if (script_.loan_refused_chance != 0 && draw(script_.loan_refused_chance) == 0) return kNone;
  if (free_loans_.empty()) {
    free_loans_.push_back(static_cast<std::uint32_t>(loans_.size()));
    loans_.emplace_back();
  }
  const std::uint32_t loan = free_loans_.back();
  free_loans_.pop_back();
  loans_[loan] = shown_;
  return loan;
}

void MemoryStreams::give_back(std::uint32_t loan) {
  const auto given = std::exchange(loans_[loan], nullptr);
  assert(given != nullptr);
  if (given.use_count() == 1) std::fill(given->begin(), given->end(), std::byte{0xdd});
  free_loans_.push_back(loan);
}

void MemoryStreams::act(TimePoint now, MemoryStream& end) {
  if (end.must_accept_) {
    end.must_accept_ = false;
    end.is_open_ = true;
    const auto port = static_cast<std::uint16_t>(40000 + end.pair_);
    end.events_ = accept_(now, end, Endpoint{Ipv4Address{0x0a000001}, port});
    if (end.events_ == nullptr) {
      end.user_ = MemoryStream::User::kLeft;
      end.peer_->must_fail_ = true;
      end.peer_->failure_ = Error{Errc::kPeerClosed, 0, "refused"};
    } else {
      end.peer_->must_open_ = true;
    }
    return;
  }
  if (end.user_ == MemoryStream::User::kListening) {
    if (end.must_fail_) {
      end.user_ = MemoryStream::User::kLeft;
      end.queue_.clear();
      end.taken_.clear();
      return end.events_->on_failed(now, end.failure_);
    }
    if (end.must_open_) {
      end.must_open_ = false;
      end.is_open_ = true;
      return end.events_->on_open(now, end);
    }
  }
  const bool can_send = !end.stalled_ && (!end.queue_.empty() || !end.taken_.empty() ||
                                          (end.fin_queued_ && !end.fin_delivered_));
  const bool can_ack = end.user_ == MemoryStream::User::kListening &&
                       (end.acked_ != acknowledgeable(end) || can_tell_delivery(end));
  if (can_send && (!can_ack || draw(2) == 0)) return deliver(now, end);
  if (can_tell_delivery(end) && (end.acked_ == acknowledgeable(end) || draw(2) == 0)) {
    ++deliveries_told_;
    end.told_delivered_ = end.delivered_;
    end.wants_delivery_ = end.delivered_ != end.written_;
    return end.events_->on_delivered(now, end.told_delivered_);
  }
  end.acked_ += 1 + draw(acknowledgeable(end) - end.acked_);
  end.events_->on_acked(now, end.acked_);
}

bool MemoryStreams::step(TimePoint now) {
  std::vector<MemoryStream*> able;
  for (const Pair& pair : pairs_)
    for (MemoryStream* end : {pair.first.get(), pair.second.get()})
      if (can_act(*end)) able.push_back(end);
  if (able.empty()) return false;
  act(now, *able[draw(able.size())]);
  return true;
}

}  // namespace ztcp::testing_support
