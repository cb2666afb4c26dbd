// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two sessions joined directly: once they run, they allocate nothing.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "transport/msg/acceptor.h"
#include "transport/msg/send_session.h"

namespace ztcp::msg {
namespace {

constexpr Cookie kCookie{std::byte{1}};

// Keeps written bytes in its own memory until the test moves them.
class PipeStream final : public Stream {
 public:
  std::size_t room() const override { return kCapacity / 2 - std::min(kCapacity / 2, size_); }
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override {
    append(copied.data(), copied.size());
    for (const Fragment& f : referenced) append(f.data, f.size_bytes);
    return true;
  }
  void finish() override {}
  void close() override {}
  void abort() override {}

  // Passes everything to the other end, and the acknowledgement back.
  bool move(TimePoint now) {
    if (size_ == 0) return false;
    moved_ += size_;
    const std::size_t size = std::exchange(size_, 0);
    std::swap(buffer_, in_flight_);
    to->on_bytes(now, {in_flight_.get(), size});
    from->on_acked(now, moved_);
    return true;
  }

  StreamEvents* from = nullptr;
  StreamEvents* to = nullptr;

 private:
  static constexpr std::size_t kCapacity = 4U << 20;
  void append(const std::byte* data, std::size_t size) {
    ASSERT_LE(size_ + size, kCapacity);
    std::copy_n(data, size, buffer_.get() + size_);
    size_ += size;
  }
  std::unique_ptr<std::byte[]> buffer_{new std::byte[kCapacity]};
  std::unique_ptr<std::byte[]> in_flight_{new std::byte[kCapacity]};
  std::size_t size_ = 0;
  std::uint64_t moved_ = 0;
};

struct Owner final : SendOwner, RecvOwner {
  void on_ready(TimePoint) override {}
  void on_done(SendMessage&) override { ++done; }
  void on_done(RecvMessage&) override { ++done; }
  void on_session_failed(Error) override { failed = true; }
  void on_session_closed() override {}
  std::size_t done = 0;
  bool failed = false;
};

class Joined final : public Dialer, public ListenerEvents {
 public:
  Joined() {
    static_cast<void>(acceptor.add_listener(kCookie, *this));
    sender->on_timers(now);
    up->from->on_open(now, *up);
    settle();
  }
  Result<Stream*> dial(TimePoint, StreamEvents& events) override {
    up->from = down->to = &events;
    up->to = down->from = acceptor.on_accept(now, *down, Endpoint{});
    return up.get();
  }
  void on_session(TimePoint, std::unique_ptr<RecvSession> session) override {
    receiver = std::move(session);
    receiver->set_owner(received);
  }
  void settle() {
    for (bool moved = true; moved;) {
      moved = up->move(now);
      acceptor.flush();
      moved = down->move(now) || moved;
    }
  }

  void send(std::span<const std::byte> bytes, std::uint32_t tag) {
    send_message->start(bytes, tag, 0);
    sender->post(now, *send_message);
  }
  void receive(std::span<std::byte> buffer, std::uint32_t tag) {
    recv_message.start(buffer, tag);
    receiver->post(now, recv_message);
  }

  TimePoint now{};
  std::unique_ptr<SendMessage> send_message = std::make_unique<SendMessage>();
  RecvMessage recv_message;
  Owner sent;
  Owner received;
  std::unique_ptr<PipeStream> up = std::make_unique<PipeStream>();
  std::unique_ptr<PipeStream> down = std::make_unique<PipeStream>();
  SessionSettings settings = [] {
    SessionSettings s;
    s.flows = 1;
    return s;
  }();
  Acceptor acceptor{settings, {}, 4, {1, 2}};
  std::unique_ptr<SendSession> sender =
      std::make_unique<SendSession>(settings, ClusterKey{}, kCookie, 9, *this, sent);
  std::unique_ptr<RecvSession> receiver;
};

TEST(SteadyState, DoesNotAllocate) {
  Joined joined;
  ASSERT_NE(joined.receiver, nullptr);
  std::vector<std::byte> out(1U << 20, std::byte{3});
  std::vector<std::byte> in(1U << 20);
  std::size_t count = 0;
  std::size_t messages = 0;
  {
    AllocationGuard guard;
    for (const std::size_t size : {0UL, 8UL, 1000UL, 65'536UL, 1UL << 20}) {
      for (int round = 0; round < 20; ++round) {
        // Posted ahead or late, with one tag or another.
        const bool ahead = round % 2 == 0;
        const std::uint32_t tag = round < 10 ? 0 : static_cast<std::uint32_t>(round);
        if (ahead) joined.receive(std::span(in).first(size), tag);
        joined.send(std::span(out).first(size), tag);
        joined.settle();
        if (!ahead) joined.receive(std::span(in).first(size), tag);
        joined.settle();
        ++messages;
      }
    }
    count = guard.count();
  }
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(joined.sent.done, messages);
  EXPECT_EQ(joined.received.done, messages);
  EXPECT_EQ(in, out);
}

}  // namespace
}  // namespace ztcp::msg
