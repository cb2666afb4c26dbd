// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A stream with a worker that runs only when the test says so.
#include "transport/sockets/bulk_calls.h"

#include <deque>
#include <fcntl.h>
#include <memory>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <vector>

#include <gtest/gtest.h>

#include "transport/sockets/stream.h"

namespace ztcp::sockets {
namespace {

using Bytes = std::vector<std::byte>;

Bytes test_bytes() {
  Bytes bytes(1U << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

// Its call runs when the test runs it, or when the stream waits for it.
class OneWorker final : public Workers {
 public:
  std::size_t count() const override { return is_there ? 1 : 0; }
  void wake(std::size_t) override {}
  bool wait_for(std::size_t) override {
    if (is_stopped) return false;
    ++waits;
    calls->work(0);
    return true;
  }

  BulkCalls* calls = nullptr;
  bool is_there = true;
  bool is_stopped = false;
  int waits = 0;
};

class BulkStream : public testing::Test, public StreamEvents, public StreamHost {
 protected:
  static constexpr std::size_t kLarge = 100'000;

  BulkStream() : StreamHost(calls) {}
  void SetUp() override {
    worker.calls = &calls;
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    peer = Fd(ends[1]);
    stream = std::make_unique<SocketStream>(*this, counters, Fd(ends[0]),
                                            SocketStream::State::kOpen, this, kNever);
  }
  void TearDown() override {
    worker.is_stopped = false;
    stream->abort();
    collect();
  }

  void write(std::size_t size) {
    const Fragment fragment{out.data(), static_cast<std::uint32_t>(size), 0};
    ASSERT_TRUE(stream->write({}, {&fragment, 1}));
  }
  // The peer sends so many bytes, and epoll reports them.
  void hear(std::size_t size) {
    ASSERT_EQ(::send(peer.get(), out.data(), size, 0), static_cast<ssize_t>(size));
    stream->on_ready(now, EPOLLIN);
  }
  bool receive() { return stream->receive(now, scratch); }
  bool collect() {
    return calls.collect([&](BulkCall& call) { call.stream->on_call_done(now); });
  }
  std::size_t read_all() {
    Bytes all(1U << 20);
    const ssize_t got = ::recv(peer.get(), all.data(), all.size(), 0);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  int descriptor_flags() const { return fcntl(descriptor, F_GETFD); }

  void on_connected(const Fd&) override {}
  void on_shut_window(const Fd&, Duration) override {}
  void on_sendable(SocketStream&) override { is_sendable = true; }
  void on_readable(SocketStream&) override {}
  void on_delivery_asked(SocketStream&) override {}
  void on_gone(SocketStream&) override {}

  void on_open(TimePoint, Stream&) override {}
  void on_bytes(TimePoint, std::span<const std::byte> bytes) override { other += bytes.size(); }
  Place place() override { return {std::span(in).subspan(placed), is_polled}; }
  void on_placed(TimePoint, std::size_t bytes) override { placed += bytes; }
  bool lend_place() override { return lends; }
  void on_acked(TimePoint, std::uint64_t total) override { acked = total; }
  void on_closed(TimePoint) override { ++closed; }
  void on_failed(TimePoint, Error) override { ++failed; }

  TimePoint now{};
  OneWorker worker;
  BulkCalls calls{1, worker};
  StreamCounters counters;
  Bytes out = test_bytes();
  Bytes in = Bytes(kLarge, std::byte{0x11});
  Bytes scratch = Bytes(SocketStream::kScratchBytes);
  Fd peer;
  std::unique_ptr<SocketStream> stream;
  int descriptor = -1;
  bool is_sendable = false;
  bool lends = true;
  bool is_polled = false;
  std::size_t placed = 0;
  std::size_t other = 0;
  std::uint64_t acked = 0;
  int closed = 0;
  int failed = 0;
};

class ThreeWorkers final : public Workers {
 public:
  std::size_t count() const override { return 3; }
  void wake(std::size_t worker) override { woken.push_back(worker); }
  bool wait_for(std::size_t) override { return true; }

  std::vector<std::size_t> woken;
};

// Each worker gets one call before any gets its second and last, and each call wakes its worker.
TEST(BulkCalls, GoToTheLeastBusyWorker) {
  ThreeWorkers workers;
  BulkCalls calls(3, workers);
  std::deque<BulkCall> given;
  while (calls.has_room()) {
    given.emplace_back().kind = BulkCall::Kind::kSend;  // Without bytes or a descriptor.
    calls.give(given.back());
  }
  EXPECT_EQ(workers.woken, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_TRUE(calls.work(1));
  EXPECT_TRUE(calls.collect([&](BulkCall& call) { EXPECT_EQ(&call, &given[1]); }));
  EXPECT_TRUE(calls.has_room());
  calls.give(given[1]);
  EXPECT_EQ(workers.woken.back(), 1U);
  EXPECT_FALSE(calls.has_room());
}

TEST_F(BulkStream, LargePiecesAreReceivedByTheWorker) {
  hear(kLarge + 20);
  EXPECT_FALSE(receive());
  EXPECT_FALSE(stream->is_readable()) << "the worker has the call";
  EXPECT_EQ(in[0], std::byte{0x11}) << "nothing is received yet";
  EXPECT_FALSE(collect());
  EXPECT_TRUE(calls.work(0));
  EXPECT_EQ(placed, 0U);
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, kLarge);
  EXPECT_EQ(other, 20U) << "the bytes behind the piece";
  EXPECT_EQ(in, Bytes(out.begin(), out.begin() + kLarge));
}

// The piece is larger than the worker's buffer. ordered_copy() has tests of its own for the order.
TEST_F(BulkStream, PolledMemoryIsFilledByTheWorkersCopies) {
  is_polled = true;
  hear(kLarge + 20);
  EXPECT_FALSE(receive());
  EXPECT_TRUE(calls.work(0));
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, kLarge);
  EXPECT_EQ(other, 20U);
  EXPECT_EQ(in, Bytes(out.begin(), out.begin() + kLarge));
  EXPECT_EQ(counters.copied_bytes, kLarge + 20);
}

TEST_F(BulkStream, BytesThatArriveDuringACallAreNotMissed) {
  hear(20'000);
  EXPECT_FALSE(receive());
  EXPECT_TRUE(calls.work(0));
  hear(kLarge - 20'000);
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, 20'000U);
  EXPECT_TRUE(stream->is_readable());
}

TEST_F(BulkStream, BytesWrittenDuringACallAreSentAfterIt) {
  hear(kLarge);
  EXPECT_FALSE(receive());
  write(20);
  EXPECT_FALSE(stream->send(now)) << "the socket is the worker's";
  is_sendable = false;
  EXPECT_TRUE(calls.work(0));
  EXPECT_TRUE(collect());
  EXPECT_TRUE(is_sendable);
  EXPECT_TRUE(stream->send(now));
  EXPECT_EQ(read_all(), 20U);
}

TEST_F(BulkStream, SmallOrUnlentPiecesAreReceivedWithoutAWorker) {
  lends = false;
  hear(kLarge);
  EXPECT_TRUE(receive());
  EXPECT_EQ(placed, kLarge);
  lends = true;
  placed = 0;
  in.resize(1000);
  hear(1000);
  EXPECT_TRUE(receive());
  EXPECT_EQ(placed, 1000U);
  EXPECT_EQ(counters.worker_calls, 0U);
}

TEST_F(BulkStream, WithoutWorkersLargePiecesAreReceivedInTheTurn) {
  worker.is_there = false;
  hear(kLarge);
  EXPECT_TRUE(receive());
  EXPECT_EQ(placed, kLarge);
}

TEST_F(BulkStream, AWorkersSendIsAcknowledgedOnceItIsCollected) {
  write(kLarge);
  EXPECT_FALSE(stream->send(now));
  EXPECT_FALSE(stream->wants_to_send());
  EXPECT_EQ(read_all(), 0U);
  EXPECT_TRUE(calls.work(0));
  EXPECT_EQ(acked, 0U);
  EXPECT_TRUE(collect());
  EXPECT_EQ(acked, kLarge);
  EXPECT_EQ(read_all(), kLarge);
}

TEST_F(BulkStream, FinIsSentAfterAWorkersSend) {
  write(kLarge);
  EXPECT_FALSE(stream->send(now));
  stream->close();
  EXPECT_EQ(read_all(), 0U);
  EXPECT_TRUE(calls.work(0));
  is_sendable = false;
  EXPECT_TRUE(collect());
  EXPECT_TRUE(is_sendable);
  stream->send(now);
  EXPECT_EQ(read_all(), kLarge);
  std::byte byte{};
  EXPECT_EQ(::recv(peer.get(), &byte, 1, 0), 0);
}

TEST_F(BulkStream, APeersFinBehindAPieceIsNoticed) {
  hear(kLarge);
  EXPECT_FALSE(receive());
  ASSERT_EQ(shutdown(peer.get(), SHUT_WR), 0);
  stream->on_ready(now, EPOLLIN | EPOLLRDHUP);
  EXPECT_TRUE(calls.work(0));
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, kLarge);
  EXPECT_TRUE(stream->is_readable());
  in.resize(2 * kLarge);  // The next piece's place.
  EXPECT_FALSE(receive());
  EXPECT_TRUE(calls.work(0));
  EXPECT_TRUE(collect());
  EXPECT_EQ(closed, 1);
}

// NCCL frees the buffer right after the abort.
TEST_F(BulkStream, AbortWaitsForTheWorkerAndNothingIsWrittenAfterwards) {
  hear(kLarge);
  EXPECT_FALSE(receive());
  stream->abort();
  EXPECT_EQ(worker.waits, 1);
  EXPECT_FALSE(calls.work(0));
  EXPECT_TRUE(stream->has_call_out()) << "not to be destroyed yet";
  EXPECT_TRUE(collect());
  EXPECT_FALSE(stream->has_call_out());
  EXPECT_EQ(placed, 0U);
}

TEST_F(BulkStream, CloseAndSettlePlaceWaitForAWorkersReceive) {
  hear(kLarge);
  EXPECT_FALSE(receive());
  stream->settle_place();
  EXPECT_EQ(worker.waits, 1);
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, kLarge) << "the user is told nevertheless";
  placed = 0;
  hear(kLarge);
  EXPECT_FALSE(receive());
  stream->close();
  EXPECT_EQ(worker.waits, 2);
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, 0U);
}

// A worker that may never finish could still use the descriptor, so its number must not be reused.
TEST_F(BulkStream, DescriptorStaysOpenIfTheWaitForTheWorkerIsGivenUp) {
  descriptor = stream->fd();
  write(kLarge);
  EXPECT_FALSE(stream->send(now));
  worker.is_stopped = true;
  stream->abort();
  EXPECT_TRUE(stream->is_gone());
  EXPECT_GE(descriptor_flags(), 0);
}

TEST_F(BulkStream, AResetDuringAWorkersReceiveEndsTheStream) {
  hear(20'000);
  EXPECT_FALSE(receive());
  write(10);  // Unread at the peer, whose close is then a reset.
  peer = Fd();
  EXPECT_TRUE(calls.work(0));
  EXPECT_TRUE(collect());
  EXPECT_EQ(placed, 20'000U);
  EXPECT_EQ(failed + closed, 1);
}

}  // namespace
}  // namespace ztcp::sockets
