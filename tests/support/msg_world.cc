// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/msg_world.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ztcp::testing_support {
namespace {

constexpr std::size_t kMargin = 64;
// Sessions check their flows as long as anything is outstanding, so deadlines never end: the run is
// stuck once nothing but deadlines has happened for so long.
constexpr Duration kLongestWait = std::chrono::minutes(10);
constexpr std::byte kEmpty{0xee};
constexpr std::byte kAfterReceive{0xaa};
constexpr std::byte kAfterSend{0x55};

bool is_filled(std::span<const std::byte> bytes, std::byte with) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == with; });
}

}  // namespace

std::byte pattern(std::size_t number, std::size_t i) {
  return static_cast<std::byte>((number * 131 + i * 7 + (i >> 8) * 13 + (i >> 16)) & 0xff);
}

MsgWorld::MsgWorld(const MsgScript& script)
    : net(script.streams,
          [this](TimePoint t, Stream& s, Endpoint e) { return acceptor.on_accept(t, s, e); }),
      workers(script.copies.workers, script.streams.seed),
      copies(script.copies, workers, net),
      acceptor(script.session, script.receiver_key, 64, {1, 2}, &copies),
      script_(script),
      rng_(script.streams.seed * 77 + 5) {
  sender.world = receiver.world = this;
  workers.serve(copies);
  messages_.resize(script_.sizes.size());
  static_cast<void>(acceptor.add_listener(kCookie, *this));
  send_session = std::make_unique<msg::SendSession>(script_.session, script_.sender_key, kCookie,
                                                    0x123456789abcdef0, net, sender);
}

MsgWorld::~MsgWorld() {
  send_session.reset();
  recv_session.reset();
}

void MsgWorld::on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) {
  if (recv_session != nullptr) return broken("a second session");
  recv_session = std::move(session);
  recv_session->set_owner(receiver);
}

void MsgWorld::Side::on_done(msg::SendMessage& message) {
  ++done;
  world->complete(true, static_cast<Message::Send&>(message).number, message.size_bytes());
}

void MsgWorld::Side::on_done(msg::RecvMessage& message) {
  ++done;
  world->complete(false, static_cast<Message::Recv&>(message).number, message.size_bytes());
}

void MsgWorld::broken(std::string what) {
  if (problem_.empty()) problem_ = what + " at event " + std::to_string(events_);
}

void MsgWorld::complete(bool is_sender, std::size_t number, std::size_t size_bytes) {
  const std::size_t size = script_.sizes.at(number);
  if (size_bytes != size) broken("wrong size told");
  Message& m = messages_.at(number);
  if (is_sender) {
    if (std::exchange(m.sent, true)) broken("send done twice");
    std::fill(m.send_buffer.begin(), m.send_buffer.end(), kAfterSend);
    return;
  }
  if (std::exchange(m.received, true)) broken("receive done twice");
  for (std::size_t i = 0; i < size; ++i) {
    if (m.recv_buffer[i] == pattern(number, i)) continue;
    broken("message " + std::to_string(number) + " differs at byte " + std::to_string(i));
    break;
  }
  if (!is_filled(std::span(m.recv_buffer).subspan(size), kEmpty)) broken("written past the end");
  std::fill(m.recv_buffer.begin(), m.recv_buffer.end(), kAfterReceive);
}

std::string MsgWorld::problem() {
  for (Message& m : messages_)
    if (m.received && !is_filled(m.recv_buffer, kAfterReceive)) broken("written after done");
  return problem_;
}

void MsgWorld::post_send() {
  const std::size_t number = next_send_++;
  const std::size_t size = script_.sizes[number];
  auto& buffer = messages_[number].send_buffer;
  buffer.resize(size);
  for (std::size_t i = 0; i < size; ++i) buffer[i] = pattern(number, i);
  Message::Send& record = messages_[number].send;
  record.number = number;
  record.start(buffer, tag(number), 0);
  send_session->post(now, record);
}

std::size_t MsgWorld::next_to_receive() const {
  return script_.receive_order.empty() ? next_receive_ : script_.receive_order[next_receive_];
}

void MsgWorld::post_receive() { post_receive(script_.sizes[next_to_receive()]); }

