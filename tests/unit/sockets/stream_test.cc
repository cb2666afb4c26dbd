// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A stream's system calls and copies for received bytes, and the bytes' fate when one end is gone.
#include "transport/sockets/stream.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "core/worker_threads.h"
#include "transport/msg/record.h"

namespace ztcp::sockets {
namespace {

constexpr std::size_t kHeader = msg::kChunkRecordBytes;

// Reads messages: a header as long as a chunk's, which begins with the size of the body, then that.
class Reader final : public StreamEvents {
 public:
  explicit Reader(bool is_polled) : is_polled_(is_polled) {}

  void on_open(TimePoint, Stream&) override {}
  void on_bytes(TimePoint, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      std::vector<std::byte>& to = left_ != 0 ? body : header_;
      const std::size_t missing = left_ != 0 ? left_ : kHeader - header_.size();
      const std::size_t take = std::min(missing, bytes.size());
      to.insert(to.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
      bytes = bytes.subspan(take);
      if (left_ != 0)
        left_ -= take;
      else if (header_.size() == kHeader)
        begin();
    }
  }
  Place place() override {
    if (left_ == 0) return {};
    place_.resize(left_);
    return {place_, is_polled_};
  }
  void on_placed(TimePoint, std::size_t bytes) override {
    body.insert(body.end(), place_.begin(), place_.begin() + static_cast<std::ptrdiff_t>(bytes));
    left_ -= bytes;
  }
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_delivered(TimePoint, std::uint64_t total_bytes) override { delivered = total_bytes; }
  void on_closed(TimePoint) override { ++ends; }
  void on_failed(TimePoint, Error error) override { failures.push_back(error); }

  std::vector<std::byte> body;  // The bodies of all messages.
  int ends = 0;
  std::uint64_t delivered = 0;
  std::vector<Error> failures;

 private:
  void begin() {
    std::memcpy(&left_, header_.data(), sizeof left_);
    header_.clear();
  }

  const bool is_polled_;
  std::size_t left_ = 0;
  std::vector<std::byte> header_;
  std::vector<std::byte> place_;
};

class StreamTest : public testing::Test, private StreamHost {
 protected:
  StreamTest() : StreamHost(no_workers_) {}

  void make(bool is_polled) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    for (const int end : ends) {
      const int bytes = 4 << 20;
      setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
    peer = Fd(ends[0]);
    reader = std::make_unique<Reader>(is_polled);
    stream = std::make_unique<SocketStream>(host(), counters, Fd(ends[1]),
                                            SocketStream::State::kOpen, reader.get(), kNever);
  }
  // Receives one message, which arrives as a whole. Returns the number of calls.
  std::uint64_t receive(std::size_t size) {
    std::vector<std::byte> bytes(kHeader + size);
    std::memcpy(bytes.data(), &size, sizeof size);
    for (std::size_t i = 0; i < size; ++i)
      bytes[kHeader + i] = static_cast<std::byte>(i * 7 + i / 256);
    EXPECT_EQ(write(peer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    const std::uint64_t before = counters.receive_calls;
    reader->body.clear();
    stream->on_ready({}, EPOLLIN);
    while (reader->body.size() < size) stream->receive({}, scratch);
    EXPECT_EQ(reader->body, std::vector<std::byte>(bytes.begin() + kHeader, bytes.end()));
    return counters.receive_calls - before;
  }
  int in_kernel() const {
    int bytes = 0;
    EXPECT_EQ(ioctl(stream->fd(), FIONREAD, &bytes), 0);
    return bytes;
  }
  std::uint64_t copied() { return std::exchange(counters.copied_bytes, 0); }

  Fd peer;
  StreamCounters counters;
  std::unique_ptr<Reader> reader;
  std::unique_ptr<SocketStream> stream;
  int readable = 0;
  int delivery_asks = 0;
  std::vector<std::byte> scratch = std::vector<std::byte>(SocketStream::kScratchBytes);

 private:
  StreamHost& host() { return *this; }
  void on_connected(const Fd&) override {}
  void on_shut_window(const Fd&, Duration) override {}
  void on_sendable(SocketStream&) override {}
  void on_readable(SocketStream&) override { ++readable; }
  void on_delivery_asked(SocketStream&) override { ++delivery_asks; }
  void on_gone(SocketStream&) override {}

  WorkerThreads no_threads_;
  BulkCalls no_workers_{0, no_threads_};
};

TEST_F(StreamTest, ASmallMessageTakesOneCall) {
  for (const bool is_polled : {true, false}) {
    make(is_polled);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(receive(8), 1U) << i;
  }
}

TEST_F(StreamTest, LargeMessagesButTheFirstAreReceivedInPlace) {
  make(/*is_polled=*/false);
  EXPECT_EQ(receive(30'000), 1U);
  copied();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(receive(30'000), 2U) << i;
    EXPECT_EQ(copied(), kHeader) << i;
  }
  // One more call for the first small message, none for those that follow.
  EXPECT_EQ(receive(8), 2U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(receive(8), 1U) << i;
}

// Removing bytes from the kernel sends an acknowledgement, which takes longer than to peek.
TEST_F(StreamTest, SmallMessagesArePeekedAndRemovedInTheNextTurn) {
  make(/*is_polled=*/true);
  stream->set_direct(true);
  EXPECT_EQ(receive(8), 1U);
  EXPECT_EQ(in_kernel(), 0) << "the first read is no peek, since much may have arrived";
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(receive(8), 1U);
    EXPECT_EQ(in_kernel(), static_cast<int>(kHeader) + 8) << "passed on, but not removed";
    reader->body.clear();
    EXPECT_FALSE(stream->receive({}, scratch));
    EXPECT_EQ(in_kernel(), 0);
    EXPECT_TRUE(reader->body.empty()) << "passed on once";
  }
  // Bytes that arrive before the removal are found behind the peeked ones.
  EXPECT_EQ(receive(8), 1U);
  EXPECT_EQ(receive(4000), 1U);
  EXPECT_EQ(in_kernel(), 0);
  // A message larger than a peek, and the end of the stream.
  EXPECT_LE(receive(100'000), 5U);
  EXPECT_EQ(receive(8), 2U) << "after a large message the header is read alone";
  EXPECT_EQ(receive(8), 1U);
  EXPECT_EQ(receive(8), 1U);
  peer = Fd();
  for (int i = 0; i < 3; ++i) {
    stream->on_ready({}, EPOLLIN | EPOLLRDHUP);
    stream->receive({}, scratch);
  }
  EXPECT_EQ(reader->ends, 1);
}

TEST_F(StreamTest, PeekedBytesAreRemovedBeforeBytesAreReceivedInPlace) {
  make(/*is_polled=*/false);
  stream->set_direct(true);
  receive(8);
  // Its beginning is peeked at.
  receive(100'000);
  EXPECT_EQ(in_kernel(), 0);
}

TEST_F(StreamTest, LargeMessagesWithoutAPlaceRarelyTakeASecondCall) {
  make(/*is_polled=*/true);
  std::uint64_t calls = 0;
  for (int i = 0; i < 640; ++i) calls += receive(30'000);
  EXPECT_LE(calls, 640U + 12U);
}

// A send to a peer that has closed fails, but must not lose the bytes that the peer sent before.
TEST_F(StreamTest, ReceivedBytesAreReadBeforeAFailedSendEndsTheStream) {
  make(/*is_polled=*/false);
  const std::size_t size = 100'000;
  std::vector<std::byte> bytes(kHeader + size);
  std::memcpy(bytes.data(), &size, sizeof size);
  ASSERT_EQ(write(peer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  peer = {};
  const std::array<std::byte, 8> word{};
  ASSERT_TRUE(stream->write(word, {}));
  stream->send({});
  EXPECT_FALSE(stream->is_gone());
  EXPECT_FALSE(stream->wants_to_send());
  EXPECT_EQ(readable, 1) << "epoll may have reported the bytes already";
  while (stream->is_readable()) stream->receive({}, scratch);
  EXPECT_EQ(reader->body.size(), size);
  EXPECT_EQ(reader->ends, 0);
  ASSERT_EQ(reader->failures.size(), 1U);
  EXPECT_EQ(reader->failures[0].sys_errno, EPIPE);
  EXPECT_TRUE(stream->is_gone());
}

TEST_F(StreamTest, DeliveryIsReportedOnceThePeersKernelHasAllBytes) {
  make(/*is_polled=*/false);
  const std::array<std::byte, 8> word{};
  ASSERT_TRUE(stream->write(word, {}));
  stream->ask_delivery();
  stream->ask_delivery();
  EXPECT_EQ(delivery_asks, 1);
  EXPECT_FALSE(stream->tell_delivery({}));
  stream->send({});
  EXPECT_FALSE(stream->tell_delivery({}));
  EXPECT_EQ(reader->delivered, 0U);
  std::array<std::byte, 8> read_there{};
  ASSERT_EQ(read(peer.get(), read_there.data(), read_there.size()), 8);
  EXPECT_TRUE(stream->tell_delivery({}));
  EXPECT_EQ(reader->delivered, 8U);
  stream->close();
  EXPECT_TRUE(stream->tell_delivery({})) << "a closed stream has no user to tell";
}

// A peer on userspace TCP answers bytes after its close with RST (RFC 9293 SHLD-3).
TEST_F(StreamTest, AResetAfterCloseIsNotCountedAsAFailure) {
  for (const bool is_in_use : {true, false}) {
    make(/*is_polled=*/false);
    const std::array<std::byte, 8> bye{};
    ASSERT_TRUE(stream->write(bye, {}));
    stream->on_ready({}, EPOLLOUT);
    stream->send({});
    if (!is_in_use) stream->close();
    peer = {};  // With unread bytes, so that the close is a reset.
    stream->on_ready({}, EPOLLIN | EPOLLRDHUP | EPOLLHUP);
    stream->receive({}, scratch);
    EXPECT_TRUE(stream->is_gone());
    EXPECT_EQ(std::exchange(counters.failed, 0), is_in_use ? 1U : 0U);
  }
}

}  // namespace
}  // namespace ztcp::sockets