void MsgWorld::post_receive(std::size_t buffer_bytes) {
  const std::size_t number = next_to_receive();
  ++next_receive_;
  auto& buffer = messages_[number].recv_buffer;
  buffer.assign(buffer_bytes + kMargin, kEmpty);
  Message::Recv& record = messages_[number].recv;
  record.number = number;
  record.start(std::span(buffer).first(buffer_bytes), tag(number), number % 3 == 0);
  recv_session->post(now, record);
}

void MsgWorld::check() {
  if (recv_session == nullptr) return;
  const std::uint64_t unposted = recv_session->unposted_bytes();
  most_unposted_bytes_ = std::max(most_unposted_bytes_, unposted);
  if (unposted > script_.session.eager_allowance_bytes) broken("allowance exceeded");
}

void MsgWorld::spoil_posted_buffers() {
  for (std::size_t i = 0; i < next_receive_; ++i)
    std::ranges::fill(messages_[i].recv_buffer, kAfterReceive);
}

bool MsgWorld::are_posted_buffers_spoilt() const {
  for (std::size_t i = 0; i < next_receive_; ++i)
    if (!is_filled(messages_[i].recv_buffer, kAfterReceive)) return false;
  return true;
}

// The part of a turn beside receiving. It comes at the turn's end, after the end of the burst.
bool MsgWorld::copy_some() {
  copies.publish();
  workers.turn(now);
  const bool any = copies.collect(now);
  acceptor.flush();
  return any;
}

bool MsgWorld::advance_time() {
  TimePoint next = std::min({sender_is_gone_ ? kNever : send_session->next_deadline(),
                             acceptor.next_deadline(), workers.turn(now)});
  if (next == kNever) return false;
  now = std::max(now, next);
  if (!sender_is_gone_) send_session->on_timers(now);
  acceptor.on_timers(now);
  acceptor.flush();
  return true;
}

void MsgWorld::end_sender_process() {
  sender_is_gone_ = true;
  for (std::size_t i = 0; i < net.pairs(); ++i) net.orphan(i);
}

void MsgWorld::kill_one(std::size_t which) {
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < net.pairs(); ++i)
    if (net.is_alive(i)) alive.push_back(i);
  if (!alive.empty()) net.kill(alive[which % alive.size()]);
}

bool MsgWorld::step() {
  const auto happens = [&](unsigned chance) { return chance != 0 && rng_() % chance == 0; };
  if (script_.kill_at && *script_.kill_at == events_) {
    script_.kill_at.reset();
    kill_one(script_.kill_pair);
  }
  if (receiver.done != 0 && happens(script_.kill_chance)) kill_one(rng_());
  bool moved = false;
  const bool may_send = script_.send_chance != 0 && next_send_ < script_.sizes.size() &&
                        sends_outstanding() < kMaxOutstanding && sender.failed == 0 &&
                        !sender_is_gone_;
  const bool may_post = script_.post_chance != 0 && recv_session != nullptr &&
                        next_receive_ < script_.sizes.size() &&
                        next_receive_ - receiver.done < script_.post_ahead && receiver.failed == 0;
  if (may_send && happens(script_.send_chance)) post_send();
  if (may_post && happens(script_.post_chance))
    for (std::size_t i = 0; i < script_.group && has_unposted_receives(); ++i) post_receive();
  if (happens(script_.flush_chance)) copy_some();
  now += std::chrono::microseconds(1);
  if (!sender_is_gone_ && send_session->next_deadline() <= now) send_session->on_timers(now);
  if (net.step(now)) {
    ++events_;
    moved = true;
  } else {
    moved = copy_some() || net.step(now) || may_send || may_post;
  }
  if (moved)
    last_event_ = now;
  else if (now - last_event_ < kLongestWait)
    moved = advance_time();
  check();
  return moved && problem_.empty();
}

bool MsgWorld::close_all() {
  send_session->close();
  const bool sent = run_until([&] { return sender.closed != 0; });
  if (recv_session != nullptr) recv_session->close();
  return sent && run_until([&] { return receiver.closed != 0; }) && sender.closed == 1 &&
         receiver.closed == 1;
}

}  // namespace ztcp::testing_support
